//go:build race

package latelygrpc

const raceEnabled = true
