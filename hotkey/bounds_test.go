package hotkey_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// boundsRule returns a rule whose thresholds are on both sides of ExactThreshold.
func boundsRule(t testing.TB, rnd *rand.Rand) hotkey.Rule {
	r := goodRule(t)
	r.Threshold = []uint64{1, 5, 100, 128, 129, 300, 2000}[rnd.IntN(7)]
	r.Span = []time.Duration{time.Millisecond, 100 * time.Millisecond, 2 * time.Second, time.Minute}[rnd.IntN(4)]
	r.Hold = r.Span / time.Duration(1+rnd.IntN(4)) / time.Millisecond * time.Millisecond
	r.Exact = rnd.IntN(4) == 0
	return r
}

// A trace is random events under one rule, with the true counts. Events have weights; some are late, and the clock is set
// back and forward.
type trace struct {
	rule       hotkey.Rule
	budget     int64
	keys, busy int
	step       int64 // between two events, at most
	d          *hotkey.Detector
	now        int64
	true       windowtest.Keys[string]
	record     map[string]int   // the first event of a key since the Detector has its record
	hot        map[string]int64 // the ends of holds
	edges      int
	loose      int // bounds that differ
}

// leastBudget is about the least that a Detector can have.
const leastBudget = 28 << 10

func newTrace(t testing.TB, rnd *rand.Rand) *trace {
	t.Helper()
	tr := &trace{
		rule:   boundsRule(t, rnd),
		budget: []int64{hotkey.NoBudget, 0, leastBudget + rnd.Int64N(4*leastBudget)}[rnd.IntN(3)],
		keys:   []int{1, 5, 500, 4000}[rnd.IntN(4)],
		now:    1e18, true: windowtest.Keys[string]{}, record: map[string]int{}, hot: map[string]int64{},
	}
	tr.busy = min(tr.keys, 3)
	if tr.keys == 500 {
		tr.busy = tr.keys // more than there is memory for, with the smallest budget
	}
	tr.step = int64(tr.rule.Span) / int64(1+rnd.IntN(int(2*tr.rule.Threshold)))
	tr.d = must.Get(hotkey.NewDetector([]hotkey.Rule{tr.rule}, hotkey.DetectorConfig{Budget: tr.budget}))(t)
	return tr
}

// run adds that many events, and returns an error at the first answer that is wrong.
func (tr *trace) run(rnd *rand.Rand, events int) error {
	for i := range events {
		if err := tr.event(rnd); err != nil {
			return fmt.Errorf("rule %+v, budget %d, %d keys, event %d: %w", tr.rule, tr.budget, tr.keys, i, err)
		}
	}
	return tr.top(rnd)
}

// next returns the next event.
func (tr *trace) next(rnd *rand.Rand) (key string, t int64, n uint64) {
	n = 1
	span := int64(tr.rule.Span)
	key = fmt.Sprint("k", rnd.IntN(tr.keys))
	if rnd.IntN(2) == 0 {
		key = fmt.Sprint("k", rnd.IntN(tr.busy)) // some are busy
	}
	if rnd.IntN(10) == 0 {
		n = rnd.Uint64N(tr.rule.Threshold + 10)
	}
	tr.now += rnd.Int64N(tr.step + 1)
	t = tr.now
	switch rnd.IntN(200) {
	case 0:
		tr.now -= rnd.Int64N(3 * span)
	case 1:
		tr.now += rnd.Int64N(3 * span)
	case 2, 3, 4, 5:
		t -= rnd.Int64N(2 * span)
	}
	return key, t, n
}

