package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// distinctReference is a ban after distinct values as the documentation has it.
type distinctReference struct {
	ratelimit.Ban
	hits   bool // a wrong one, which counts events
	last   map[string]map[string]time.Time
	until  map[string]time.Time
	events int
}

func newDistinctReference(b ratelimit.Ban) *distinctReference {
	return &distinctReference{Ban: b, last: make(map[string]map[string]time.Time), until: make(map[string]time.Time)}
}

// take reports whether an event of client with that value is allowed at t.
func (r *distinctReference) take(t time.Time, client, value string, peek bool) bool {
	if t.Before(r.until[client]) {
		return false
	}
	if value == "" {
		return true
	}
	if r.events++; r.hits {
		value += fmt.Sprint(r.events)
	}
	live := r.last[client]
	if live == nil {
		live = make(map[string]time.Time)
		r.last[client] = live
	}
	n := uint64(0)
	_, known := live[value]
	known = known && live[value].After(t.Add(-r.Span))
	for _, at := range live {
		if at.After(t.Add(-r.Span)) {
			n++
		}
	}
	switch {
	case !known && n >= r.After:
		if !peek {
			r.until[client] = t.Add(r.For)
			delete(r.last, client)
		}
		return false
	case !peek:
		live[value] = t
	}
	return true
}

func distinctRule(t testing.TB, b ratelimit.Ban) ratelimit.Rule {
	return ratelimit.Rule{Name: "stuffing", Key: mustKey(t, "client"), Ban: &b}
}

func loginEvent(client, user string) *match.Event {
	e := new(match.Event)
	e.SetString(match.Client, client)
	e.SetString(match.User, user)
	return e
}

