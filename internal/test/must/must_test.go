package must

import (
	"errors"
	"testing"
)

// A recorder is a test that counts how often it ended.
type recorder struct {
	testing.TB
	ended int
}

func (r *recorder) Helper()      {}
func (r *recorder) Fatal(...any) { r.ended++ }

func TestMust(t *testing.T) {
	r := &recorder{TB: t}
	Do(r, nil)
	if got := Get(7, nil)(r); got != 7 || r.ended != 0 {
		t.Errorf("without an error: %d, ended %d times", got, r.ended)
	}
	Do(r, errors.New("x"))
	Get(0, errors.New("x"))(r)
	if r.ended != 2 {
		t.Errorf("with errors: ended %d times, want 2", r.ended)
	}
}
