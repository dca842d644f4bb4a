//go:build !race

package latelygrpc

const raceEnabled = false