// compareDistinct takes random events, looks at others, changes the rule and restarts, and
// returns the first difference from the reference.
func compareDistinct(t *testing.T, seed uint64, hits bool) error {
	rnd := rand.New(rand.NewPCG(seed, 0))
	b := ratelimit.Ban{After: rnd.Uint64N(12), Of: ratelimit.Distinct, Field: "user", Span: 10 * time.Second, For: 3 * time.Second}
	ref := newDistinctReference(b)
	ref.hits = hits
	l := mustLimiter(t, mustSet(t, distinctRule(t, b)), ratelimit.Config{})
	at := time.Unix(1_700_000_000, 0)
	for i := range 3000 {
		at = at.Add(time.Duration(rnd.IntN(1000)) * time.Millisecond)
		client, user := fmt.Sprint("192.0.2.", rnd.IntN(3)), strings.Repeat("u", rnd.IntN(3))+fmt.Sprint(rnd.IntN(15))
		if rnd.IntN(20) == 0 {
			user = ""
		}
		peek := rnd.IntN(4) == 0
		want := ref.take(at, client, user, peek)
		d := l.TakeAt
		if peek {
			d = l.PeekN
		}
		if got := d(at, loginEvent(client, user), 1); got.Allowed != want || got.Started && peek {
			return fmt.Errorf("event %d: %s as %q: allowed: %v; it is %v with %+v", i, client, user, want, got.Allowed, b)
		}
		switch rnd.IntN(300) {
		case 0: // the bound changes; times that a smaller bound drops are lost
			b.After += rnd.Uint64N(3)
			ref.After = b.After
			if err := l.Update(mustSet(t, distinctRule(t, b))); err != nil {
				return err
			}
		case 1: // a restart
			was := l
			l = mustLimiter(t, mustSet(t, distinctRule(t, b)), ratelimit.Config{})
			for chunk := range was.ExportAt(at) {
				if _, err := l.ImportAt(at, chunk); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func TestBanAfterDistinctValues(t *testing.T) {
	seed := randtest.Seed(t)
	runs := uint64(60)
	if testing.Short() {
		runs = 15
	}
	for i := range runs {
		if err := compareDistinct(t, seed+i, false); err != nil {
			t.Fatalf("seed %d: %v", seed+i, err)
		}
	}
	for i := uint64(0); compareDistinct(t, seed+i, true) == nil; i++ {
		if i == 5 {
			t.Fatal("a reference that counts events passes, too: want a difference from one that counts values")
		}
	}
}

// TestDistinctBesideALimit has a limit and a ban in one rule: what the limit refuses is a
// hit for the ban, and a ban by hand or a fall in the bound changes nothing of this.
func TestDistinctBesideALimit(t *testing.T) {
	rule := distinctRule(t, ratelimit.Ban{After: 2, Of: ratelimit.Distinct, Field: "user", Span: time.Minute, For: time.Hour})
	rule.Limits = []ratelimit.Limit{per(1, time.Minute)}
	l := mustLimiter(t, mustSet(t, rule), ratelimit.Config{})
	at := time.Unix(1_700_000_000, 0)
	for i, x := range []struct {
		user             string
		allowed, started bool
	}{{"ada", true, false}, {"ada", false, false}, {"", false, false}, {"bob", false, false}, {"ada", false, false}, {"eve", false, true}} {
		d := l.TakeAt(at.Add(time.Duration(i)*time.Second), loginEvent("192.0.2.1", x.user), 1)
		if d.Allowed != x.allowed || d.Started != x.started {
			t.Errorf("event %d, user %q: allowed %v, ban started %v; want %v, %v", i, x.user, d.Allowed, d.Started, x.allowed, x.started)
		}
	}
	for b, err := range l.BansAt(at.Add(time.Minute)).All() {
		if want := "more than 2 distinct values in 1m"; err != nil || b.Reason != want {
			t.Errorf("the reason is %q, %v; want %q", b.Reason, err, want)
		}
	}
}

// TestDistinctValuesOfAnotherSecret imports counts of another process for keys that have values already: imported values
// are not mistaken for those of this process.
func TestDistinctValuesOfAnotherSecret(t *testing.T) {
	b := ratelimit.Ban{After: 2, Of: ratelimit.Distinct, Field: "user", Span: time.Minute, For: time.Hour}
	one, two := mustLimiter(t, mustSet(t, distinctRule(t, b)), ratelimit.Config{}), mustLimiter(t, mustSet(t, distinctRule(t, b)), ratelimit.Config{})
	at := time.Unix(1_700_000_000, 0)
	one.TakeAt(at, loginEvent("192.0.2.1", "ada"), 1)
	one.TakeAt(at, loginEvent("192.0.2.1", "bob"), 1)
	two.TakeAt(at, loginEvent("192.0.2.9", "eve"), 1)
	for chunk := range one.ExportAt(at) {
		must.Get(two.ImportAt(at, chunk))(t)
	}
	for _, user := range []string{"ada", "bob"} {
		if d := two.TakeAt(at, loginEvent("192.0.2.1", user), 1); !d.Allowed {
			t.Errorf("%s, counted twice, is refused", user)
		}
	}
}

func TestDistinctFieldIsChecked(t *testing.T) {
	for _, x := range []struct {
		ban  ratelimit.Ban
		want string
	}{
		{ratelimit.Ban{Of: ratelimit.Distinct, Span: time.Second, For: time.Second}, "field: missing"},
		{ratelimit.Ban{Of: ratelimit.Distinct, Field: "client", Span: time.Second, For: time.Second}, "the key has one value of it"},
		{ratelimit.Ban{Of: ratelimit.Hits, Field: "user", Span: time.Second, For: time.Second}, "must be left out, as hits are counted"},
	} {
		if _, err := ratelimit.NewSet(ratelimit.SetConfig{}, distinctRule(t, x.ban)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("the error is %v, want one with %q", err, x.want)
		}
	}
}

// BenchmarkTakeDistinct takes events of 10,000 clients as one of ten users each, and of one client as one of a thousand.
func BenchmarkTakeDistinct(b *testing.B) {
	for _, x := range []struct{ clients, users int }{{10_000, 10}, {1, 1000}} {
		b.Run(fmt.Sprintf("users=%d", x.users), func(b *testing.B) {
			l := mustLimiter(b, mustSet(b, distinctRule(b, ratelimit.Ban{After: 2000, Of: ratelimit.Distinct, Field: "user", Span: time.Hour, For: time.Hour})), ratelimit.Config{})
			var events []*match.Event
			for i := range x.clients * x.users {
				events = append(events, loginEvent(fmt.Sprint("192.0.2.", i%x.clients), fmt.Sprint("user", i/x.clients)))
			}
			rnd := rand.New(rand.NewPCG(1, 0))
			b.ReportAllocs()
			for b.Loop() {
				l.Take(events[rnd.IntN(len(events))])
			}
		})
	}
}
