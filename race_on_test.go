//go:build race

package lately

const raceEnabled = true
