package storetest

import (
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// afterwardsCases are about facts that come after an event was judged under one of its rules:
// another subject refuses it, its key is reset, its cost becomes known.
var afterwardsCases = []Case{
	{
		"RefusedElsewhere", anyStore, refusedElsewhereCase,
		"A limit that counts refused events, and is full, does not count one that the ban of another subject refuses, and as a shadow, none that another subject refuses.",
	},
	{
		"SettleAfterReset", anyStore, settleAfterResetCase,
		"A settlement changes nothing of a key that was reset since the request, whether it is higher or lower, and whether the charge had left the window or not.",
	},
}

func refusedElsewhereCase(c *check) {
	for _, a := range c.algorithms(ratelimit.InFlight) {
		for _, n := range []uint64{3, 100, 150} {
			for _, shadow := range []bool{false, true} {
				counts, limit, ban := c.limitOf(a, n), c.rule("limit"), c.rule("ban")
				counts.CountRefused, counts.Shadow = true, shadow
				limit.Key, ban.Key = c.keyed(match.Host), c.keyed(match.User)
				limit.Limits = []ratelimit.Limit{{N: 1, Span: time.Hour}}
				ban.Ban = &ratelimit.Ban{Span: time.Hour, For: time.Hour}
				for other, r := range []ratelimit.Rule{limit, ban} {
					s := c.session(counts, r)
					s.take(1, about(1, "refuses")) // from now on
					s.take(n, about(0, "k"))
					for range 3 {
						s.pass(time.Millisecond)
						s.take(1, about(0, "k"))
						if shadow || other == 1 { // else it counts
							s.pass(time.Millisecond)
							s.take(1, about(0, "k"), about(1, "refuses"))
						}
						s.peek(1, about(0, "k"))
					}
				}
			}
		}
	}
}

func settleAfterResetCase(c *check) {
	const n = 10
	for _, a := range c.algorithms(ratelimit.InFlight) {
		for _, charged := range []uint64{0, 1, 2} {
			for _, passes := range []int{0, 3} {
				for _, actual := range []uint64{0, charged + 4} {
					s := c.session(c.limitOf(a, n))
					r, _ := s.take(charged, about(0, "k"))
					s.pass(units(passes))
					s.reset(about(0, "k"))
					s.correct(r, actual)
					after := s.raw(1, true, about(0, "k"))
					if o := after.Subjects[0].Outcome; o.Remaining != n-1 {
						c.complain("%v: %d charged, reset %d s later, and settled to %d: then %+v, want %d remaining", a, charged, passes, actual, o, n-1)
					}
				}
			}
		}
	}
}
