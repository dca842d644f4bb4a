package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestTakeIsLive lets time pass: the window slides with it, a ban ends, and
// neither reads the event's own time.
func TestTakeIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := limitRule(t, "r", per(3, time.Second))
		r.Ban = &ratelimit.Ban{After: 4, Of: ratelimit.Refusals, Span: 10 * time.Second, For: time.Minute}
		byEvent := must.Get(ratelimit.New(r))(t)
		byKey := must.Get(ratelimit.New(r))(t)
		var e match.Event
		e.Time = time.Unix(77, 0)
		e.SetString(match.Client, "k")
		var got strings.Builder
		take := func() {
			d := mustRule(byKey, "r").Take("k")
			if again := byEvent.Take(&e); !sameDecision(again, d) {
				t.Errorf("Take: %+v, RuleLimiter.Take: %+v", again, d)
			}
			switch {
			case d.Allowed:
				got.WriteByte('A')
			case d.BannedUntil.IsZero():
				got.WriteByte('D')
			default:
				got.WriteByte('B')
			}
		}
		// Every 200 ms: three allowed, two refused, then the first has left.
		// The fifth refusal starts the ban.
		for range 14 {
			take()
			<-time.After(200 * time.Millisecond)
		}
		<-time.After(time.Minute - 200*time.Millisecond - 1)
		take()
		<-time.After(1)
		take()
		if want := "AAADDAAADDAAABBA"; got.String() != want {
			t.Errorf("decisions %s, want %s", got.String(), want)
		}
	})
}

// TestBanEndsLive starts a ban and lets it end.
func TestBanEndsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must.Get(ratelimit.New(ban(t, "r", ratelimit.Ban{After: 1, Span: time.Second, For: time.Minute})))(t)
		<-time.After(3 * time.Hour) // since the Limiter was made
		takeKey(l, "k")
		d := takeKey(l, "k")
		if want := time.Now().Add(time.Minute); d.Allowed || d.RetryAfter != time.Minute || !d.BannedUntil.Equal(want) {
			t.Fatalf("%+v, want a ban until %v", d, want)
		}
		<-time.After(time.Minute - 1)
		if d := takeKey(l, "k"); d.Allowed || d.RetryAfter != 1 {
			t.Errorf("1 ns before the end of the ban: %+v", d)
		}
		<-time.After(1)
		if d := takeKey(l, "k"); !d.Allowed {
			t.Errorf("at the end of the ban: %+v", d)
		}
	})
}

var errAway = errors.New("the store is away")

// A brokenStore cannot decide while it is away.
type brokenStore struct {
	*ratelimit.Memory
	away bool
}

func (s *brokenStore) Decide(_ context.Context, batch []*ratelimit.Request) {
	for _, r := range batch {
		r.Err = s.decided(r)
	}
}

func (s *brokenStore) decided(r *ratelimit.Request) error {
	if s.away {
		return errAway
	}
	return s.Memory.Decided(r)
}

