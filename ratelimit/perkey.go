package ratelimit

import (
	"time"

	"github.com/lately-go/lately/match"
)

// Per returns a Limit of n events in any window of span.
//
//	ratelimit.Rule{Name: "login", Key: match.MustKey("client"), Limits: []ratelimit.Limit{ratelimit.Per(5, time.Minute)}}
func Per(n uint64, span time.Duration) Limit { return Limit{N: n, Span: span} }

// PerKey returns a limiter of n events per key in any window of span, in this process's
// memory. It is for programs that need one limit and no rule:
//
//	logins := ratelimit.PerKey(5, time.Minute)
//	...
//	if d := logins.Take(user); !d.Allowed {
//		// try again after d.RetryAfter
//	}
//
// A key is any text of 1 to 1,024 bytes. The algorithm is [Sliding], and the memory is
// bounded by 256 MiB; for anything else, use [New] and [Limiter.Rule].
//
// It panics if n or span is not one that a [Limit] can have. It costs the same as any
// [RuleLimiter] and is safe for concurrent use.
func PerKey(n uint64, span time.Duration) *RuleLimiter {
	const name = "per-key"
	l, err := New(Rule{Name: name, Key: match.MustKey("key"), Limits: []Limit{Per(n, span)}})
	if err != nil {
		panic("ratelimit: " + err.Error())
	}
	r, err := l.Rule(name)
	if err != nil {
		panic(err) // New has accepted the rule
	}
	return r
}
