package accesslogtest_test

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/randtest"
)

// An event is what the slow reader below makes of a line.
type event struct {
	sec    int64
	client string
	path   string
}

// read is a reader of its own, so that a mistake of the generator is not repeated by its counterpart in package accesslog.
func read(t *testing.T, log []byte) (events []event, bad int) {
	t.Helper()
	if len(log) > 0 && log[len(log)-1] != '\n' {
		t.Fatal("the last line does not end")
	}
	for text := range strings.Lines(string(log)) {
		if e, ok := readLine(t, strings.TrimSuffix(text, "\n")); ok {
			events = append(events, e)
		} else {
			bad++
		}
	}
	return events, bad
}

func readLine(t *testing.T, text string) (event, bool) {
	t.Helper()
	quoted := strings.Split(text, `"`)
	words := strings.Fields(quoted[0])
	if len(quoted) != 7 || len(words) != 5 || len(strings.Fields(quoted[2])) != 2 {
		return event{}, false
	}
	at := strings.Trim(words[3]+" "+words[4], "[]")
	when, err := time.Parse("02/Jan/2006:15:04:05 -0700", at)
	if err != nil {
		t.Fatalf("time %q in line %q: %v", at, text, err)
	}
	e := event{sec: when.Unix(), client: words[0]}
	if method, target, ok := strings.Cut(quoted[1], " "); ok && method != "" {
		target, _, _ = strings.Cut(target, " ")
		e.path, _, _ = strings.Cut(target, "?")
	}
	return e, true
}

// truthOf counts the contents of a Truth in the slow way. The bursts come from want, with their lines counted again.
func truthOf(events []event, bad int, want accesslogtest.Truth) accesslogtest.Truth {
	got := accesslogtest.Truth{Lines: len(events) + bad, Bad: bad}
	clients := map[string]bool{}
	for _, e := range events {
		clients[e.client] = true
	}
	got.Clients = len(clients)
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
	events, bad := read(t, log)
	if got := truthOf(events, bad, want); !reflect.DeepEqual(got, want) {
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
	length := cmp.Or(c.Duration, 24*time.Hour)
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).Unix()
	if !slices.IsSortedFunc(events, func(a, b event) int { return cmp.Compare(a.sec, b.sec) }) {
		t.Errorf("%+v: the lines are not in the order of time", c)
	}
	if len(events) > 0 && (events[0].sec < start || events[len(events)-1].sec >= start+int64(length.Seconds())) {
		t.Errorf("%+v: times from %d to %d are not all within the log", c, events[0].sec, events[len(events)-1].sec)
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
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 25 {
		checkTruth(t, accesslogtest.Config{
			Seed:     rng.Uint64(),
			Lines:    1 + rng.IntN([]int{3, 100, 3000, 30_000}[rng.IntN(4)]),
			Duration: time.Duration(1+rng.IntN([]int{3, 100, 5000, 500_000}[rng.IntN(4)])) * time.Second,
		})
	}
}

// The demo relies on these facts: only the flood passes 60 requests in 60 s, only it and the crowd pass 100 in 300 s, and
// only the paths requested by these two and the run on the hot product reach 200 in 60 s.
func TestOnlyThePlantedIsBusy(t *testing.T) {
	for seed := range uint64(2) {
		c := accesslogtest.Config{Seed: seed}
		log, truth := write(t, c)
		events, _ := read(t, log)
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
