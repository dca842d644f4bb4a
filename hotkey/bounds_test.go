package hotkey_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
)

// A truth knows every event of every key.
type truth map[string][]weighted

type weighted struct {
	at int64
	n  uint64
}

// add counts n events at t, or at the newest time of the key, and returns that time.
func (tr truth) add(key string, t int64, n uint64) int64 {
	events := tr[key]
	if k := len(events); k > 0 {
		t = max(t, events[k-1].at)
	}
	tr[key] = append(events, weighted{t, n})
	return t
}

// count returns the number of events in (t-span, t].
func (tr truth) count(key string, t, span int64) (n uint64) {
	for _, e := range tr[key] {
		if t-span < e.at && e.at <= t {
			n += e.n
		}
	}
	return n
}

// boundsRule returns a rule whose thresholds are on both sides of ExactThreshold.
func boundsRule(t testing.TB, rnd *rand.Rand) hotkey.Rule {
	r := goodRule(t)
	r.Threshold = []uint64{1, 5, 100, 128, 129, 300, 2000}[rnd.IntN(7)]
	r.Span = []time.Duration{time.Millisecond, 100 * time.Millisecond, 2 * time.Second, time.Minute}[rnd.IntN(4)]
	r.Hold = r.Span / time.Duration(1+rnd.IntN(4)) / time.Millisecond * time.Millisecond
	r.Exact = rnd.IntN(4) == 0
	return r
}

