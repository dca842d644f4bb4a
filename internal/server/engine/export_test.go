package engine

import (
	"testing"

	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Peek returns the decision that Check would return.
func (s *Session) Peek(ev *match.Event, cost uint64) (d ratelimit.Decision, err error) {
	return s.Check(ev, cost, Terms{Peek: true})
}

// Take judges one event of a key, as QueueTake and Decide do.
func (s *Session) Take(rule string, cost uint64, key ...string) (ratelimit.Decision, error) {
	return s.take(rule, cost, Terms{}, key...)
}

// PeekRule returns the decision that Take would return.
func (s *Session) PeekRule(rule string, cost uint64, key ...string) (ratelimit.Decision, error) {
	return s.take(rule, cost, Terms{Peek: true}, key...)
}

func (s *Session) take(rule string, cost uint64, terms Terms, key ...string) (d ratelimit.Decision, err error) {
	if err := s.QueueTake(rule, cost, terms, key...); err != nil {
		return d, err
	}
	for d, err := range s.Decide() {
		return *d, err
	}
	return d, nil
}

// Lacking returns how many events a rule did not judge, because they lack a field.
func (e *Engine) Lacking(rule string) uint64 {
	for _, r := range e.limiter.Stats().Rules {
		if r.Rule == rule {
			return r.Lacking
		}
	}
	return 0
}

// OpenJournal opens the journal in a directory until the test ends.
func OpenJournal(t *testing.T, path string, restore func(journal.Record) error) *journal.Journal {
	t.Helper()
	j, _, err := journal.Open(path, restore)
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, j.Close()) })
	return j
}
