package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
)

// A rule that gets another key counts from 0 again. Rates are the difference
// between two totals, and never negative.
func TestRatesOfARestartedRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, someRules)
		c := e.Session()
		for range 3 {
			c.Check(event(c, "client", "192.0.2.1", "user", "ada"), 1, engine.Terms{})
		}
		time.Sleep(1500 * time.Millisecond)
		other := strings.Replace(someRules, "name: per-client\n    key: client", "name: per-client\n    key: user", 1)
		if _, err := e.Replace(parse(t, other), true); err != nil || other == someRules {
			t.Fatal(err)
		}
		for range 2 {
			c.Check(event(c, "client", "192.0.2.1", "user", "ada"), 1, engine.Terms{})
		}
		time.Sleep(time.Second)
		rates, err := e.Rates(10*time.Second, 10, true)
		if err != nil || len(rates) != 2 || rates[0].Rules["per-client"].Allowed != 3 || rates[1].Rules["per-client"].Allowed != 2 {
			t.Errorf("%+v, %v", rates, err)
		}
	})
}

// An engine younger than the span, or than a part of it, returns all its decisions since its start.
func TestRatesOfAYoungEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, someRules)
		c := e.Session()
		c.Check(event(c, "client", "192.0.2.1", "path", "/a"), 1, engine.Terms{})
		time.Sleep(50*time.Second + 500*time.Millisecond)
		for _, span := range []time.Duration{time.Minute, 15 * time.Minute, 24 * time.Hour} {
			rates, err := e.Rates(span, 12, true)
			var all uint64
			var long time.Duration
			for _, r := range rates {
				all += r.All.Allowed
				long += r.To.Sub(r.From)
			}
			if err != nil || all != 1 || long != 50*time.Second {
				t.Errorf("the last %v: %d decisions in %v of %d parts, %v; want 1 in 50s", span, all, long, len(rates), err)
			}
		}
	})
}

// TestRatesOfManyRules requests more rates by rule than the maximum.
func TestRatesOfManyRules(t *testing.T) {
	text := "version: 1\nlimits:\n"
	for i := range 300 {
		text += fmt.Sprintf("  - {name: r%d, key: client, limit: 5 per 1m}\n", i)
	}
	e := newEngine(t, text)
	for points, ok := range map[int]bool{1: true, 60: true, 64: true, 65: false, 1440: false} {
		if _, err := e.Rates(time.Minute, points, true); (err == nil) != ok {
			t.Errorf("%d points with rules: %v", points, err)
		}
		if _, err := e.Rates(time.Minute, points, false); err != nil {
			t.Errorf("%d points: %v", points, err)
		}
	}
}
