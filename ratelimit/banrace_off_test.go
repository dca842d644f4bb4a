//go:build !race

package ratelimit

const underRace = false
