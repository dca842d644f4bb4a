package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/must"
)

// The outcomes of decisions have the same names and the same counts wherever the
// server shows them.
func TestServeOutcomes(t *testing.T) {
	s := serve(t, "--rules", writeRules(t, `version: 1
limits:
  - {name: login, key: client, when: {path: /login}, limit: 3 per 1h, ban: {after: 2 refusals in 1h, for: 1h}}
`))
	c := s.dial()
	for range 10 { // 3 allowed, 2 refused, 5 banned
		c.say("CHECK", "client", "192.0.2.1", "path", "/login")
	}
	for range 4 {
		c.say("CHECK", "client", "192.0.2.1", "path", "/")
	}
	c.say("TAKE", "nothing", "k") // an error
	want := map[string]uint64{"allowed": 3, "refused": 2, "banned": 5, "unmatched": 4, "errors": 1}
	wantRule := map[string]uint64{"allowed": 3, "refused": 2, "banned": 5, "shadow": 0}

	expect := func(where string, got, want map[string]uint64) {
		t.Helper()
		for name := range want {
			if _, ok := got[name]; !ok {
				t.Errorf("%s has no %q", where, name)
			}
		}
		maps.DeleteFunc(got, func(name string, _ uint64) bool { _, ok := want[name]; return !ok })
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", where, got, want)
		}
	}
	expect("INFO", countsIn(c.say("INFO", "stats"), "decisions_", ":"), want)
	metrics := fetch(t, s.http+"/metrics")
	expect("/metrics", outcomesIn(metrics, "lately_decisions_total{"), map[string]uint64{"allowed": 3, "refused": 2, "banned": 5, "unmatched": 4})
	expect("the rule in /metrics", outcomesIn(metrics, "lately_events_total{"), map[string]uint64{"allowed": 3, "refused": 2, "banned": 5, "shadow": 0, "skipped": 0})
	if !strings.Contains(metrics, "\nlately_decision_errors_total 1\n") {
		t.Error("/metrics has not one error")
	}
	var status struct{ Totals map[string]uint64 }
	decode(t, fetch(t, s.http+"/v1/status"), &status)
	expect("/v1/status", status.Totals, want)
	var book struct {
		Rules []struct{ Stats map[string]uint64 }
	}
	decode(t, fetch(t, s.http+"/v1/rules"), &book)
	expect("/v1/rules", book.Rules[0].Stats, wantRule)
	expect("the stream", streamTotals(t, s.http), want)

	told := must.Get(client.New(s.http, client.Config{}))(t)
	if got, err := told.Status(t.Context()); err != nil || got.Totals != (api.Totals{Allowed: 3, Refused: 2, Banned: 5, Unmatched: 4, Errors: 1}) {
		t.Errorf("client: %+v, %v", got.Totals, err)
	}
	out := must.Get(exec.Command("lately", "status", "--json", "--addr", s.http).Output())(t)
	decode(t, string(out), &status)
	expect("lately status --json", status.Totals, want)

	// Rates are made of samples, one a second.
	var rates struct {
		Rates []struct {
			All   map[string]uint64
			Rules map[string]map[string]uint64
		}
	}
	for len(rates.Rates) != 1 || rates.Rates[0].All["errors"] == 0 {
		decode(t, fetch(t, s.http+"/v1/rates?span=60s&points=1&rules=1"), &rates)
	}
	expect("/v1/rates", rates.Rates[0].All, want)
	expect("the rule in /v1/rates", rates.Rates[0].Rules["login"], wantRule)
}

func fetch(t testing.TB, url string) string {
	t.Helper()
	answer := must.Get(http.Get(url))(t)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", url, answer.StatusCode, body, err)
	}
	return string(body)
}

func decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
}

// countsIn returns the lines "prefix name separator count" of text by name; a prefix
// that a line lacks is not needed.
func countsIn(text, prefix, separator string) map[string]uint64 {
	counts := make(map[string]uint64)
	for line := range strings.Lines(text) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), separator)
		if count, err := strconv.ParseUint(n, 10, 64); err == nil {
			counts[strings.TrimPrefix(name, prefix)] = count
		}
	}
	return counts
}

// outcomesIn returns the counts of a series by the label outcome.
func outcomesIn(metrics, series string) map[string]uint64 {
	counts := make(map[string]uint64)
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, series) {
			continue
		}
		_, rest, _ := strings.Cut(line, `outcome="`)
		name, _, _ := strings.Cut(rest, `"`)
		var n float64
		fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &n)
		counts[name] += uint64(n)
	}
	return counts
}

// streamTotals returns the totals of the first event "rates" of a server's stream.
func streamTotals(t testing.TB, base string) map[string]uint64 {
	t.Helper()
	answer := must.Get(http.Get(base + "/v1/events"))(t)
	defer answer.Body.Close()
	rated := false
	for in := bufio.NewScanner(answer.Body); in.Scan(); {
		switch line := in.Text(); {
		case line == "event: rates":
			rated = true
		case rated && strings.HasPrefix(line, "data: "):
			var event struct{ Totals map[string]uint64 }
			decode(t, strings.TrimPrefix(line, "data: "), &event)
			return event.Totals
		}
	}
	t.Fatal("the stream has no rates")
	return nil
}
