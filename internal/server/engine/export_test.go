package engine

import (
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Peek returns the decision that Check would return.
func (s *Session) Peek(ev *match.Event, cost uint64) (d ratelimit.Decision, err error) {
	if err := s.QueueCheck(ev, cost, Terms{Peek: true}); err != nil {
		return ratelimit.Decision{Err: ratelimit.ErrKeyTooLong}, err
	}
	return s.decideOne()
}

// PeekRule returns the decision that Take would return.
func (s *Session) PeekRule(rule string, cost uint64, key ...string) (d ratelimit.Decision, err error) {
	if err := s.QueueTake(rule, cost, Terms{Peek: true}, key...); err != nil {
		return d, err
	}
	return s.decideOne()
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
