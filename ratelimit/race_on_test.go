//go:build race

package ratelimit_test

const raceEnabled = true

// sequentially divides the steps of a test that has one goroutine: the race detector makes
// them many times longer and has nothing to find in them.
const sequentially = 4
