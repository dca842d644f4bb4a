package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// The slots of a window are all that it has a part of: they add up to hi, and all
// but the one it begins in to lo. They lie side by side, and cover it.
func TestSlotsOfAKey(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, someRules)
		c := e.Session()
		cut, whole := false, false
		for range 400 {
			step := time.Duration(rnd.Int64N(int64(7 * time.Second)))
			if rnd.IntN(2) == 0 {
				step = step.Round(100 * time.Millisecond)
			}
			if time.Sleep(step); rnd.IntN(3) == 0 {
				time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute - 1))) // the end of a slot
			}
			must.Do(t, c.Add("requests", rnd.Uint64N(5), "192.0.2.1"))
			now := e.Now()
			r, err := e.Inspect([]string{"client"}, []string{"192.0.2.1"})
			if err != nil || len(r.Counters) != 2 {
				t.Fatal(r, err)
			}
			for _, w := range r.Counters {
				sum := uint64(0)
				for i, s := range w.Slots {
					sum += s.Count
					if i > 0 && s.Start.Sub(w.Slots[i-1].Start) != w.Span.Duration()/10 {
						t.Fatalf("slots %v", w.Slots)
					}
				}
				first := w.Slots[0]
				begins := now.Add(-w.Span.Duration() + 1) // the first moment in it
				partly := first.Start.Before(begins)
				lo := sum
				if partly {
					lo -= first.Count
				}
				cut, whole = cut || partly && w.Hi > w.Lo, whole || !partly
				if sum != w.Hi || lo != w.Lo || first.Start.After(begins) || !first.Start.Add(w.Span.Duration()/10).After(begins) {
					t.Fatalf("at %v window %v has %d to %d; slots %v", now, w.Span, w.Lo, w.Hi, w.Slots)
				}
			}
		}
		if !cut || !whole {
			t.Errorf("a slot was cut: %t; none was: %t; no test", cut, whole)
		}
	})
}

// A report has the bans of its key only.
func TestBansOfAKey(t *testing.T) {
	e := newEngine(t, someRules)
	for _, user := range []string{"eve", "bob"} {
		must.Get(e.Bans().Ban("flood", []string{user}, time.Hour, user, ""))(t)
	}
	r, err := e.Inspect([]string{"user"}, []string{"eve"})
	if err != nil || len(r.Bans) != 1 || r.Bans[0].Reason != "eve" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = e.Inspect([]string{"user"}, []string{"ada"}); err != nil || len(r.Bans) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A key with alternatives is looked up by its name and by values with their alternatives.
func TestKeyOfAlternatives(t *testing.T) {
	e := newEngine(t, "version: 1\nlimits: [{name: guess, key: user | client, limit: 5 per 10m}]")
	c := e.Session()
	for _, fields := range [][]string{{"user", "eve", "client", "192.0.2.1"}, {"client", "192.0.2.1"}, {"client", "192.0.2.1"}} {
		must.Get(c.Check(event(c, fields...), 1, engine.Terms{}))(t)
	}
	for value, used := range map[string]uint64{"user:eve": 1, "client:192.0.2.1": 2, "user:192.0.2.1": 0, "client:eve": 0} {
		r, err := e.Inspect([]string{"user | client"}, []string{value})
		if err != nil || len(r.Rules) != 1 || r.Rules[0].Decision.Remaining != 4-used {
			t.Errorf("%s: %+v, %v; want a rule under which %d are used", value, r, err, used)
		}
		if d, err := c.PeekRule("guess", 1, value); err != nil || d.Remaining != 4-used {
			t.Errorf("%s: %+v, %v", value, d, err)
		}
	}
	if _, err := e.Inspect([]string{"user | cleint"}, []string{"user:eve"}); err == nil || !strings.Contains(err.Error(), "client") {
		t.Errorf("a misspelled alternative: %v", err)
	}
}
