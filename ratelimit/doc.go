// Package ratelimit limits and bans: it decides about an event under all the
// rules that match it, in one step, and counts it.
//
// A [Rule] selects events, names the key that they are counted by, and sets how
// many are allowed in a span and what happens above that. A [Set] is a list of
// compiled rules. A [Limiter] judges events under a Set, with the windows kept
// in the memory of this process.
//
//	limiter, err := ratelimit.New(ratelimit.Rule{
//		Name:   "per-client",
//		Key:    match.MustKey("client"),
//		Limits: []ratelimit.Limit{{N: 60, Span: time.Minute}},
//	})
//	...
//	if d := limiter.Take(event); !d.Allowed {
//		// refused: try again after d.RetryAfter
//	}
//
// # What a rule means
//
// A limit of N per span refuses the N+1st event in (t-span, t]. A ban after N
// hits (or refusals) in span, for D, refuses the N+1st and starts the ban [t,
// t+D). The counter of the ban then starts again at 0, and events during the
// ban are refused and not counted. A ban does not reset the limits of its rule:
// after a ban that is shorter than the span, the window still holds the earlier
// events.
//
// # How rules combine
//
// Limits charge, bans observe. Every matching event is a hit for the ban rules,
// even when a limit refuses it, except while any ban holds for it. All limits
// are judged, and each refusal counts toward its own rule's ban; a refused event
// charges no limit. A shadow rule refuses nothing, and charges only allowed
// events. The deciding rule is a ban first, then the one with the longest
// retry-after, then the first in the order of rules.
//
// # Answers
//
// A rule whose condition looks at the answer (status, size or duration) can limit requests
// that are not answered yet. Judge a request with the [match.Part] Request: such a rule
// counts nothing, and refuses it if its limit is full or a ban holds, and such a refusal
// counts toward its own ban. When the request is answered, judge the same event again with
// Part Answer and the fields of the answer. Only these rules judge it: they count it even
// above their limits, and begin bans. A limit of 5 failed logins therefore allows a sixth
// only if it was requested before the fifth was answered. An event of a log has both
// parts, and is judged and counted at once.
//
// # Other ways to judge
//
// To judge a key without an event, under one rule, use [Limiter.Rule]. For a
// limit that each request brings, use [RuleLimiter.TakeLimit].
//
// # Guarantees
//
// Sliding, the default, and Exact never allow more than N in any true window
// (t-span, t], for any arrivals and any number of callers; [RuleLimiter.Charge] may
// exceed the limit. The other algorithms
// have worst cases of their own, up to 2N: [Limit.MaxAllowed] is the table. A
// store whose budget is spent may evict keys that have used less than half of
// their limits, and these begin at 0; it never evicts others, nor bans that hold.
// [Stats] counts evictions.
//
// An event earlier than the newest one judged under any of its records is judged
// at that newest time, so a clock set back neither stops nor doubles anything.
package ratelimit
