package latelyredis_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A partition is one limit for the key k, of which two memories and Redis have each counted a part of the
// events, and a memory all of them.
type partition struct {
	t     *testing.T
	now   atomic.Int64
	limit ratelimit.Limit
	parts [3]*ratelimit.RuleLimiter // the last is Redis
	all   *ratelimit.RuleLimiter
	move  func()
}

func newPartition(t *testing.T, a ratelimit.Algorithm, l ratelimit.Limit) *partition {
	t.Helper()
	rules := set(t, ratelimit.Rule{Name: "r", Key: match.MustKey("path"), Algorithm: a, Limits: []ratelimit.Limit{l}})
	f := &partition{t: t, limit: l}
	f.now.Store(time.Date(2100, 11, 23, 12, 0, 0, 0, time.UTC).UnixMicro())
	one, two, redis := microMemory(t, rules), microMemory(t, rules), timedRedis(t, rules, prefixed(), &f.now)
	for i, l := range []*ratelimit.Limiter{one, two, redis} {
		f.parts[i] = rule(t, l)
	}
	f.all = rule(t, microMemory(t, rules))
	f.move = func() {
		for id, memory := range map[string]*ratelimit.Limiter{"one": one, "two": two} {
			if done := copyAll(t, memory, redis, id); done.Keys+done.Expired != 1 {
				t.Fatalf("%v: imported %+v, want one key", a, done)
			}
		}
	}
	return f
}

