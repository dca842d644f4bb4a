package journal

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// longTests reports whether the tests that have a long form are to run it:
//
//	LATELY_LONG=1 go test -timeout 1h ./internal/server/journal
func longTests() bool { return os.Getenv("LATELY_LONG") != "" }

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		child(path)
		return
	}
	goleak.VerifyTestMain(m)
}