// event adds an event and compares all answers about its key with the truth.
func (tr *trace) event(rnd *rand.Rand) error {
	key, now, n := tr.next(rnd)
	kept := hotkey.Kept(tr.d, "r", key)
	edge, became, err := under(tr.d, "r").AddAt(time.Unix(0, now), key, n)
	if err != nil || n == 0 { // of a new key there may be no memory for
		return nil
	}
	at := max(now, hotkey.Removed(tr.d, "r"))
	if kept {
		at = max(now, (*tr.true.Of(key))[tr.record[key]:].Newest())
	} else {
		tr.record[key] = len(*tr.true.Of(key))
	}
	tr.true.Of(key).Add(at, n)
	span, threshold := int64(tr.rule.Span), tr.rule.Threshold
	exact := tr.true.Of(key).In(at, span)
	stats := under(tr.d, "r").Stats()
	surely := tr.true.Of(key).In(at, span-span/60-1) >= threshold && stats.Evicted == 0 && stats.Lost == 0
	switch {
	case became && (edge.Lo > exact || edge.Hi < exact || edge.Lo < threshold || edge.Time.UnixNano() < now || edge.Time.UnixNano() > at):
		return fmt.Errorf("edge of %s %+v, true %d at %d", key, edge, exact, at)
	case became && at < tr.hot[key] && stats.Evicted == 0:
		return fmt.Errorf("%s became hot at %d within its hold until %d", key, at, tr.hot[key])
	case !became && surely && now >= tr.hot[key]:
		return fmt.Errorf("%s has %d events at %d and is not hot", key, exact, at)
	case became:
		tr.hot[key] = edge.Until.UnixNano()
		tr.edges++
	}
	k, _ := under(tr.d, "r").HotAt(time.Unix(0, at), key)
	if k.Lo > exact || k.Hi < exact {
		return fmt.Errorf("HotAt of %s %+v, true %d at %d", key, k, exact, at)
	}
	if k.Hi < math.MaxUint64 && k.Hi > k.Lo {
		tr.loose++
	}
	return nil
}

// top compares the busiest keys in a part of the span with the truth.
func (tr *trace) top(rnd *rand.Rand) error {
	now, within := tr.now, rnd.Int64N(int64(tr.rule.Span)+1)
	for _, events := range tr.true {
		now = max(now, events.Newest())
	}
	top, err := under(tr.d, "r").TopAt(time.Unix(0, now), 10, time.Duration(within))
	if err != nil {
		return err
	}
	if within == 0 {
		within = int64(tr.rule.Span)
	}
	for i, k := range top {
		if n := tr.true.Of(k.Key).In(now, within); k.Lo > n || k.Hi < n || i > 0 && k.Lo > top[i-1].Lo {
			return fmt.Errorf("top %d of the last %v: %+v, true %d", i, time.Duration(within), k, n)
		}
	}
	return nil
}

// The true number of events is within the bounds of every edge, HotAt and Top, also for keys that were evicted and came
// back, with weights, late events and clocks that step; no key is hot before its threshold, and no key that keeps its
// record is hot later than 59/60 of the span require. The long form is a million traces.
func TestBounds(t *testing.T) {
	switch {
	case longTests():
		for part := range 10 {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				testBounds(t, 100_000, 200)
			})
		}
	case testing.Short():
		testBounds(t, 80, 2000)
	default:
		testBounds(t, 400, 2000)
	}
}

// testBounds runs that many traces, of up to most events.
func testBounds(t *testing.T, traces, most int) {
	rnd := randtest.New(t)
	edges, evicted, loose, late, events := 0, uint64(0), 0, uint64(0), 0
	for range traces {
		tr, n := newTrace(t, rnd), 1+rnd.IntN(most)
		must.Do(t, tr.run(rnd, n))
		stats := under(tr.d, "r").Stats()
		edges, loose, events = edges+tr.edges, loose+tr.loose, events+n
		evicted, late = evicted+stats.Evicted, late+stats.Late
	}
	t.Logf("%d traces, %d events; %d late ones with their weights, %d edges, %d evictions, %d bounds that differ", traces, events, late, edges, evicted, loose)
	if edges < traces || evicted == 0 || loose == 0 || late == 0 {
		t.Error("the test has tested little")
	}
}

// The controls: detectors that count events after they have left the span, or lose the counts of evicted keys, are caught.
func TestWrongBoundsAreCaught(t *testing.T) {
	for name, corrupt := range map[string]func(d *hotkey.Detector) error{
		"longer span": hotkey.CountTwoSpans, "evictions not noted": hotkey.ForgetEvicted,
	} {
		t.Run(name, func(t *testing.T) {
			rnd := randtest.New(t)
			for range 1000 {
				tr := newTrace(t, rnd)
				must.Do(t, corrupt(tr.d))
				if err := tr.run(rnd, 1000); err != nil {
					return
				}
			}
			t.Error("a thousand traces have found nothing")
		})
	}
}

