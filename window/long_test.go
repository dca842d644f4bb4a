package window

import "os"

// longTests reports whether the tests that have a long form are to run it; it
// takes minutes:
//
//	LATELY_LONG=1 go test -run Model -timeout 1h
func longTests() bool { return os.Getenv("LATELY_LONG") != "" }
