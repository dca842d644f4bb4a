// Package ratelimit limits and bans: it decides about an event under all the
// rules that match it, in one step, and counts it.
//
// A [Rule] says which events it is about, by which key they are counted, how
// many are allowed in a span and what follows when there are more. A [Set] is
// rules compiled together. A [Limiter] judges events under a Set, with the
// windows kept in the memory of this process.
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
// hits (or refusals) in span, for D, refuses the N+1st and starts the ban
// [t, t+D); what it had counted is emptied; events during the ban are refused
// and not recorded. What the limits of a rule with a ban have counted stays: a
// ban shorter than the span never brings a second helping within one window.
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
// that have none yet. Judge a request with the [match.Part] Request: such a rule counts
// nothing, and refuses it if its limit is full or a ban holds, and such a refusal
// counts toward its own ban. When the request is answered, judge the same event again with
// Part Answer and the fields of the answer. Only these rules see it; they count it
// whatever their limits allow, and begin bans. So a limit of 5 failed logins
// allows a sixth only if it was under way with the fifth. An event of a log has both
// parts, and is judged and counted at once.
//
// # Other ways to judge
//
// To judge a key without an event, under one rule, use [Limiter.Rule]. A
// limit that comes with each request is CL.THROTTLE of the server.
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
