package window

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// estimate is lo and the share of hi - lo that the edge of the span leaves of the
// slot in which it lies.
func (m *exactLog) estimate(t, lo, hi, span int64) uint64 {
	width, edge := m.widths[m.windowOf(span)], t-span
	inside := (windowtest.FloorDiv(edge, width)+1)*width - 1 - edge
	return uint64(lo) + uint64(math.Round(float64(hi-lo)*float64(inside)/float64(width)))
}

// modelRun compares a Table with the model, operation by operation. Whether the table has evicted a key is found out at the
// next operation on it.
type modelRun struct {
	*rand.Rand
	t       *testing.T
	tb      *Table
	m       *exactLog
	longest int64
	now     int64
	keys    int

	missing uint64 // keys that were evicted with their counts
	flood   int
}

func (x *modelRun) held(key string) bool {
	r, state := x.tb.in.Lock(x.tb.in.Hash(key), key)
	if state != keytable.Found {
		return false
	}
	r.Unlock()
	return true
}

// settle removes from the model what the table has evicted, and reports whether
// the key is held.
func (x *modelRun) settle(key string) bool {
	held := x.held(key)
	if x.m.events[key] == nil {
		if held {
			x.t.Fatalf("%q is held, but was never added", key)
		}
		return false
	}
	if !held {
		if !x.m.gone(key) {
			x.missing++
		}
		delete(x.m.events, key)
	}
	return held
}

func (x *modelRun) key() string {
	switch x.IntN(20) {
	case 0:
		return strings.Repeat("long ", x.IntN(200))
	case 1, 2, 3:
		x.flood++
		return fmt.Sprint("flood", x.flood)
	case 4, 5, 6, 7:
		return fmt.Sprint("k", x.IntN(10))
	}
	return fmt.Sprint("key ", x.IntN(x.keys))
}

// step moves time on, back, or far on.
func (x *modelRun) step() {
	i := x.IntN(len(x.m.spans))
	span, slot := x.m.spans[i], x.m.widths[i]
	if newest := x.m.newest(0) * x.m.widths[0]; x.m.any && x.now < newest && x.IntN(500) == 0 {
		x.now = newest // too long behind, all would be late
	}
	switch x.IntN(30_000) {
	case 0:
		x.now += x.Int64N(5 * span)
	case 1:
		x.now -= x.Int64N(2 * span)
	case 2:
		if x.IntN(5) == 0 { // about what a record's stamp reaches
			x.now += slot*(1<<16+x.Int64N(5)-2) - x.Int64N(2)*span
		}
	case 3, 4, 5, 6, 7, 8, 9, 10:
		x.now += x.Int64N(slot)
	case 11, 12:
		x.now += slot*3 - x.now%slot - x.Int64N(2)
	}
}

func (x *modelRun) at() (int64, time.Time) {
	t := x.now
	if x.IntN(4) == 0 {
		t -= x.Int64N(x.longest + 2*x.m.widths[len(x.m.widths)-1])
	}
	return t, time.Unix(0, t)
}

func (x *modelRun) span() int64 {
	if x.IntN(2) == 0 {
		return x.m.spans[x.IntN(len(x.m.spans))]
	}
	return 1 + x.Int64N(x.longest)
}

func (x *modelRun) n() uint64 {
	switch x.IntN(2000) {
	case 0:
		return 0
	case 1:
		return 1<<24 - 3
	case 2:
		return x.Uint64N(1 << 40)
	case 3, 4, 5:
		return x.Uint64N(1 << 16)
	}
	return 1 + x.Uint64N(3)
}

func (x *modelRun) once() {
	x.step()
	key := x.key()
	held := x.settle(key)
	ns, t := x.at()
	switch op := x.IntN(100); {
	case op < 60:
		x.add(key, ns, t, held)
	case op < 80:
		span := x.span()
		c, err := x.tb.CountAt(t, key, time.Duration(span))
		if wantLo, wantHi := x.m.bounds(key, ns, span); c.Lo != uint64(wantLo) || c.Hi != uint64(wantHi) || err != nil {
			x.t.Fatalf("%q over %v at %v: %+v, want %d to %d; %v", key, time.Duration(span), ns, c, wantLo, wantHi, err)
		}
	case op < 98:
		lo, hi := x.tb.BoundsAt(t, key)
		if wantLo, wantHi := x.m.bounds(key, ns, x.longest); lo != uint64(wantLo) || hi != uint64(wantHi) {
			x.t.Fatalf("%q at %v: %d to %d, want %d to %d", key, ns, lo, hi, wantLo, wantHi)
		}
	case op == 98 && x.IntN(4) == 0:
		if x.tb.Remove(key) != held {
			x.t.Fatalf("Remove(%q) = %t, want %t", key, !held, held)
		}
		delete(x.m.events, key)
	case x.IntN(200) == 0:
		x.tb.ExpireAt(t)
		x.m.reach(ns)
	}
	if used := x.tb.budget.Used(); used > x.tb.budget.Limit() || used < 0 {
		x.t.Fatalf("%d bytes taken of %d", used, x.tb.budget.Limit())
	}
}

func (x *modelRun) add(key string, ns int64, t time.Time, held bool) {
	n := x.n()
	late := x.m.stats.Late
	ok := !x.m.any || x.m.keeps(ns)
	if ok && n == 0 && !held {
		x.m.reach(ns) // there is no record for a key without a count
	} else {
		ok = x.m.addAt(ns, key, int64(n))
	}
	refused := x.tb.Stats().Refused
	var got bool
	var sum uint64
	if x.IntN(2) == 0 {
		got = x.tb.AddAt(t, key, n)
	} else {
		sum, got = x.tb.AddSumAt(t, key, n)
		if want, _ := x.m.bounds(key, ns, x.longest); got && sum != uint64(want) {
			x.t.Fatalf("AddSumAt(%d, %q, %d) = %d, want %d", ns, key, n, sum, want)
		}
	}
	switch {
	case got == ok:
	case !got && x.m.stats.Late == late && x.tb.Stats().Refused == refused+1 && !held:
		delete(x.m.events, key)
	default:
		x.t.Fatalf("an add of %q at %d: %t, want %t", key, ns, got, ok)
	}
}

