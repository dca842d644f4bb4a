package accesslogtest_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/accesslogtest"
)

// An event is what the slow reader below makes of a line.
type event struct {
	sec    int64
	client string
	path   string
}

var sshdLine = regexp.MustCompile(`^(.{15}) gate sshd\[\d+\]: Failed password for .* from (\S+) port \d+ ssh2$`)

// read is a reader of its own, so that a mistake of the generator is not
// repeated by its counterpart in package accesslog.
func read(t *testing.T, c accesslogtest.Config, log []byte) (events []event, bad int) {
	t.Helper()
	if len(log) > 0 && log[len(log)-1] != '\n' {
		t.Fatal("the last line does not end")
	}
	for text := range strings.Lines(string(log)) {
		if e, ok := readLine(t, c, strings.TrimSuffix(text, "\n")); ok {
			events = append(events, e)
		} else {
			bad++
		}
	}
	return events, bad
}

func readLine(t *testing.T, c accesslogtest.Config, text string) (event, bool) {
	t.Helper()
	const zoned = "02/Jan/2006:15:04:05 -0700"
	var client, at, request string
	layout := zoned
	switch c.Format {
	case accesslogtest.JSONNginx:
		var fields map[string]string
		if json.Unmarshal([]byte(text), &fields) != nil {
			return event{}, false
		}
		client, at, request = fields["remote_addr"], fields["time_local"], fields["request"]
	case accesslogtest.SyslogSSHD:
		m := sshdLine.FindStringSubmatch(text)
		if m == nil {
			return event{}, false
		}
		client, at, layout = m[2], m[1]+" 2026", "Jan _2 15:04:05 2006"
	default:
		quoted := strings.Split(text, `"`)
		words := strings.Fields(quoted[0])
		if len(quoted) != 7 || len(words) != 5 || len(strings.Fields(quoted[2])) != 2 {
			return event{}, false
		}
		client, at, request = words[0], strings.Trim(words[3]+" "+words[4], "[]"), quoted[1]
	}
	when, err := time.Parse(layout, at)
	if err != nil {
		t.Fatalf("time %q in line %q: %v", at, text, err)
	}
	e := event{sec: when.Unix(), client: client}
	if method, target, ok := strings.Cut(request, " "); ok && method != "" {
		target, _, _ = strings.Cut(target, " ")
		e.path, _, _ = strings.Cut(target, "?")
	}
	return e, true
}

// truthOf counts what a Truth says, the slow way. The bursts come from want,
// with their lines counted again.
func truthOf(log []byte, events []event, bad int, c accesslogtest.Config, want accesslogtest.Truth) accesslogtest.Truth {
	got := accesslogtest.Truth{Lines: len(events) + bad, Bytes: int64(len(log)), Bad: bad}
	clients := map[string]bool{}
	var first, last int64
	for i, e := range events {
		clients[e.client] = true
		if i == 0 {
			first, last = e.sec, e.sec
		}
		if e.sec < last {
			got.Late++
			got.MaxLate = max(got.MaxLate, time.Duration(last-e.sec)*time.Second)
		}
		first, last = min(first, e.sec), max(last, e.sec)
	}
	got.Clients = len(clients)
	if len(events) > 0 {
		zone := time.UTC
		if !c.Start.IsZero() {
			zone = c.Start.Location()
		}
		got.First, got.Last = time.Unix(first, 0).In(zone), time.Unix(last, 0).In(zone)
	}
	recount := func(b accesslogtest.Burst) accesslogtest.Burst {
		b.Lines = 0
		for _, e := range events {
			if slices.Contains(b.Clients, e.client) || b.Clients == nil && b.Path != "" && e.path == b.Path {
				b.Lines++
			}
		}
		return b
	}
	got.Crawler, got.Flood, got.Crowd = recount(want.Crawler), recount(want.Flood), recount(want.Crowd)
	got.HotProduct = recount(want.HotProduct)
	return got
}