// The true number of events is within the bounds of every edge, HotAt and Top, also of
// keys that were evicted and came back, with weights, clocks that step and late
// events; no key is hot before its threshold, and none that keeps its record is hot
// later than 59/60 of the span say.
func TestBounds(t *testing.T) {
	rnd := seeded(t)
	const small = 100 << 10 // too little for all
	rounds := 150
	if testing.Short() {
		rounds = 36
	}
	edges, evicted, loose := 0, uint64(0), 0
	for round := range rounds {
		r := boundsRule(t, rnd)
		budget := []int64{hotkey.NoBudget, 0, small}[round%3]
		keys := []int{1, 5, 500, 4000}[round/3%4]
		busy := min(keys, 3)
		if keys == 500 {
			busy = keys // more than there is memory for, with the smallest budget
		}
		d, err := hotkey.NewDetector(mustSet(t, r), hotkey.DetectorConfig{Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		tr, hot := truth{}, map[string]int64{}
		now, span := int64(1e18), int64(r.Span)
		step := span / int64(1+rnd.IntN(int(2*r.Threshold)))
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("rule %+v, budget %d, %d keys: %s", r, budget, keys, fmt.Sprintf(format, args...))
		}
		for range 3000 {
			key, n := fmt.Sprint("k", rnd.IntN(keys)), uint64(1)
			if rnd.IntN(2) == 0 {
				key = fmt.Sprint("k", rnd.IntN(busy)) // some are busy
			}
			if rnd.IntN(10) == 0 {
				n = rnd.Uint64N(r.Threshold + 10)
			}
			if rnd.IntN(100) == 0 && budget == hotkey.NoBudget {
				now -= rnd.Int64N(span)
			} else {
				now += rnd.Int64N(step + 1)
			}
			edge, became := addKeyN(d, time.Unix(0, now), "r", key, n)
			if n == 0 {
				continue
			}
			at := tr.add(key, now, n)
			exact := tr.count(key, at, span)
			switch surely := tr.count(key, at, span-span/60-1) >= r.Threshold; {
			case became && (edge.Lo > exact || edge.Hi < exact || edge.Lo < r.Threshold || edge.Time.UnixNano() < now || edge.Time.UnixNano() > at):
				fail("edge of %s %+v, true %d at %d", key, edge, exact, at)
			case became && at < hot[key] && d.Stats("r").Evicted == 0:
				fail("%s became hot at %d within its hold until %d", key, at, hot[key])
			case !became && surely && now >= hot[key] && budget != small:
				fail("%s has %d events at %d and is not hot", key, exact, at)
			case became:
				hot[key] = edge.Until.UnixNano()
				edges++
			}
			if k, _ := d.HotAt(time.Unix(0, at), "r", key); k.Lo > exact || k.Hi < exact {
				fail("HotAt of %s %+v, true %d", key, k, exact)
			} else if k.Hi < math.MaxUint64 && k.Hi > k.Lo {
				loose++
			}
		}
		for _, events := range tr {
			now = max(now, events[len(events)-1].at)
		}
		within := rnd.Int64N(span + 1)
		top, err := d.TopAt(time.Unix(0, now), "r", 10, time.Duration(within))
		if err != nil {
			t.Fatal(err)
		}
		if within == 0 {
			within = span
		}
		for i, k := range top {
			at := max(now, tr[k.Key][len(tr[k.Key])-1].at)
			if n := tr.count(k.Key, at, within); k.Lo > n || k.Hi < n || i > 0 && k.Lo > top[i-1].Lo {
				fail("top %d of the last %v: %+v, true %d", i, time.Duration(within), k, n)
			}
		}
		evicted += d.Stats("r").Evicted
	}
	if edges < rounds || evicted == 0 || loose == 0 {
		t.Errorf("%d edges, %d evictions, %d bounds that differ: the test has tested little", edges, evicted, loose)
	}
}

// Where times are kept, all figures of Top are exact.
func TestTopIsExact(t *testing.T) {
	rnd := seeded(t)
	r := goodRule(t)
	r.Threshold, r.Span = 100, time.Second
	d := mustDetector(t, r)
	tr := truth{}
	for i := range int64(2000) {
		key := fmt.Sprint(rnd.IntN(1 + rnd.IntN(40)))
		addKey(d, time.UnixMilli(i), "r", key)
		tr.add(key, time.UnixMilli(i).UnixNano(), 1)
	}
	now := time.UnixMilli(2100)
	for _, span := range []time.Duration{0, 300 * time.Millisecond, time.Second} {
		top, err := d.TopAt(now, "r", 7, span)
		if err != nil || len(top) != 7 {
			t.Fatalf("%d keys, %v", len(top), err)
		}
		if span == 0 {
			span = time.Second
		}
		least, counted := top[6].Lo, map[string]bool{}
		for i, k := range top {
			n := tr.count(k.Key, now.UnixNano(), int64(span))
			if counted[k.Key] = true; k.Hi != k.Lo || k.Lo != n || i > 0 && (k.Lo > top[i-1].Lo || k.Lo == top[i-1].Lo && k.Key < top[i-1].Key) {
				t.Errorf("%v: %d is %+v, true %d", span, i, k, n)
			}
		}
		for key := range tr {
			if n := tr.count(key, now.UnixNano(), int64(span)); !counted[key] && n > least {
				t.Errorf("%v: %s has %d events and is not among the first seven, which end at %d", span, key, n, least)
			}
		}
	}
	for _, bad := range []struct {
		rule string
		n    int
		span time.Duration
	}{{"s", 1, 0}, {"r", 0, 0}, {"r", 1, -1}, {"r", 1, time.Second + 1}} {
		if _, err := d.TopAt(now, bad.rule, bad.n, bad.span); err == nil {
			t.Errorf("Top(%q, %d, %v): no error", bad.rule, bad.n, bad.span)
		}
	}
}

// A removed key begins again; keys that are always hot are so, and those that never
// are, are not counted.
func TestRemoveAlwaysNever(t *testing.T) {
	r := goodRule(t)
	r.Threshold, r.Span, r.Hold = 3, time.Second, time.Minute
	r.Always, r.Never = []string{"always"}, []string{"never"}
	d := mustDetector(t, r)
	for _, key := range []string{"k", "always", "never"} {
		for i := range int64(3) {
			if _, hot := addKey(d, at(i), "r", key); hot != (key == "k" && i == 2) {
				t.Errorf("%s: event %d makes it hot: %t", key, i+1, hot)
			}
		}
	}
	for key, want := range map[string]hotkey.KeyCount{
		"k": {Key: "k", Lo: 3, Hi: 3, Until: at(60_002)}, "always": {Key: "always", Lo: 3, Hi: 3, Until: at(60_002)}, "never": {Key: "never"},
	} {
		if k, hot := d.HotAt(at(10), "r", key); k != want || hot != (key != "never") {
			t.Errorf("%s: %+v, %t; want %+v", key, k, hot, want)
		}
	}
	d.Remove("r", "k")
	d.Remove("r", "unknown")
	d.Remove("unknown", "k")
	if k, hot := d.HotAt(at(10), "r", "k"); k != (hotkey.KeyCount{Key: "k"}) || hot {
		t.Errorf("after Remove: %+v, %t", k, hot)
	}
	for i := range int64(3) {
		if edge, hot := addKey(d, at(20+i), "r", "k"); hot != (i == 2) || hot && !edge.First {
			t.Errorf("after Remove: event %d: %+v, %t", i+1, edge, hot)
		}
	}
	if s := d.Stats("r"); s.Events != 9 || s.Late != 0 {
		t.Errorf("%+v; want 9 events", s)
	}
	addKey(d, at(0), "r", "k")
	if s := d.Stats("r"); s.Events != 10 || s.Late != 1 {
		t.Errorf("%+v; want 10 events, of which one is late", s)
	}
	r.Never = append(r.Never, "always")
	if err := newSetError(r); err == nil {
		t.Error("a key may be in always and never")
	}
}

// If the clock is set back, the bounds of a key that has left and comes back hold: its
// event is counted when the others had left.
func TestClockBackAfterExpiry(t *testing.T) {
	r := goodRule(t)
	r.Threshold, r.Span = 2, time.Second
	d := mustDetector(t, r)
	addKey(d, at(0), "r", "k")
	for i := range int64(20_000) {
		addKey(d, at(1000+i), "r", fmt.Sprint(i))
	}
	if edge, hot := addKey(d, at(500), "r", "k"); hot {
		t.Fatalf("%+v: want no edge, the first event having left", edge)
	}
	if k, _ := d.HotAt(at(500), "r", "k"); k.Lo != 1 || k.Hi != 1 {
		t.Errorf("%+v: want 1, at the time of the others", k)
	}
	if s := d.Stats("r"); s.Late != 1 {
		t.Errorf("%+v: want one late event", s)
	}
}

// A count that is full has no upper bound.
func TestBoundsOfHugeWeights(t *testing.T) {
	for _, threshold := range []uint64{100, 300} {
		r := goodRule(t)
		r.Threshold, r.Span = threshold, time.Second
		d := mustDetector(t, r)
		edge, hot := addKeyN(d, at(0), "r", "k", math.MaxUint64)
		if !hot || edge.Lo < threshold || edge.Hi != math.MaxUint64 {
			t.Errorf("threshold %d: %+v, %t; want at least that and no upper bound", threshold, edge, hot)
		}
		if k, _ := d.HotAt(at(1), "r", "k"); k.Lo < threshold || k.Hi != math.MaxUint64 {
			t.Errorf("threshold %d: %+v; want at least that and no upper bound", threshold, k)
		}
	}
}
