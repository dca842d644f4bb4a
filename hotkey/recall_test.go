package hotkey_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/test/must"
)

// longTests reports whether the tests that have a long form are to run it; it
// takes minutes:
//
//	LATELY_LONG=1 go test -run 'Recall|Traces' -timeout 2h -v ./hotkey
func longTests() bool { return os.Getenv("LATELY_LONG") != "" }

// A stream is events of keys that take turns, a fixed time apart.
type stream struct {
	name  string
	every float64 // nanoseconds between two events
	keys  int     // that take turns; 0: every event has a key of its own
	from  int64   // when it begins

	next int64 // the time of the next event
	n    int   // events so far
	key  []byte
}

// evenly returns the stream of that many keys with a rate for each, in events a second.
func evenly(name string, keys int, rate float64, from int64) *stream {
	return &stream{name: name, every: 1e9 / rate / float64(keys), keys: keys, from: from, next: from}
}

// once returns the stream of keys that come once, with that many a second.
func once(rate float64) *stream { return &stream{name: "cold", every: 1e9 / rate} }

// take returns the time and the key of the next event, and how many events that key then has.
func (s *stream) take() (at int64, key string, count int) {
	at, i := s.next, s.n
	count = 1
	if s.keys > 0 {
		i, count = s.n%s.keys, s.n/s.keys+1
	}
	s.key = strconv.AppendInt(append(append(s.key[:0], s.name...), ' '), int64(i), 36)
	s.n++
	s.next = s.from + int64(float64(s.n)*s.every)
	return at, string(s.key), count
}

// first returns the stream whose next event is first.
func first(streams []*stream) *stream {
	s := streams[0]
	for _, other := range streams[1:] {
		if other.next < s.next {
			s = other
		}
	}
	return s
}

// A flood is keys that come once, among which others are hot.
type flood struct {
	budget    int64
	threshold uint64
	span      time.Duration
	cold      int     // keys that come once, in all
	rate      float64 // of these, a second
	planted   int     // keys at 1.5 times the threshold
	late      bool    // half of them begin when half of the cold keys have come
	rules     int     // all the same but for their names
}

// found is what a detector made of a flood.
type found struct {
	hot     map[string]int64 // planted keys, by the end of their last hold
	false   int              // edges of other keys, or before the threshold
	gaps    int              // how often a planted key stopped being hot
	slowest int              // events until a planted key was hot for the first time
	stats   hotkey.Stats
	rss     []int64 // resident bytes, at every 200th of the flood
	took    time.Duration
}

// String returns the text of a result for a record.
func (got *found) String() string {
	second, last := got.resident()
	return fmt.Sprintf("%d keys hot, %d false, %d gaps, the slowest after %d events; %+v; resident at most %d bytes in the second tenth, %d in the last, %d in all; %v",
		len(got.hot), got.false, got.gaps, got.slowest, got.stats, second, last, slices.Max(got.rss), got.took.Round(time.Millisecond))
}

// resident returns the most resident bytes in the second and in the last tenth of the
// flood.
func (got *found) resident() (second, last int64) {
	n := len(got.rss)
	return slices.Max(got.rss[n/10 : n/5]), slices.Max(got.rss[n-n/10:])
}

// streams returns the streams of f: the keys that come once, the planted ones, and as many that stay at nine tenths of the
// threshold.
func (f *flood) streams() []*stream {
	perSpan := float64(f.threshold) / f.span.Seconds()
	early, middle := f.planted, int64(float64(f.cold)/f.rate*1e9/2)
	all := []*stream{once(f.rate), evenly("near", f.planted, 0.9*perSpan, 0)}
	if f.late {
		early /= 2
		all = append(all, evenly("late", f.planted-early, 1.5*perSpan, middle))
	}
	return append(all, evenly("hot", early, 1.5*perSpan, 0))
}

// detector returns a new Detector of f's rules.
func (f *flood) detector(t *testing.T) *hotkey.Detector {
	t.Helper()
	var rules []hotkey.Rule
	for i := range f.rules {
		r := goodRule(t)
		r.Name, r.Threshold, r.Span, r.Hold = strconv.Itoa(i), f.threshold, f.span, f.span
		rules = append(rules, r)
	}
	d := must.Get(hotkey.NewDetector(rules, hotkey.DetectorConfig{Budget: f.budget}))(t)
	return d
}