// finish holds everything that is held against the model.
func (x *modelRun) finish() {
	if x.IntN(4) == 0 { // the end of a slot
		slot := x.m.widths[x.IntN(len(x.m.widths))]
		x.now = (windowtest.FloorDiv(x.now, slot)+1)*slot - 1
	}
	at := time.Unix(0, x.now)
	for key := range x.m.events {
		x.settle(key.(string))
	}
	var top []KeyCount
	span := x.span()
	want := 0
	for key := range x.m.events {
		lo, hi := x.m.bounds(key, x.now, span)
		if lo > 0 {
			top = append(top, KeyCount{key.(string), Count{uint64(lo), uint64(hi), x.m.estimate(x.now, lo, hi, span)}})
		}
		if lo, hi := x.tb.BoundsAt(at, key.(string)); true {
			if wantLo, wantHi := x.m.bounds(key, x.now, x.longest); lo != uint64(wantLo) || hi != uint64(wantHi) {
				x.t.Fatalf("at last, %q: %d to %d, want %d to %d", key, lo, hi, wantLo, wantHi)
			}
		}
		for _, span := range x.m.spans {
			if _, hi := x.m.bounds(key, x.now, span); hi > 0 {
				want++
				break
			}
		}
	}
	slices.SortFunc(top, compareCounts)
	n := min(1+x.IntN(50), len(top)+1)
	got, err := x.tb.TopAt(at, n, time.Duration(span))
	if !slices.Equal(got, top[:min(n, len(top))]) || err != nil {
		x.t.Fatalf("the top %d over %v:\n%v\nwant\n%v", n, time.Duration(span), got, top[:min(n, len(top))])
	}
	for key, reading := range x.tb.AllAt(at) {
		c, err := reading.Count(time.Duration(span))
		wantLo, wantHi := x.m.bounds(key, x.now, span)
		if x.m.events[key] == nil || c.Lo != uint64(wantLo) || c.Hi != uint64(wantHi) || err != nil {
			x.t.Fatalf("All: %q has %+v, want %d to %d; %v", key, c, wantLo, wantHi, err)
		}
		want--
	}
	if want != 0 {
		x.t.Fatalf("All leaves %d keys out", want)
	}
	s := x.tb.Stats()
	records := 0
	for range x.tb.in.All() {
		records++
	}
	if s.Keys != records || s.Late != x.m.stats.Late || x.missing > s.Evicted || s.Saturated > 0 {
		x.t.Fatalf("%+v; %d records, %d missing, %d late", s, records, x.missing, x.m.stats.Late)
	}
	x.t.Logf("%+v, %d missing, %d flooded", s, x.missing, x.flood)
}

func modelSteps() int {
	switch {
	case os.Getenv("LATELY_LONG") != "":
		return 2_000_000
	case testing.Short():
		return 20_000
	}
	return 200_000
}

// TestTableAgainstMap does random things to a Table and to maps: across budget,
// expiry, growth, clock jumps, wide counts. LATELY_LONG=1 does ten million.
func TestTableAgainstMap(t *testing.T) {
	second, ms := time.Second, time.Millisecond
	for _, x := range []struct {
		name    string
		c       TableConfig
		keys    int
		windows []Window
	}{
		{"two counters", TableConfig{Budget: 16 << 20}, 20_000, []Window{{Span: 10 * second, Slot: 10 * second}}},
		{"ten slots", TableConfig{Budget: 16 << 20}, 20_000, []Window{{Span: 10 * second, Slot: second}}},
		{"four spans", TableConfig{Budget: 16 << 20}, 3_000, []Window{{Span: 20 * ms, Slot: 20 * ms}, {Span: 60 * ms, Slot: 10 * ms}, {Span: 97 * ms, Slot: ms}, {Span: 1500 * ms, Slot: 500 * ms}}},
		{"uneven spans", TableConfig{Budget: 16 << 20}, 20_000, []Window{{Span: 10 * second, Slot: 10 * second}, {Span: 11 * second, Slot: second}, {Span: 12 * second, Slot: 12 * second}}},
		{"evicting", TableConfig{Budget: 256 << 10}, 10_000, []Window{{Span: 10 * second, Slot: second}}},
		{"refusing", TableConfig{Budget: 512 << 10, RefuseNew: true}, 10_000, []Window{{Span: 2 * second, Slot: 2 * second}, Last(10 * second)}},
	} {
		t.Run(x.name, func(t *testing.T) {
			seed := randtest.Seed(t)
			tb := mustTable(t, x.c, x.windows...)
			run := &modelRun{
				Rand: rand.New(rand.NewPCG(seed, 0)), t: t, tb: tb, m: newExactLog(tb.Windows()...),
				longest: tb.longest().span, keys: x.keys, now: 1e18,
			}
			for range modelSteps() {
				run.once()
			}
			run.finish()
			if s := tb.Stats(); modelSteps() > 100_000 && (x.c.Budget < 1<<20 && s.Evicted+s.Refused == 0 || s.Expired == 0) {
				t.Errorf("nothing was evicted or refused: %+v", s)
			}
		})
	}
}

func mustTable(t testing.TB, c TableConfig, windows ...Window) *Table {
	t.Helper()
	tb := must.Get(NewTable(c, windows...))(t)
	return tb
}
