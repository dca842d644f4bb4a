package rules_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// TestBytesOfAlgorithms compares the bytes per key in docs/algorithms.md with a
// limiter's accounts, for keys with that many events in their window.
func TestBytesOfAlgorithms(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/algorithms.md"))(t)
	for _, c := range []struct {
		row, limit, algorithm string
		events                int
		stated                string
		from, to              float64
	}{
		{"`sliding`", "100 per 1m", "sliding", 3, "80 to 120", 80, 120},
		{"`sliding`", "100 per 1m", "sliding", 100, "8 to 12 per event up to N = 128", 800, 1200},
		{"`sliding`", "1000 per 1m", "sliding", 200, "240 to 290 above", 240, 290},
		{"`exact`", "1000 per 1m", "exact", 100, "8 to 12 per event", 800, 1200},
		{"`two-bucket`", "1000 per 1m", "two-bucket", 10, "50 to 110", 50, 110},
		{"`gcra`", "1000 per 1m", "gcra", 10, "50 to 110", 50, 110},
		{"`leaky-bucket`", "1000 per 1m", "leaky-bucket", 10, "50 to 110", 50, 110},
		{"`calendar`", "1000 per day", "calendar", 10, "50 to 110", 50, 110},
		{"`fixed`", "1000 per 1m", "fixed", 10, "50 to 110", 50, 110},
		{"`in-flight`", "100 at once for 1m", "in-flight", 100, "8 to 12 per event", 800, 1200},
	} {
		if row := rowOf(string(page), c.row); !strings.Contains(row, c.stated) {
			t.Errorf("the row of %s does not have %q: %s", c.algorithm, c.stated, row)
		}
		got := bytesPerKey(t, c.limit, c.algorithm, c.events)
		t.Logf("%s, %s, %d events: %.0f bytes per key", c.algorithm, c.limit, c.events, got)
		if got < 0.85*c.from || got > 1.15*c.to {
			t.Errorf("%s, %s, %d events: %.0f bytes per key; docs/algorithms.md states %s", c.algorithm, c.limit, c.events, got, c.stated)
		}
	}
}

// rowOf returns the first line of a table whose second cell begins with name.
func rowOf(page, name string) string {
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(strings.TrimSpace(cells[2]), name) {
			return line
		}
	}
	return ""
}

// half is the number of keys from which a table is filled to twice as many: its load depends on the number of keys since it
// last grew.
const half = 8192

// bytesPerKey returns the bytes per key after a number of events, 100 ms apart, as the mean over a doubling of the keys.
func bytesPerKey(t *testing.T, limit, algorithm string, events int) float64 {
	t.Helper()
	f := must.Get(rules.Parse("r", fmt.Appendf(nil, "version: 1\nlimits: [{name: a, key: client, limit: %s, algorithm: %s}]\n", limit, algorithm)))(t)
	limiter := must.Get(ratelimit.NewLimiter(f.Limits, ratelimit.Config{}))(t)
	begin, empty := time.Unix(1_800_000_000, 0), limiter.Stats().Bytes
	var e match.Event
	var sum float64
	samples := 0
	for i := range 2 * half {
		e.SetString(match.Client, fmt.Sprintf("192.0.%d.%d", i>>8, i&255))
		for n := range events {
			limiter.TakeAt(begin.Add(time.Duration(n)*100*time.Millisecond), &e, 1)
		}
		if i >= half && i%512 == 0 {
			sum += float64(limiter.Stats().Bytes-empty) / float64(i+1)
			samples++
		}
	}
	return sum / float64(samples)
}
