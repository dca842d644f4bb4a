//go:build !race

package ratelimit_test

const raceEnabled = false

const sequentially = 1
