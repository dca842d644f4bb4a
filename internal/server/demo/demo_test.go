package demo

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/test/must"
	"go.uber.org/goleak"
)

func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	file := must.Get(Rules())(t)
	if len(file.Warnings) > 0 {
		t.Errorf("the rules of the demo have warnings: %v", file.Warnings)
	}
	return must.Get(engine.New(engine.Config{Rules: file, KeepEvents: 1 << 20}))(t)
}

// banned returns the keys that are banned.
func banned(t *testing.T, e *engine.Engine) (keys []string) {
	t.Helper()
	for r, err := range e.Bans().All() {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, r.Values()[0])
	}
	return keys
}

// Within five seconds every list in the console has entries: decisions with each outcome, top keys, a ban, a hot key,
// refused keys, and events to try a draft on.
func TestConcurrentFirstFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t)
		d := New(e, 1)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); d.Run(ctx) }()
		time.Sleep(5 * time.Second)
		stop()
		<-ended
		totals := e.Status().Totals
		if totals.Allowed < 100 || totals.Refused == 0 || totals.Banned == 0 || totals.Errors > 0 {
			t.Errorf("totals are %+v", totals)
		}
		for _, counter := range []string{"requests", "pages"} {
			if top, err := e.Top(counter, 10, time.Minute, keys.Filter{}); err != nil || len(top) != 10 {
				t.Errorf("top keys of %s: %v, %v", counter, top, err)
			}
		}
		if len(banned(t, e)) == 0 {
			t.Error("no ban")
		}
		if hot, err := e.Hot().List("product"); err != nil || len(hot) != 1 {
			t.Errorf("hot keys: %v, %v", hot, err)
		}
		events, ok := e.KeptEvents()
		if !ok {
			t.Error("no events are kept")
		} else {
			events.Close()
		}
		e.Close()
	})
}

// In ten minutes people and the crowd are never refused, crawling and guessing clients are banned, and the product is hot
// at all times. The rate has a bound, so that a demo costs little.
func TestTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t)
		defer e.Close()
		d := New(e, 7)
		most, cold := 0, 0
		for second := range 600 {
			made := 0
			for range stepsPerSecond {
				d.step()
				made += len(d.traffic.made)
				time.Sleep(time.Second / stepsPerSecond)
			}
			most = max(most, made)
			if hot, _ := e.Hot().List("product"); second >= 5 && len(hot) == 0 {
				cold++
			}
		}
		if cold > 0 {
			t.Errorf("no key was hot in %d of 595 seconds: the page of hot keys was empty", cold)
		}
		if most > 170 {
			t.Errorf("%d events in a second, want at most 170", most)
		}
		bans, refused := banned(t, e), 0
		for _, key := range bans {
			if !strings.HasPrefix(key, "203.0.113.") && !strings.HasPrefix(key, "198.51.100.") {
				t.Errorf("%s is banned", key)
			}
		}
		if len(bans) < 5 {
			t.Errorf("%d keys are banned", len(bans))
		}
		all := must.Get(e.Refused(1000, time.Hour))(t)
		for _, k := range all {
			if strings.HasPrefix(k.Key.Text[0], "192.0.2.") || strings.HasPrefix(k.Key.Text[0], "2001:db8:") {
				refused++
			}
		}
		if refused > 0 {
			t.Errorf("%d of the people and the crowd were refused", refused)
		}
	})
}

func TestSameSeedSameTraffic(t *testing.T) {
	a, b, other := newTraffic(3), newTraffic(3), newTraffic(4)
	same := true
	for range 1000 {
		of := slices.Clone(a.step())
		if !slices.Equal(of, b.step()) {
			t.Fatal("the same seed gives other events")
		}
		same = same && slices.Equal(of, other.step())
	}
	if same {
		t.Error("another seed gives the same events")
	}
}

func TestConcurrentStop(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := newEngine(t)
	defer e.Close()
	d := New(e, 1)
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(context.Background()) }()
	if !d.Running() {
		t.Error("it does not run")
	}
	d.Stop()
	d.Stop()
	<-ended
	if d.Running() {
		t.Error("it runs after Stop")
	}
}

func BenchmarkSecond(b *testing.B) {
	file := must.Get(Rules())(b)
	e := must.Get(engine.New(engine.Config{Rules: file}))(b)
	defer e.Close()
	d := New(e, 1)
	for b.Loop() {
		for range stepsPerSecond {
			d.step()
		}
	}
}