func checkTruth(t *testing.T, c accesslogtest.Config) {
	t.Helper()
	log, want := write(t, c)
	events, bad := read(t, c, log)
	if got := truthOf(log, events, bad, c, want); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n the log holds %+v\nthe Truth says %+v", c, got, want)
	}
	for _, b := range []accesslogtest.Burst{want.Crawler, want.Flood, want.Crowd, want.HotProduct} {
		for _, e := range events {
			mine := slices.Contains(b.Clients, e.client) || b.Clients == nil && b.Path != "" && e.path == b.Path
			if !mine {
				continue
			}
			if e.sec < b.Begin.Unix() || e.sec >= b.End.Unix() || b.Path != "" && e.path != b.Path {
				t.Fatalf("%+v: %+v is not of burst %+v", c, e, b)
			}
		}
	}
	start := c.Start
	if start.IsZero() {
		start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	}
	length := c.Duration
	if length == 0 {
		length = 24 * time.Hour
	}
	if len(events) > 0 && (want.First.Before(start.Truncate(time.Second)) || !want.Last.Before(start.Add(length))) {
		t.Errorf("%+v: times from %v to %v leave the stretch", c, want.First, want.Last)
	}
	if c.Late == 0 && want.Late != 0 || want.MaxLate > c.Late {
		t.Errorf("%+v: %d late lines, by at most %v", c, want.Late, want.MaxLate)
	}
	wantLines := c.Lines
	if wantLines == 0 {
		wantLines = 100_000
	}
	if want.Lines != wantLines {
		t.Errorf("%+v: %d lines", c, want.Lines)
	}
}

func TestTruth(t *testing.T) {
	checkTruth(t, accesslogtest.Config{})
	for _, format := range accesslogtest.Formats() {
		for _, late := range []time.Duration{0, 90 * time.Second} {
			checkTruth(t, accesslogtest.Config{Format: format, Lines: 20_000, Late: late})
		}
	}
}

func TestTruthOfRandomConfigs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 25 {
		c := accesslogtest.Config{
			Seed:     rng.Uint64(),
			Format:   accesslogtest.Formats()[rng.IntN(3)],
			Lines:    1 + rng.IntN([]int{3, 100, 3000, 30_000}[rng.IntN(4)]),
			Start:    time.Date(2026, 1, 1+rng.IntN(200), rng.IntN(24), rng.IntN(60), rng.IntN(60), 0, time.UTC),
			Duration: time.Duration(1+rng.IntN([]int{3, 100, 5000, 500_000}[rng.IntN(4)])) * time.Second,
			Clients:  rng.IntN([]int{2, 100, 150_000}[rng.IntN(3)]),
			Late:     time.Duration(rng.IntN(2)*rng.IntN(200)) * time.Second,
		}
		c.HighBytes = c.Format == accesslogtest.CLF && rng.IntN(2) == 0
		if c.Format != accesslogtest.SyslogSSHD {
			c.Start = c.Start.In(time.FixedZone("", 3600*(rng.IntN(24)-12)+1800))
		}
		checkTruth(t, c)
	}
}

// What the demo shows must be true: only the flood passes 60 requests in 60 s,
// only it and the crowd pass 100 in 300 s, and only what these two and the run
// on the hot product ask for reaches 200 in 60 s.
func TestOnlyThePlantedIsBusy(t *testing.T) {
	for seed := range uint64(2) {
		c := accesslogtest.Config{Seed: seed}
		log, truth := write(t, c)
		events, _ := read(t, c, log)
		minute := busy(events, 60, 60, func(e event) string { return e.client })
		if want := truth.Flood.Clients; !slices.Equal(minute, want) {
			t.Errorf("seed %d: over 60 in 60 s are %v, want %v", seed, minute, want)
		}
		five := busy(events, 100, 300, func(e event) string { return e.client })
		want := slices.Sorted(slices.Values(append(truth.Crowd.Clients, truth.Flood.Clients...)))
		if !slices.Equal(five, want) {
			t.Errorf("seed %d: over 100 in 300 s are %v, want %v", seed, five, want)
		}
		paths := busy(events, 199, 60, func(e event) string { return e.path })
		if want := []string{truth.Flood.Path, truth.HotProduct.Path, truth.Crowd.Path}; !slices.Equal(paths, want) {
			t.Errorf("seed %d: paths with 200 in 60 s are %v, want %v", seed, paths, want)
		}
	}
}

// busy returns the keys with more than n events in some (t-span, t], sorted.
func busy(events []event, n int, span int64, key func(event) string) []string {
	times := map[string][]int64{}
	for _, e := range events {
		if k := key(e); k != "" {
			times[k] = append(times[k], e.sec)
		}
	}
	var found []string
	for k, at := range times {
		for i := n; i < len(at); i++ {
			if at[i]-at[i-n] < span {
				found = append(found, k)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}
