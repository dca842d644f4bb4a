package replay_test

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/replay"
)

// TestSlidingOracle holds the default algorithm to exact: the same decisions
// for limits of up to 128, and for larger ones never more than N allowed in any
// true window, and at least 99 % of what exact allows.
func TestSlidingOracle(t *testing.T) {
	eachLog(t, func(t *testing.T, c replay.Config, want *oracleFile) {
		if want.Client == nil {
			t.Skip("SKIP: the log has no clients")
		}
		if testing.Short() && want.Lines > 50_000 {
			t.Skip("TestOracle reads it")
		}
		var clients []hit // read by the first limit that needs them
		together := make(map[bool][]string)
		for _, name := range slices.Sorted(maps.Keys(want.Client.Limit)) {
			counted := strings.HasSuffix(name, "/rejected-counted")
			n := numbers(t, name)
			if n[0] <= 128 || counted {
				together[counted] = append(together[counted], name)
				continue
			}
			limit := whatIf(t, replay.Limit, "%d/%ds", n[0], n[1])
			c := c
			c.WhatIfs = []replay.WhatIf{limit}
			r, decisions := mustDecide(t, c)
			if got, exact := *r.Rules[0].Allowed, want.Client.Limit[name].Allowed; float64(got) < 0.99*float64(exact) {
				t.Errorf("limit %s: %d allowed, less than 99 %% of exact's %d", name, got, exact)
			}
			if clients == nil {
				clients = clientsOf(t, c.Files[0], r.Format, c.Year)
			}
			checkWindows(t, clients, decisions, limit)
		}
		for counted, names := range together {
			c := c
			c.CountRefused = counted
			for _, name := range names {
				n := numbers(t, name)
				c.WhatIfs = append(c.WhatIfs, whatIf(t, replay.Limit, "%d/%ds", n[0], n[1]))
			}
			r := mustRun(t, c)
			for i, name := range names {
				got, exact := r.Rules[i], want.Client.Limit[name]
				if got.N <= 128 && got.SHA256 != exact.SHA256 {
					t.Errorf("limit %s: digest %s, want the digest of exact, %s", name, got.SHA256, exact.SHA256)
				}
				if *got.Allowed > exact.Allowed {
					t.Errorf("limit %s: %d allowed, more than exact's %d though refused events count", name, *got.Allowed, exact.Allowed)
				}
			}
		}
	})
}

// clientsOf reads the clients of a log on one core, in the order of judging.
func clientsOf(t *testing.T, path, format string, year int) []hit {
	t.Helper()
	data := readFile(t, path)
	known := must.Get(accesslog.ParseFormat(format))(t)
	parser := must.Get(known.NewParser(accesslog.Options{Year: year}))(t)
	var hits []hit
	var ev match.Event
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if parser.Parse(line, &ev) {
			hits = append(hits, hit{ev.Time.Unix() * 1000, string(ev.Get(match.Client))})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(a.t, b.t) })
	return hits
}

// checkWindows counts what was allowed in every true window that ends with an allowed event: the fullest windows are among
// these.
func checkWindows(t *testing.T, hits []hit, decisions []byte, w replay.WhatIf) {
	t.Helper()
	if len(hits) != len(decisions) {
		t.Fatalf("%d decisions about %d events", len(decisions), len(hits))
	}
	allowed := make(map[string][]int64)
	for i, h := range hits {
		if decisions[i] == 'A' {
			allowed[h.key] = append(allowed[h.key], h.t)
		}
	}
	for _, times := range allowed {
		for i := int(w.N); i < len(times); i++ {
			if times[i-int(w.N)] > times[i]-w.Span.Milliseconds() {
				t.Fatalf("limit %s: a client has more than %d allowed in the %v up to %s", w.Text, w.N, w.Span, epochText(times[i]))
			}
		}
	}
}
