package latelyhttp

import (
	"os"
)

// longTests reports whether the tests that have a long form are to run it:
//
//	LATELY_LONG=1 go test ./latelyhttp -timeout 1h
func longTests() bool { return os.Getenv("LATELY_LONG") != "" }