// TestStoreFailure takes the store away under each policy and mixtures. Local memory has the event that the store allowed.
func TestStoreFailure(t *testing.T) {
	rule := func(name string, n uint64, p ratelimit.FailPolicy) ratelimit.Rule {
		r := limitRule(t, name, per(n, time.Hour))
		r.OnStoreFailure = p
		return r
	}
	shadow := func(r ratelimit.Rule) ratelimit.Rule {
		r.Shadow = true
		return r
	}
	const local, open, closed = ratelimit.FailLocal, ratelimit.FailOpen, ratelimit.FailClosed
	for name, c := range map[string]struct {
		rules    []ratelimit.Rule
		want     string // of five events while the store is away
		outcomes int
		rule     string // that decides the last
	}{
		"local":                     {[]ratelimit.Rule{rule("a", 2, local)}, "ADDDD", 1, "a"},
		"open":                      {[]ratelimit.Rule{rule("a", 2, open)}, "AAAAA", 0, ""},
		"closed":                    {[]ratelimit.Rule{rule("a", 2, closed)}, "DDDDD", 0, "a"},
		"open and local":            {[]ratelimit.Rule{rule("a", 2, open), rule("b", 3, local)}, "AADDD", 1, "b"},
		"local and closed":          {[]ratelimit.Rule{rule("a", 2, local), rule("b", 3, closed)}, "DDDDD", 0, "b"},
		"open and closed":           {[]ratelimit.Rule{rule("a", 2, open), rule("b", 3, closed)}, "DDDDD", 0, "b"},
		"closed but shadow":         {[]ratelimit.Rule{shadow(rule("a", 2, closed)), rule("b", 3, local)}, "AADDD", 1, "b"},
		"local, of which one is it": {[]ratelimit.Rule{shadow(rule("a", 2, local)), rule("b", 4, local)}, "AAADD", 2, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			set := mustSet(t, c.rules...)
			memory := must.Get(ratelimit.NewMemory(set, ratelimit.Config{}))(t)
			store := &brokenStore{Memory: memory}
			l := ratelimit.Over(set, store)
			if d := takeKeyN(l, at(0), "k", 1); d.Err != nil || !d.Allowed {
				t.Fatalf("with the store: %+v", d)
			}
			store.away = true
			var got []byte
			for i := range int64(5) {
				d, outcomes := l.Judge(at(i), keyEvent(l, "k"), 1, nil)
				if !errors.Is(d.Err, errAway) || len(outcomes) != c.outcomes {
					t.Errorf("without the store: %+v, %+v", d, outcomes)
				}
				if i == 4 && d.Rule != c.rule {
					t.Errorf("rule %q decides, want %q", d.Rule, c.rule)
				}
				got = append(got, "DA"[btoi(d.Allowed)])
			}
			if string(got) != c.want {
				t.Errorf("without the store: %s, want %s", got, c.want)
			}
			store.away = false
			d, outcomes := l.Judge(at(10), keyEvent(l, "k"), 0, nil)
			if d.Err != nil || len(outcomes) != len(c.rules) {
				t.Fatalf("with the store again: %+v, %+v", d, outcomes)
			}
			for _, o := range outcomes {
				if o.Limit-o.Remaining != 1 {
					t.Errorf("the store has counted %d of rule %d, want the 1 of before", o.Limit-o.Remaining, o.Rule)
				}
			}
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestKeyTooLong refuses a key that no store takes, unless its rule is open or
// a shadow; then the other rules decide with the counts that they have.
func TestKeyTooLong(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	build := func(change func(*ratelimit.Rule)) *ratelimit.Limiter {
		r := limitRule(t, "path", per(5, time.Second))
		r.Key = mustKey(t, "path")
		change(&r)
		return mustLimiter(t, mustSet(t, limitRule(t, "client", per(3, time.Hour)), r), ratelimit.Config{})
	}
	var fits, tooLong match.Event
	for e, path := range map[*match.Event]string{&fits: long[1:], &tooLong: long} {
		e.SetString(match.Client, "k")
		e.SetString(match.Path, path)
	}
	for name, c := range map[string]struct {
		change  func(*ratelimit.Rule)
		allowed string
	}{
		"local":  {func(*ratelimit.Rule) {}, "ADAAD"},
		"closed": {func(r *ratelimit.Rule) { r.OnStoreFailure = ratelimit.FailClosed }, "ADAAD"},
		"open":   {func(r *ratelimit.Rule) { r.OnStoreFailure = ratelimit.FailOpen }, "AAADD"},
		"shadow": {func(r *ratelimit.Rule) { r.Shadow = true }, "AAADD"},
	} {
		l := build(c.change)
		var got []byte
		for i, e := range []*match.Event{&fits, &tooLong, &fits, &fits, &tooLong} {
			d := l.TakeAt(at(0), e, 1)
			if (e == &tooLong) != errors.Is(d.Err, ratelimit.ErrKeyTooLong) {
				t.Errorf("%s, event %d: the error is %v", name, i, d.Err)
			}
			got = append(got, "DA"[btoi(d.Allowed)])
		}
		if string(got) != c.allowed {
			t.Errorf("%s: %s, want %s", name, got, c.allowed)
		}
	}
}

// TestKeyTooLongForTheOnlyRule takes the short way to the store.
func TestKeyTooLongForTheOnlyRule(t *testing.T) {
	l := mustLimiter(t, mustSet(t, limitRule(t, "r", per(5, time.Second))), ratelimit.Config{})
	for n, fits := range map[int]bool{0: true, 1<<20 - 1: true, 1 << 20: false} {
		d := takeKeyN(l, at(0), strings.Repeat("x", n), 1)
		if d.Allowed != fits || errors.Is(d.Err, ratelimit.ErrKeyTooLong) == fits {
			t.Errorf("a key of %d bytes: %+v", n, d)
		}
	}
}

// TestExtremeTimes judges at the ends of time: no panic, no overflow, and
// still the truth.
func TestExtremeTimes(t *testing.T) {
	year := func(y int) time.Time { return time.Date(y, 6, 1, 0, 0, 0, 0, time.UTC) }
	for _, a := range []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Exact} {
		for _, n := range []uint64{2, 100} {
			for _, resolution := range []time.Duration{0, time.Second, limit.MaxSpan} {
				r := limitRule(t, "r", per(n, limit.MaxSpan))
				r.Algorithm = a
				r.Ban = &ratelimit.Ban{
					After: 1, Of: ratelimit.Refusals, Span: limit.MaxSpan, For: limit.MaxSpan / 4,
					Factor: 2, Remember: limit.MaxSpan,
				}
				l := mustLimiter(t, mustSet(t, r), ratelimit.Config{Resolution: resolution})
				for _, y := range []int{1, 1750, 1970, 2200, 9999} {
					for i := range n {
						if d := takeKeyN(l, year(y), "k", 1); !d.Allowed || d.Remaining != n-1-i {
							t.Fatalf("%v, N %d, R %v, year %d, event %d: %+v", a, n, resolution, y, i, d)
						}
					}
					first, second := takeKeyN(l, year(y), "k", 1), takeKeyN(l, year(y), "k", 1)
					if first.Allowed || first.RetryAfter < limit.MaxSpan-2*resolution || first.RetryAfter > limit.MaxSpan+limit.MaxSpan/60 {
						t.Errorf("%v, N %d, R %v, year %d: the first refusal is %+v", a, n, resolution, y, first)
					}
					// The years are far enough apart for earlier bans not to count.
					if got := second.BannedUntil.Sub(clamped(year(y))); second.Allowed || got != limit.MaxSpan/4 {
						t.Errorf("%v, N %d, R %v, year %d: the ban lasts %v", a, n, resolution, y, got)
					}
				}
			}
		}
	}
}

// TestBanMemoryOfAgesAgo bans at both ends of time: the earlier ban is too long
// ago to count, however far apart they are.
func TestBanMemoryOfAgesAgo(t *testing.T) {
	l := mustLimiter(t, mustSet(t, ban(t, "r", ratelimit.Ban{Span: time.Second, For: time.Minute, Factor: 2})), ratelimit.Config{})
	for _, y := range []int{1, 9999} {
		if d := takeKeyN(l, time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC), "k", 1); d.ResetAfter != time.Minute {
			t.Errorf("year %d: the ban lasts %v", y, d.ResetAfter)
		}
	}
}

// clamped returns t, or the documented end of the range of times beyond it.
func clamped(t time.Time) time.Time {
	const most = 1<<63 - 1 - 4*int64(limit.MaxSpan)
	switch {
	case t.Year() < 1720:
		return time.Unix(0, -most)
	case t.Year() > 2220:
		return time.Unix(0, most)
	}
	return t
}

// TestClockSetBack sets the clock back ten minutes: this neither releases a key nor locks it out.
func TestClockSetBack(t *testing.T) {
	for _, n := range []uint64{5, 100} {
		l := mustLimiter(t, mustSet(t, limitRule(t, "r", per(n, time.Minute))), ratelimit.Config{})
		const back = -600_000
		now := int64(0)
		for range n - 1 {
			takeKeyN(l, at(now), "k", 1)
		}
		if d := takeKeyN(l, at(now+back), "k", 1); !d.Allowed || d.Remaining != 0 {
			t.Errorf("N %d: the last one that fits, ten minutes back: %+v", n, d)
		}
		for ms := int64(back); ms < 60_000; ms += 7000 {
			if d := takeKeyN(l, at(now+ms), "k", 1); d.Allowed {
				t.Errorf("N %d: the clock set back has freed the key, at %d ms: %+v", n, ms, d)
			}
		}
		if d := takeKeyN(l, at(now+61_000), "k", n); !d.Allowed {
			t.Errorf("N %d: the clock set back has frozen the key: %+v", n, d)
		}
	}
}

// TestDecisionsDoNotAllocate takes under every kind of rule at once.
func TestDecisionsDoNotAllocate(t *testing.T) {
	both := mustKey(t, "client", "path")
	rules := []ratelimit.Rule{
		limitRule(t, "sliding", per(1000, time.Second), per(40, time.Second)),
		{Name: "exact", Key: both, Algorithm: ratelimit.Exact, Limits: []ratelimit.Limit{per(100, time.Second)}},
		ban(t, "ban", ratelimit.Ban{After: 20, Span: time.Second, For: time.Second}),
	}
	rules[0].Ban = &ratelimit.Ban{After: 20, Of: ratelimit.Refusals, Span: time.Second, For: time.Second}
	rules[0].CountRefused = true
	l := mustLimiter(t, mustSet(t, rules...), ratelimit.Config{})
	live := mustLimiter(t, mustSet(t, rules...), ratelimit.Config{})
	var e match.Event
	e.SetString(match.Client, "k")
	e.SetString(match.Path, "/a/%61/../b")
	outcomes := make([]ratelimit.Outcome, 0, 4)
	var r ratelimit.Reservation
	now := int64(0)
	for name, verb := range map[string]func(){
		"Take":    func() { live.Take(&e) },
		"TakeAt":  func() { l.TakeAt(at(now), &e, 2) },
		"Judge":   func() { _, outcomes = l.Judge(at(now), &e, 1, outcomes[:0]) },
		"Reserve": func() { l.Internal().ReserveAt(at(now), &e, 1, &r) },
	} {
		step := func() {
			now += 20
			verb()
		}
		for range 500 {
			step() // the logs find their size
		}
		// The pool of scratch memory shrinks whenever the garbage collector runs.
		if n := testing.AllocsPerRun(500, step); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestDecisionAppends keeps what dst holds, and takes nil for none.
func TestDecisionAppends(t *testing.T) {
	l := mustLimiter(t, mustSet(t, limitRule(t, "a", per(1, time.Second)), limitRule(t, "b", per(2, time.Second))), ratelimit.Config{})
	dst := []ratelimit.Outcome{{Rule: 77}}
	_, dst = l.Judge(at(0), keyEvent(l, "k"), 1, dst)
	if len(dst) != 3 || dst[0].Rule != 77 || dst[1].Rule != 0 || dst[2].Rule != 1 {
		t.Errorf("outcomes %+v", dst)
	}
	if _, got := l.Judge(at(0), keyEvent(l, "k"), 1, nil); len(got) != 2 {
		t.Errorf("outcomes %+v", got)
	}
}

// TestConcurrentManyRules has more rules than a decision keeps on the stack.
func TestConcurrentManyRules(t *testing.T) {
	var rules []ratelimit.Rule
	for i := range 30 {
		rules = append(rules, limitRule(t, fmt.Sprint("r", i), per(uint64(50-i), time.Second)))
	}
	l := mustLimiter(t, mustSet(t, rules...), ratelimit.Config{})
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if takeKeyN(l, at(0), "k", 1).Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if d := takeKeyN(l, at(0), "k", 1); allowed.Load() != 21 || d.Rule != "r29" {
		t.Errorf("%d allowed, then %+v; want 21, the least of the limits, which is r29's", allowed.Load(), d)
	}
}
