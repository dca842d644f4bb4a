package latelyredis_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestExpiry takes under each algorithm by the clock of the server: every key expires, and
// not before what it counts has left. A key without a time to live gets one.
func TestExpiry(t *testing.T) {
	client := redis(t).client(t)
	for i := range limit.Algorithms() {
		a := ratelimit.Algorithm(i)
		for _, n := range []uint64{10, 1000} {
			rules, config := set(t, limited("r", match.MustKey("path"), a, n)), prefixed()
			store := quiet(t, client, rules, config)
			key := config.Prefix + "{path=k}:r"
			for range 6 {
				began := time.Now()
				r := take(context.Background(), store, rules, "k")
				if r.Err != nil {
					t.Fatalf("%v: %v", a, r.Err)
				}
				lives, _ := strconv.ParseInt(do(t, client, "PTTL", key), 10, 64)
				reset := r.Subjects[0].Outcome.ResetAfter
				least, most := (reset-time.Since(began)).Milliseconds()-2, reset.Milliseconds()+2
				if lives < least || lives > most || lives <= 0 && least > 0 {
					t.Errorf("%v, limit %d: the key lives for %d ms, want %d to %d", a, n, lives, least, most)
				}
				do(t, client, "PERSIST", key)
			}
		}
	}
}

// TestClockSetBack sets the clock back by an hour after a limit of one in ten seconds was used up: nothing is freed, and no
// key is refused for longer than a window and a slot.
func TestClockSetBack(t *testing.T) {
	client := redis(t).client(t)
	for i := range limit.Algorithms() {
		a := ratelimit.Algorithm(i)
		for _, n := range []uint64{4, 200} {
			l := ratelimit.Limit{N: n, Span: 10 * time.Second}
			if a == ratelimit.Calendar {
				l = ratelimit.Limit{N: n, Per: ratelimit.PerMinute}
			}
			rules := set(t, ratelimit.Rule{Name: "r", Key: match.MustKey("path"), Algorithm: a, Limits: []ratelimit.Limit{l}})
			now := clockAt(time.Date(2026, 11, 23, 12, 0, 30, 1e8, time.UTC))
			store := storeAt(t, client, rules, prefixed(), now)
			takeAll(t, store, rules, n)
			now.Add(-time.Hour.Microseconds())
			if n := takeAll(t, store, rules, 1); n != 0 {
				t.Errorf("%v, limit %d: a clock that is set back frees %d", a, l.N, n)
			}
			window, slot := l.Window(), time.Duration(0)
			switch a {
			case ratelimit.Sliding:
				slot = window / 60
			case ratelimit.TwoBucket:
				slot = window
			}
			now.Add((window + slot).Microseconds())
			if got := takeAll(t, store, rules, n); got != n {
				t.Errorf("%v: %v and %v after a clock was set back, %d are allowed, want %d", a, window, slot, got, n)
			}
		}
	}
}

// TestClockSetBackBeforeUpdate sets the clock back by an hour, and then gives a rule another limit: later counts count as
// of now, under the new limit.
func TestClockSetBackBeforeUpdate(t *testing.T) {
	client := redis(t).client(t)
	for i := range limit.Algorithms() {
		a, l := ratelimit.Algorithm(i), ratelimit.Limit{N: 4, Span: time.Minute}
		if a == ratelimit.Calendar {
			l = ratelimit.Limit{N: 4, Per: ratelimit.PerMinute}
		}
		r := ratelimit.Rule{Name: "r", Key: match.MustKey("path"), Algorithm: a, Limits: []ratelimit.Limit{l}}
		rules, config := set(t, r), prefixed()
		r.Limits = []ratelimit.Limit{l}
		r.Limits[0].N = 5
		now := clockAt(time.Date(2026, 11, 23, 12, 0, 30, 1e8, time.UTC))
		for _, x := range []struct {
			rules *ratelimit.Set
			want  uint64
		}{{rules, 4}, {set(t, r), 1}} {
			store := storeAt(t, client, x.rules, config, now)
			if got := takeAll(t, store, x.rules, 10); got != x.want {
				t.Errorf("%v: %d are allowed, want %d", a, got, x.want)
			}
			now.Add(-time.Hour.Microseconds())
		}
	}
}

// TestClockSetBackALittle has a record judged at its newest time, as in memory.
func TestClockSetBackALittle(t *testing.T) {
	rules := set(t, limited("r", match.MustKey("path"), ratelimit.Sliding, 2))
	now := clockAt(time.Now())
	store := storeAt(t, redis(t).client(t), rules, prefixed(), now)
	first := take(context.Background(), store, rules, "k")
	now.Add(-50_000)
	if r := take(context.Background(), store, rules, "k"); r.Now != first.Now {
		t.Errorf("judged %v after the event before, want at the same time", time.Duration(r.Now-first.Now))
	}
}

// takeAll takes up to n times until one is refused, and returns how often it was allowed.
func takeAll(t testing.TB, store *latelyredis.Store, rules *ratelimit.Set, n uint64) (allowed uint64) {
	t.Helper()
	for ; allowed < n; allowed++ {
		r := take(context.Background(), store, rules, "k")
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if r.Subjects[0].Outcome.Refused {
			break
		}
	}
	return allowed
}

// TestBytes measures the bytes of a key with all slots in use: its name, its record and its entries in the tables of keys
// and of times to live.
func TestBytes(t *testing.T) {
	// MEMORY USAGE leaves out the entry of the time to live, and a place in each of the two
	// tables, which are half empty at worst.
	const tables = 24 + 2*16
	client := redis(t).client(t)
	if !strings.Contains(do(t, client, "INFO", "memory"), "mem_allocator:jemalloc") {
		t.Skip("SKIP: the server's allocator is not jemalloc, whose sizes these are")
	}
	cases := []struct {
		a    ratelimit.Algorithm
		n    uint64
		most int
	}{
		{ratelimit.GCRA, 1000, 180},
		{ratelimit.Fixed, 1000, 180},
		{ratelimit.TwoBucket, 1000, 180},
		{ratelimit.Sliding, 1000, 272},
		{ratelimit.Sliding, 60_000, 360},
		{ratelimit.Sliding, 100, 660},
	}
	for _, c := range cases {
		rules := set(t, limited("per-client", match.MustKey("client"), c.a, c.n))
		now := clockAt(time.Now())
		config := prefixed()
		store := storeAt(t, client, rules, config, now)
		const address = "203.0.113.219"
		for range 61 { // a slot each, up to the limit
			r := &latelyredis.Request{Set: rules, Cost: max(c.n/61, 1), Subjects: []latelyredis.Subject{about(0, address)}}
			if store.Decide(context.Background(), []*latelyredis.Request{r}); r.Err != nil {
				t.Fatal(r.Err)
			}
			now.Add(time.Second.Microseconds())
		}
		usage := must.Get(strconv.Atoi(do(t, client, "MEMORY", "USAGE", config.Prefix+"{client="+address+"}:per-client")))(t)
		t.Logf("%v, limit %d: %d bytes", c.a, c.n, usage+tables)
		if usage+tables > c.most {
			t.Errorf("%v, limit %d: %d bytes a key, want at most %d", c.a, c.n, usage+tables, c.most)
		}
	}
}
