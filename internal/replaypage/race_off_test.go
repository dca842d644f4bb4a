//go:build !race

package replaypage_test

const raceEnabled = false
