package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/keptevents"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// keeping returns an engine that keeps events in that many bytes.
func keeping(t testing.TB, budget int64) *engine.Engine {
	t.Helper()
	e := must.Get(engine.New(engine.Config{Rules: parse(t, someRules), KeepEvents: budget}))(t)
	t.Cleanup(e.Close)
	return e
}

// kept returns the events that e keeps, as text.
func kept(t testing.TB, e *engine.Engine) (all []string, missed keptevents.Missed, since time.Time) {
	t.Helper()
	k, ok := e.KeptEvents()
	if !ok {
		t.Fatal("no events are kept")
	}
	defer k.Close()
	for ev := range k.All() {
		all = append(all, text(ev))
	}
	return all, k.Missed, k.Since
}

func text(ev *match.Event) string {
	var b strings.Builder
	for name, value := range ev.Fields() {
		fmt.Fprintf(&b, "%s=%q ", name, value)
	}
	return b.String()
}

// TestKeptEvents keeps random events with all of their fields, whatever bytes they have, and
// counts what it does not keep.
func TestKeptEvents(t *testing.T) {
	rnd := randtest.New(t)
	e := keeping(t, 4<<20)
	began := time.Now()
	var want []string
	missed := keptevents.Missed{}
	sessions := []*engine.Session{e.Session(), e.Session(), e.Session()}
	for range 3000 {
		c := sessions[rnd.IntN(len(sessions))]
		value := func() string {
			b := make([]byte, rnd.IntN(40))
			for i := range b {
				b[i] = byte(rnd.IntN(256))
			}
			return string(b)
		}
		switch rnd.IntN(20) {
		case 0:
			must.Get(c.Take("per-client", 1, "192.0.2.1"))(t)
			missed.Keys++
		case 1:
			check(t, c, event(c, "client", value(), "agent", strings.Repeat("a", 9000)), 1)
			missed.Long++
		default:
			ev := event(c, "client", value(), "path", "/"+value(), "user", value(), "tenant", value())
			cost := uint64(1)
			if rnd.IntN(5) == 0 {
				cost = 2
				missed.Costs++
			}
			want = append(want, text(ev))
			check(t, c, ev, cost)
		}
	}
	got, gotMissed, since := kept(t, e)
	if gotMissed != missed || since.After(began) {
		t.Errorf("missed %+v since %v, want %+v since before %v", gotMissed, since, missed, began)
	}
	same(t, got, want)
}

// same compares two lists in any order.
func same(t *testing.T, got, want []string) {
	t.Helper()
	count := make(map[string]int)
	for _, s := range want {
		count[s]++
	}
	for _, s := range got {
		count[s]--
	}
	for s, n := range count {
		if n != 0 {
			t.Fatalf("%+d times %s, of %d events; want %d", -n, s, len(got), len(want))
		}
	}
}

// TestKeepNothing keeps nothing by default.
func TestKeepNothing(t *testing.T) {
	if k, ok := newEngine(t, someRules).KeptEvents(); ok {
		t.Errorf("%+v", k)
	}
}

// BenchmarkKeepEvents is a check without kept events, and with them.
func BenchmarkKeepEvents(b *testing.B) {
	for _, budget := range []int64{0, 64 << 20} {
		b.Run(fmt.Sprintf("%dMiB", budget>>20), func(b *testing.B) {
			const text = "version: 1\nlimits: [{name: a, key: client, limit: 4000000000 per 1m}]\n"
			e := must.Get(engine.New(engine.Config{Rules: parse(b, text), KeepEvents: budget}))(b)
			defer e.Close()
			c := e.Session()
			b.ReportAllocs()
			for b.Loop() {
				check(b, c, event(c, "client", "192.0.2.1", "method", "GET", "path", "/product/4711"), 1)
			}
		})
	}
}
