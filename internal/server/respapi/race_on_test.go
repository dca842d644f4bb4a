//go:build race

package respapi

const raceEnabled = true
