package hotkey_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/match"
)

func mustDetector(t testing.TB, rules ...hotkey.Rule) *hotkey.Detector {
	t.Helper()
	d := must.Get(hotkey.NewDetector(rules, hotkey.DetectorConfig{}))(t)
	return d
}

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// A reference detects by the definitions: it keeps every time of every key for
// ever and counts those in the span for each event.
type reference map[string]*refKey // by rule and key

type refKey struct {
	windowtest.Charges
	until int64
	hot   bool // has been
}

func (ref reference) key(rule int, key string) *refKey {
	id := fmt.Sprint(rule, " ", key)
	if ref[id] == nil {
		ref[id] = &refKey{}
	}
	return ref[id]
}

func (ref reference) add(rule int, r *hotkey.Rule, key string, t int64) (hotkey.Edge, bool) {
	k := ref.key(rule, key)
	t = max(t, k.Newest())
	k.Add(t, 1)
	count := k.In(t, r.Span.Milliseconds())
	if count < r.Threshold || k.hot && t < k.until {
		return hotkey.Edge{}, false
	}
	hold := r.Hold
	if hold == 0 {
		hold = r.Span
	}
	e := hotkey.Edge{Rule: r.Name, Key: key, Time: at(t), Until: at(t).Add(hold), First: !k.hot, Lo: count, Hi: count}
	k.until, k.hot = t+hold.Milliseconds(), true
	return e, true
}

func (ref reference) hotAt(rule int, key string, t int64) bool {
	k := ref.key(rule, key)
	return k.hot && max(t, k.Newest()) < k.until
}

func randomRules(t testing.TB, rnd *rand.Rand) []hotkey.Rule {
	keys := []match.Key{mustKey(t, "path"), mustKey(t, "client"), mustKey(t, "client", "path")}
	span := func() time.Duration { return time.Duration(1+rnd.IntN(50)) * time.Millisecond }
	var rules []hotkey.Rule
	for i := range 1 + rnd.IntN(3) {
		r := hotkey.Rule{Name: fmt.Sprint(i), Key: keys[rnd.IntN(3)], Threshold: uint64(1 + rnd.IntN(7)), Span: span()}
		if rnd.IntN(3) > 0 {
			r.Hold = span()
		}
		if rnd.IntN(3) == 0 {
			r.When.Path = []string{"/a*"}
		}
		rules = append(rules, r)
	}
	return rules
}

// TestDetectorAgainstReference adds random events, the clock now and then set back, and compares every edge with the
// definitions. A round ends when an event of a new key is counted at the time at which other keys were removed, which the
// definitions do not have; that is rare.
func TestDetectorAgainstReference(t *testing.T) {
	rnd := randtest.New(t)
	rounds, seen, again, moved := 1500, 0, 0, 0
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		rules := randomRules(t, rnd)
		d := mustDetector(t, rules...)
		ref := make(reference)
		now := int64(rnd.IntN(2000)) - 1000 // either side of 1970
		var edges []hotkey.Edge
		late := make([]uint64, len(rules)) // events before the newest of their key
	steps:
		for step := range 150 {
			switch rnd.IntN(12) {
			case 0:
				now += int64(rnd.IntN(120))
			case 1:
				now -= int64(rnd.IntN(40)) // the clock is set back
			default:
				now += int64(rnd.IntN(4))
			}
			var e match.Event
			if rnd.IntN(12) > 0 {
				e.SetString(match.Client, string(rune('a'+rnd.IntN(2))))
			}
			e.SetString(match.Path, []string{"/a", "/b", "/ab"}[rnd.IntN(3)])
			edges = d.AddAt(at(now), &e, 1, edges[:0])
			var want []hotkey.Edge
			for i := range rules {
				cond := must.Get(rules[i].When.Compile())(t)
				key, ok := rules[i].Key.Append(nil, &e)
				if !ok || !cond.Holds(&e) {
					continue
				}
				if now < ref.key(i, string(key)).Newest() {
					late[i]++
				}
				if under(d, rules[i].Name).Stats().Late > late[i] {
					moved++
					break steps
				}
				if edge, ok := ref.add(i, &rules[i], string(key), now); ok {
					want = append(want, edge)
				}
				when := now + int64(rnd.IntN(100)) - 30
				if got := isHotAt(d, at(when), rules[i].Name, string(key)); got != ref.hotAt(i, string(key), when) {
					t.Fatalf("step %d: HotAt %d of %q is %v; rule %+v", step, when, key, got, rules[i])
				}
			}
			if !slices.EqualFunc(edges, want, sameEdge) {
				t.Fatalf("step %d at %d: edges %v, want %v; rules %+v", step, now, edges, want, rules)
			}
			for _, edge := range edges {
				if edge.First {
					seen++
				} else {
					again++
				}
			}
		}
	}
	if moved > rounds/20 {
		t.Errorf("an event was moved in %d of %d rounds", moved, rounds)
	}
	if seen == 0 || again == 0 {
		t.Errorf("%d first edges and %d later ones: the test has no teeth", seen, again)
	}
}

