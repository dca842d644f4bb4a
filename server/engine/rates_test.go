package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/server/engine"
)

// An engine that is younger than the span, or than a part of it, tells all that it
// has decided since it began.
func TestRatesOfAYoungEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(engine.Config{Rules: parse(t, someRules)})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c := e.Caller()
		c.Check(event(c, "client", "192.0.2.1", "path", "/a"), 1)
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
