package ratelimit_test

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A judge is what an attack is on: a limiter, or a broken control.
type judge interface {
	take(t int64, key string, cost uint64) ratelimit.Decision
	peek(t int64, key string, cost uint64) ratelimit.Decision

	// reserve is take with what takes the charge back.
	reserve(t int64, key string, cost uint64) (d ratelimit.Decision, cancel func(t int64))
}

// limiterJudge decides by a limiter, in turn with a verb that has a fast path and one that has none.
type limiterJudge struct {
	*ratelimit.Limiter
	outcomes []ratelimit.Outcome
	turn     int
}

func (l *limiterJudge) take(t int64, key string, cost uint64) (d ratelimit.Decision) {
	if l.turn++; l.turn%8 != 0 {
		if l.turn%2 == 0 && len(l.Set().Rules()) == 1 {
			return mustRule(l.Limiter, l.Set().Rules()[0].Name).TakeAt(time.Unix(0, t), cost, key)
		}
		return takeKeyN(l.Limiter, time.Unix(0, t), key, cost)
	}
	d, l.outcomes = l.Judge(time.Unix(0, t), keyEvent(l.Limiter, key), cost, l.outcomes[:0])
	return d
}

func (l *limiterJudge) peek(t int64, key string, cost uint64) ratelimit.Decision {
	return peekKeyN(l.Limiter, time.Unix(0, t), key, cost)
}

func (l *limiterJudge) reserve(t int64, key string, cost uint64) (ratelimit.Decision, func(int64)) {
	r := reserveN(l.Limiter, time.Unix(0, t), keyEvent(l.Limiter, key), cost)
	return r.Decision, func(t int64) { r.SettleAt(time.Unix(0, t), 0) }
}

// twins calls two limiters whose decisions must all be the same.
type twins struct {
	a, b    judge
	differs string
}

func (tw *twins) same(a, b ratelimit.Decision, t int64) ratelimit.Decision {
	was := a
	if a.Err != nil && b.Err != nil && a.Err.Error() == b.Err.Error() {
		a.Err, b.Err = nil, nil
	}
	if tw.differs == "" && a != b {
		tw.differs = fmt.Sprintf("at %d one says %+v, the other %+v", t, a, b)
	}
	return was
}

func (tw *twins) take(t int64, key string, cost uint64) ratelimit.Decision {
	return tw.same(tw.a.take(t, key, cost), tw.b.take(t, key, cost), t)
}

func (tw *twins) peek(t int64, key string, cost uint64) ratelimit.Decision {
	return tw.same(tw.a.peek(t, key, cost), tw.b.peek(t, key, cost), t)
}

func (tw *twins) reserve(t int64, key string, cost uint64) (ratelimit.Decision, func(int64)) {
	a, cancel := tw.a.reserve(t, key, cost)
	b, cancelToo := tw.b.reserve(t, key, cost)
	return tw.same(a, b, t), func(t int64) { cancel(t); cancelToo(t) }
}