func sameEdge(a, b hotkey.Edge) bool {
	return a.Rule == b.Rule && a.Key == b.Key && a.Time.Equal(b.Time) && a.Until.Equal(b.Until) && a.First == b.First && a.Lo == b.Lo && a.Hi == b.Hi
}

// TestConcurrentOneEdgePerHold adds one key from several goroutines. The times of all events fall into a number of holds
// that the test can count, and each must yield one edge.
func TestConcurrentOneEdgePerHold(t *testing.T) {
	const goroutines, each, threshold, holds = 8, 5000, 100, 5
	r := goodRule(t)
	r.Threshold, r.Span, r.Hold = threshold, time.Hour, 10*time.Second
	d := mustDetector(t, r)
	for hold := range int64(holds) {
		var mu sync.Mutex
		var edges []hotkey.Edge
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				var e match.Event
				e.SetString(match.Path, "/hot")
				var mine []hotkey.Edge
				for i := range int64(each) {
					mine = d.AddAt(at(hold*10_000+i), &e, 1, mine)
				}
				mu.Lock()
				edges = append(edges, mine...)
				mu.Unlock()
			})
		}
		wg.Wait()
		if len(edges) != 1 {
			t.Fatalf("hold %d: %d edges, want 1", hold, len(edges))
		}
		if e := edges[0]; e.First != (hold == 0) || e.Key != "/hot" || e.Until.Sub(e.Time) != r.Hold {
			t.Errorf("hold %d: the edge is %+v", hold, e)
		}
	}
}

// TestEdgeByHand walks one key through its life.
func TestEdgeByHand(t *testing.T) {
	r := goodRule(t) // 3 in 1 s, for 1 min
	d := mustDetector(t, r)
	for _, step := range []struct {
		ms    int64
		edge  bool
		first bool
		why   string
	}{
		{0, false, false, "the first of three"},
		{500, false, false, "the second"},
		{1000, false, false, "the first has just left (0, 1000]"},
		{1499, true, true, "500, 1000 and 1499 are in (499, 1499]"},
		{1500, false, false, "hot already"},
		{61_498, false, false, "the hold's last millisecond"},
		{61_499, false, false, "the hold is over, but this is the second in its second"},
		{61_499, true, false, "the third: hot again, though not for the first time"},
		{30_000, false, false, "an earlier time counts at the newest one"},
		{121_500, false, false, "cold"},
	} {
		edge, ok := addKey(d, at(step.ms), "r", "k")
		if ok != step.edge || ok && (edge.First != step.first || !edge.Time.Equal(at(step.ms)) || !edge.Until.Equal(at(step.ms+60_000))) {
			t.Errorf("at %d: %+v, %v; want an edge: %v (%s)", step.ms, edge, ok, step.edge, step.why)
		}
	}
	if isHotAt(d, at(121_498), "r", "k") || isHotAt(d, at(121_498), "r", "other") || under(d, "r").Stats().Keys != 1 {
		t.Error("the key, whose newest event is after its hold, is still hot; or an unknown one is")
	}
}

// TestThresholdOne makes a key hot with each first event after a hold.
func TestThresholdOne(t *testing.T) {
	r := goodRule(t)
	r.Threshold, r.Span, r.Hold = 1, time.Millisecond, 10*time.Millisecond
	d := mustDetector(t, r)
	var hot []int64
	for ms := range int64(25) {
		if edge, ok := addKey(d, at(ms), "r", "k"); ok {
			hot = append(hot, edge.Time.UnixMilli())
		}
	}
	if want := []int64{0, 10, 20}; !slices.Equal(hot, want) {
		t.Errorf("hot at %v, want %v", hot, want)
	}
}