func rule(t testing.TB, l *ratelimit.Limiter) *ratelimit.RuleLimiter {
	t.Helper()
	r, err := l.Rule("r")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (f *partition) at() time.Time { return time.UnixMicro(f.now.Load()) }

func (f *partition) redis() *ratelimit.RuleLimiter { return f.parts[2] }

// take counts an event in one part and in all.
func (f *partition) take(part int, n uint64) {
	f.t.Helper()
	for _, l := range []*ratelimit.RuleLimiter{f.parts[part], f.all} {
		if d := l.TakeN(f.at(), n, "k"); !d.Allowed {
			f.t.Fatalf("%+v", d)
		}
	}
}

// used returns how much of the limit is used.
func (f *partition) used(l *ratelimit.RuleLimiter) uint64 {
	f.t.Helper()
	d := l.PeekN(f.at(), 0, "k")
	if d.Err != nil {
		f.t.Fatal(d.Err)
	}
	return d.Limit - d.Remaining
}

// someEvents counts random events in all parts, no more than half of the limit.
func (f *partition) someEvents(rnd *rand.Rand) {
	for part := range f.parts {
		f.take(part, 1)
		f.now.Add(rnd.Int64N(1000))
	}
	for left := f.limit.N/2 - 3; left > 0; {
		n := min(1+rnd.Uint64N(f.limit.N/10), left)
		left -= n
		f.take(rnd.IntN(3), n)
		f.now.Add(rnd.Int64N(f.limit.Window().Microseconds() / 12))
	}
}

// TestImportAddsUp has each of two memories and Redis count a part of the events. With both imported,
// Redis decides as the memory that has counted all of them.
func TestImportAddsUp(t *testing.T) {
	t.Parallel()
	rounds := 30
	if testing.Short() {
		rounds = 6
	}
	rnd := randtest.New(t)
	for _, c := range []struct {
		a ratelimit.Algorithm
		n uint64
	}{
		{ratelimit.Sliding, 100},
		{ratelimit.Exact, 30},
		{ratelimit.Exact, 300},
		{ratelimit.InFlight, 50},
		{ratelimit.TwoBucket, 200},
	} {
		for range rounds {
			f := newPartition(t, c.a, ratelimit.Limit{N: c.n, Span: []time.Duration{time.Minute, 997 * time.Millisecond}[rnd.IntN(2)]})
			f.someEvents(rnd)
			f.move()
			for i := range 100 {
				n := 1 + rnd.Uint64N(c.n/10)
				want, got := f.all.TakeN(f.at(), n, "k"), f.redis().TakeN(f.at(), n, "k")
				if got.Allowed != want.Allowed || got.Remaining != want.Remaining || got.RetryAfter != want.RetryAfter || got.ResetAfter != want.ResetAfter {
					t.Fatalf("%v, limit %d, event %d: Redis returns\n%+v\nand memory\n%+v", c.a, c.n, i, got, want)
				}
				f.now.Add(rnd.Int64N(f.limit.Span.Microseconds() / 20))
			}
		}
	}
}

// TestImportAddsUpSlots does so with times that become slots together: no less is used than was counted
// in the window, and no more than if slots had counted from the start.
func TestImportAddsUpSlots(t *testing.T) {
	rnd := randtest.New(t)
	for range 20 {
		f := newPartition(t, ratelimit.Sliding, ratelimit.Limit{N: 1000, Span: time.Minute})
		var times []int64
		for range 3 + rnd.IntN(40) {
			f.take(rnd.IntN(3), 1)
			times = append(times, f.now.Load())
			f.now.Add(rnd.Int64N(3e6))
		}
		for part := range f.parts {
			f.take(part, 1)
			times = append(times, f.now.Load())
		}
		f.move()
		for range 80 {
			count := uint64(0)
			for _, at := range times {
				if at > f.now.Load()-60e6 {
					count++
				}
			}
			if used := f.used(f.redis()); used < count || used > f.used(f.all) {
				t.Fatalf("%d are used, want %d to %d", used, count, f.used(f.all))
			}
			f.now.Add(rnd.Int64N(1.5e6))
		}
	}
}

// TestImportAddsLevels has buckets and windows, which each began and drained by themselves: their levels and
// counts are added, and a window ends with the last of them.
func TestImportAddsLevels(t *testing.T) {
	rnd := randtest.New(t)
	for _, a := range []ratelimit.Algorithm{ratelimit.GCRA, ratelimit.LeakyBucket, ratelimit.Fixed, ratelimit.Calendar} {
		for range 10 {
			l := ratelimit.Limit{N: 100, Span: 7 * time.Minute}
			if a == ratelimit.Calendar {
				l = ratelimit.Limit{N: 100, Per: ratelimit.PerDay}
			}
			f := newPartition(t, a, l)
			for range 20 {
				f.take(rnd.IntN(3), 1+rnd.Uint64N(3))
				f.now.Add(rnd.Int64N(5e6))
			}
			for part := range f.parts {
				f.take(part, 1)
			}
			want, reset, latest := uint64(0), time.Duration(0), time.Duration(0)
			for _, p := range f.parts {
				after := p.PeekN(f.at(), 0, "k").ResetAfter
				want, reset, latest = want+f.used(p), reset+after, max(latest, after)
			}
			f.move()
			got, d := f.used(f.redis()), f.redis().PeekN(f.at(), 0, "k")
			if a == ratelimit.Fixed || a == ratelimit.Calendar {
				if got != want || d.ResetAfter != latest {
					t.Errorf("%v: %d are used until %v, want %d until %v", a, got, d.ResetAfter, want, latest)
				}
			} else if got+2 < want || got > want || (d.ResetAfter-reset).Abs() > 10*time.Microsecond {
				t.Errorf("%v: %d are used until %v, want %d, up to 2 less, until %v", a, got, d.ResetAfter, want, reset)
			}
		}
	}
}

// TestImportAboveTheLimit imports memories that have each admitted the limit: Redis refuses until
// fewer than that are in the window.
func TestImportAboveTheLimit(t *testing.T) {
	const n = 10
	f := newPartition(t, ratelimit.Exact, ratelimit.Limit{N: n, Span: time.Minute})
	var times []int64
	for i := range 3 * n {
		if d := f.parts[i%3].TakeN(f.at(), 1, "k"); !d.Allowed {
			t.Fatal("refused below the limit of one")
		}
		times = append(times, f.now.Load())
		f.now.Add(1e6)
	}
	f.move()
	for i := range 2 * n {
		f.now.Store(times[i] + 60e6)
		allowed := f.redis().PeekN(f.at(), 1, "k").Allowed
		if want := 3*n-i-1 < n; allowed != want {
			t.Errorf("with %d in the window, allowed: %v, want %v", 3*n-i-1, allowed, want)
		}
	}
}

// TestImportLostTimes imports a log that has dropped times which still counted, and one with older times. When
// those leave, nothing is given back: how many events are in the window is not known.
func TestImportLostTimes(t *testing.T) {
	rules := set(t, ratelimit.Rule{Name: "r", Key: match.MustKey("path"), Algorithm: ratelimit.Exact, CountRefused: true, Limits: []ratelimit.Limit{{N: 5, Span: time.Minute}}})
	older, full := microMemory(t, rules), microMemory(t, rules)
	var now atomic.Int64
	now.Store(time.Date(2100, 11, 23, 12, 0, 0, 0, time.UTC).UnixMicro())
	rule(t, older).TakeN(time.UnixMicro(now.Load()), 2, "k")
	now.Add(20e6)
	for range 9 {
		rule(t, full).TakeN(time.UnixMicro(now.Load()), 1, "k")
		now.Add(1e6)
	}
	redis := timedRedis(t, rules, prefixed(), &now)
	copyAll(t, full, redis, "full")
	copyAll(t, older, redis, "older")
	now.Add(32e6) // the older times have left
	taken, err := rule(t, redis).Refund(1, "k")
	if err != nil || taken != 0 {
		t.Errorf("given back %d, %v, want nothing", taken, err)
	}
	if rule(t, redis).TakeN(time.UnixMicro(now.Load()), 1, "k").Allowed {
		t.Error("allowed with nine in the window")
	}
}