// Where times are kept, all figures of Top are exact.
func TestTopIsExact(t *testing.T) {
	rnd := randtest.New(t)
	r := goodRule(t)
	r.Threshold, r.Span = 100, time.Second
	d := mustDetector(t, r)
	tr := windowtest.Keys[string]{}
	for i := range int64(2000) {
		key := fmt.Sprint(rnd.IntN(1 + rnd.IntN(40)))
		addKey(d, time.UnixMilli(i), "r", key)
		tr.Of(key).Add(time.UnixMilli(i).UnixNano(), 1)
	}
	now := time.UnixMilli(2100)
	for _, span := range []time.Duration{0, 300 * time.Millisecond, time.Second} {
		top, err := under(d, "r").TopAt(now, 7, span)
		if err != nil || len(top) != 7 {
			t.Fatalf("%d keys, %v", len(top), err)
		}
		if span == 0 {
			span = time.Second
		}
		least, counted := top[6].Lo, map[string]bool{}
		for i, k := range top {
			n := tr.Of(k.Key).In(now.UnixNano(), int64(span))
			if counted[k.Key] = true; k.Hi != k.Lo || k.Lo != n || i > 0 && (k.Lo > top[i-1].Lo || k.Lo == top[i-1].Lo && k.Key < top[i-1].Key) {
				t.Errorf("%v: %d is %+v, true %d", span, i, k, n)
			}
		}
		for key := range tr {
			if n := tr.Of(key).In(now.UnixNano(), int64(span)); !counted[key] && n > least {
				t.Errorf("%v: %s has %d events and is not among the first seven, which end at %d", span, key, n, least)
			}
		}
	}
	for _, bad := range []struct {
		n    int
		span time.Duration
	}{{0, 0}, {1, -1}, {1, time.Second + 1}} {
		if _, err := under(d, "r").TopAt(now, bad.n, bad.span); err == nil {
			t.Errorf("Top(%d, %v): no error", bad.n, bad.span)
		}
	}
}

// A removed key begins again; keys in Always are hot, and keys in Never are not
// counted.
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
		if k, hot := under(d, "r").HotAt(at(10), key); k != want || hot != (key != "never") {
			t.Errorf("%s: %+v, %t; want %+v", key, k, hot, want)
		}
	}
	under(d, "r").Remove("k")
	under(d, "r").Remove("unknown")
	if k, hot := under(d, "r").HotAt(at(10), "k"); k != (hotkey.KeyCount{Key: "k"}) || hot {
		t.Errorf("after Remove: %+v, %t", k, hot)
	}
	for i := range int64(3) {
		if edge, hot := addKey(d, at(20+i), "r", "k"); hot != (i == 2) || hot && !edge.First {
			t.Errorf("after Remove: event %d: %+v, %t", i+1, edge, hot)
		}
	}
	if s := under(d, "r").Stats(); s.Events != 9 || s.Late != 0 {
		t.Errorf("%+v; want 9 events", s)
	}
	addKey(d, at(0), "r", "k")
	if s := under(d, "r").Stats(); s.Events != 10 || s.Late != 1 {
		t.Errorf("%+v; want 10 events, one of them late", s)
	}
	r.Never = append(r.Never, "always")
	if err := newError(r); err == nil {
		t.Error("a key may be in always and never")
	}
}

// If the clock is set back, the bounds of a key that has left and comes back hold: its event is counted when the others had
// left.
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
	if k, _ := under(d, "r").HotAt(at(500), "k"); k.Lo != 1 || k.Hi != 1 {
		t.Errorf("%+v: want 1, at the time of the others", k)
	}
	if s := under(d, "r").Stats(); s.Late != 1 {
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
		if k, _ := under(d, "r").HotAt(at(1), "k"); k.Lo < threshold || k.Hi != math.MaxUint64 {
			t.Errorf("threshold %d: %+v; want at least that and no upper bound", threshold, k)
		}
	}
}