// run adds f to a new detector.
func (f *flood) run(t *testing.T) *found {
	t.Helper()
	d, began := f.detector(t), time.Now()
	got := &found{hot: map[string]int64{}}
	streams := f.streams()
	cold := streams[0]
	for cold.n < f.cold {
		s := first(streams)
		now, key, count := s.take()
		for i := range f.rules {
			if edge, hot := addKey(d, time.Unix(0, now), strconv.Itoa(i), key); hot {
				got.add(f, s, edge, count)
			}
		}
		if s == cold && cold.n%(f.cold/200) == 0 {
			if used := under(d, "0").Stats().Bytes; used > f.budget {
				t.Fatalf("%d bytes of %d", used, f.budget)
			}
			got.rss = append(got.rss, resident())
		}
	}
	got.took, got.stats = time.Since(began), under(d, "0").Stats()
	return got
}

// add records the edge of a key of s, at the key's event with that number.
func (got *found) add(f *flood, s *stream, edge hotkey.Edge, count int) {
	if s.keys == 0 || s.name == "near" || uint64(count) < f.threshold {
		got.false++
		return
	}
	id := edge.Rule + " " + edge.Key
	until, before := got.hot[id]
	switch pause := float64(edge.Time.UnixNano() - until); {
	case !before:
		got.slowest = max(got.slowest, count)
	case pause > 2*s.every*float64(s.keys):
		got.gaps++
	}
	got.hot[id] = edge.Until.UnixNano()
}

// resident returns the resident bytes of this process, or 0 if the system does not report it.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// A namedFlood is a flood with a name.
type namedFlood struct {
	name string
	flood
}

// floods returns the floods of the test. But for the long form they have a sixty-fourth of all but the times, and in the
// short form there are two.
func floods() []namedFlood {
	scale, cold, first := 64, 40_000, 40_000
	if longTests() {
		scale, cold, first = 1, 5_000_000, 100_000_000
	}
	base := flood{
		budget: int64(64<<20) / int64(scale), threshold: 500, span: 2 * time.Second,
		cold: cold, rate: 200_000 / float64(scale), planted: max(1000/scale, 16), rules: 1, late: true,
	}
	changed := func(name string, change func(f *flood)) namedFlood {
		f := base
		change(&f)
		return namedFlood{name, f}
	}
	all := []namedFlood{
		changed("all along", func(f *flood) { f.cold, f.late = first, false }),
		changed("half late", func(*flood) {}),
		changed("times", func(f *flood) { f.threshold = 128 }),
		changed("few times", func(f *flood) { f.threshold = 20 }),
		changed("twenty seconds", func(f *flood) { f.span, f.cold = 20*time.Second, 4*f.cold }),
		changed("ten times as many", func(f *flood) { f.rate, f.cold = 10*f.rate, 4*f.cold }),
		changed("three rules", func(f *flood) { f.rules = 3 }),
	}
	switch {
	case testing.Short():
		return all[:1]
	}
	return all
}

// In a flood of keys that come once, more than there is memory for, all busy keys become hot in time and stay hot, no other
// key is hot, and memory does not grow.
func TestRecallUnderFlood(t *testing.T) {
	for _, f := range floods() {
		t.Run(f.name, func(t *testing.T) {
			got := f.run(t)
			t.Log(got)
			planted := f.planted * f.rules
			if len(got.hot) < planted-planted/1000 || got.false > 0 || got.gaps > 0 {
				t.Errorf("%d of %d keys were hot, %d edges are false, and %d times a key ceased to be hot", len(got.hot), planted, got.false, got.gaps)
			}
			// The lower bound leaves out a slot of a sixtieth of the span.
			if most := int(f.threshold) + int(f.threshold)/40 + 2; got.slowest > most {
				t.Errorf("a key was hot after %d events, want at most %d", got.slowest, most)
			}
			if got.stats.Evicted < uint64(f.cold/4) || got.stats.Lost > 0 {
				t.Errorf("%+v: want that most keys were evicted, and all events had memory", got.stats)
			}
			if second, last := got.resident(); longTests() && last > second*105/100 {
				t.Errorf("resident memory grew from %d to %d bytes", second, last)
			}
		})
	}
}

// The control, and what a budget cannot do: keys whose events are further apart than
// keys stay that come once are evicted before their second event.
func TestRecallEnds(t *testing.T) {
	f := flood{budget: 1 << 20, threshold: 5, span: time.Minute, cold: 100_000, rate: 3125, planted: 16, rules: 1}
	if got := f.run(t); len(got.hot) > f.planted/2 || got.false > 0 {
		t.Errorf("%v: want that most planted keys are missed, and no false edge", got)
	}
}
