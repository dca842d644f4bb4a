//go:build !race

package latelyprom_test

const raceEnabled = false
