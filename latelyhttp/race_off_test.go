//go:build !race

package latelyhttp

const raceEnabled = false
