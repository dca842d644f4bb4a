package httpapi

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

// seriesOf returns the lines of /metrics that are series, without their values.
func seriesOf(t *testing.T, s *Server) map[string]bool {
	t.Helper()
	w := get(s, "/metrics")
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	names := make(map[string]bool)
	for line := range strings.Lines(w.Body.String()) {
		if name, _, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
			names[name] = true
		}
	}
	return names
}

// A hundred thousand keys, bans for a hundredth of them, and counters with all names add no series.
func TestSeriesAreFixed(t *testing.T) {
	s := newServer(t, func(c *Config) {
		c.Storage = func() Storage { return Storage{SnapshotAge: 90 * time.Second} }
	})
	get(s, "/metrics") // so that the counter of scrapes exists
	before := seriesOf(t, s)
	caller := s.Engine.Session()
	addr := netip.MustParseAddr("10.0.0.0")
	for i := range 100_000 {
		addr = addr.Next()
		ev := caller.Event()
		ev.SetNamedString("client", addr.String())
		ev.SetNamedString("path", "/")
		caller.Check(ev, 1, engine.Terms{})
		if i%1000 == 0 {
			must.Get(s.Engine.Bans().Ban("flood", []string{addr.String()}, time.Minute, "", ""))(t)
		}
	}
	for i := range 10 {
		must.Do(t, caller.Add(fmt.Sprint("made-", i), 1, "k"))
	}
	after := seriesOf(t, s)
	for name := range after {
		if !before[name] {
			t.Errorf("there is a new series: %s", name)
		}
		if strings.Contains(name, "10.0.") || strings.Contains(name, "made-") {
			t.Errorf("a series has a key in it: %s", name)
		}
	}
	for _, want := range []string{
		`lately_decisions_total{outcome="allowed"}`, "lately_snapshot_age_seconds", `lately_connections{listener="http"}`, "lately_subscribers",
		`lately_events_total{outcome="allowed",rule="per-client"}`, `lately_build_info{version="devel"}`, "go_goroutines",
	} {
		if !after[want] {
			t.Errorf("no series %s", want)
		}
	}
	if !strings.Contains(get(s, "/metrics").Body.String(), "lately_decisions_total{outcome=\"allowed\"} 100000\n") {
		t.Error("the decisions are not counted")
	}
}

// TestThrottleMetrics has the metrics of CL.THROTTLE show a key.
func TestThrottleMetrics(t *testing.T) {
	s := newServer(t, nil)
	if w := post(s, "/v1/throttle", `{"key":"k","burst":1,"count":1,"period_ms":60000}`); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	text := get(s, "/metrics").Body.String()
	for _, want := range []string{"\nlately_throttle_keys 1\n", "\nlately_throttle_memory_budget_bytes 6.7108864e+07\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