// TestKeyTooLong counts nothing for a key that the table does not take, and
// counts one that it just takes.
func TestKeyTooLong(t *testing.T) {
	r := goodRule(t)
	r.Threshold = 1
	d := mustDetector(t, r)
	var e match.Event
	for n, want := range map[int]int{1<<20 - 1: 1, 1 << 20: 0} {
		e.SetString(match.Path, "/"+strings.Repeat("x", n-1))
		if edges := d.AddAt(at(0), &e, 1, nil); len(edges) != want {
			t.Errorf("a key of %d bytes makes %d edges, want %d", n, len(edges), want)
		}
	}
	if under(d, "r").Stats().Keys != 1 {
		t.Errorf("%d keys, want 1", under(d, "r").Stats().Keys)
	}
	if isHotAt(d, at(0), "r", strings.Repeat("x", 1<<20)) {
		t.Error("a key that is not counted is hot")
	}
}

// TestExtremeTimes counts at the ends of time: no panic, no overflow.
func TestExtremeTimes(t *testing.T) {
	r := goodRule(t)
	r.Threshold, r.Span, r.Hold = 2, limit.MaxSpan, limit.MaxSpan
	d := mustDetector(t, r)
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for i, y := range []int{1, 1, 9999, 9999} {
		edge, ok := addKey(d, year(y), "r", "k")
		if ok != (i%2 == 1) || ok && edge.Until.Sub(edge.Time) != limit.MaxSpan {
			t.Errorf("event %d, year %d: %+v, %v", i, y, edge, ok)
		}
	}
}

func TestOffTheEdgeNothingAllocates(t *testing.T) {
	rules := []hotkey.Rule{goodRule(t), goodRule(t)}
	rules[1].Name, rules[1].Key = "composite", mustKey(t, "client", "path")
	for i := range rules {
		rules[i].Threshold = 50
	}
	d := mustDetector(t, rules...)
	var e match.Event
	e.SetString(match.Client, "a")
	e.SetString(match.Path, "/a/%61/./b")
	now := int64(0)
	edges := make([]hotkey.Edge, 0, 2)
	step := func() {
		now++
		edges = d.AddAt(at(now), &e, 1, edges[:0])
	}
	for range 100 {
		step() // the logs have their final size, and the edges have passed
	}
	if n := testing.AllocsPerRun(500, step); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}

// TestAddIsLive lets time pass: Add counts at the time it has become.
func TestAddIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mustDetector(t, goodRule(t)) // 3 in 1 s, for 1 min
		var e match.Event
		e.Time = time.Unix(1, 0) // is not read
		e.SetString(match.Path, "/p")
		start := time.Now()
		var made []time.Duration
		for range 200 { // 4 in each second, for 50 s, and then 150 s of silence
			for _, edge := range d.Add(&e, nil) {
				made = append(made, time.Since(start))
				if !edge.Time.Equal(time.Now()) || !edge.Until.Equal(time.Now().Add(time.Minute)) {
					t.Errorf("at %v: the edge is %+v", time.Now(), edge)
				}
			}
			<-time.After(250 * time.Millisecond)
		}
		<-time.After(150 * time.Second)
		for range 3 {
			if edges := d.Add(&e, nil); len(edges) > 0 {
				made = append(made, time.Since(start))
			}
		}
		if want := []time.Duration{500 * time.Millisecond, 200 * time.Second}; !slices.Equal(made, want) {
			t.Errorf("edges after %v, want %v", made, want)
		}
		if !isHotAt(d, time.Now().Add(59*time.Second), "r", "/p") || isHotAt(d, time.Now().Add(time.Minute), "r", "/p") {
			t.Error("the hold is not the minute after the edge")
		}
	})
}

func TestDetectorConfigErrors(t *testing.T) {
	for budget, want := range map[int64]string{
		-2:   "hotkey: budget: -2: must be a number of bytes, 0 (67108864) or NoBudget",
		1000: "hotkey: budget 1000: an empty table takes ",
	} {
		_, err := hotkey.NewDetector([]hotkey.Rule{goodRule(t)}, hotkey.DetectorConfig{Budget: budget})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("budget %d: the error is %v", budget, err)
		}
	}
}

// under returns the handle for a rule of d that exists.
func under(d *hotkey.Detector, rule string) *hotkey.RuleDetector {
	r, err := d.Rule(rule)
	if err != nil {
		panic(err)
	}
	return r
}
