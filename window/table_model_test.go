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

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/test/randtest"
)

// tableModel is a Table as its documentation has it, but for what is forgotten
// because there is no memory: a map of keys to maps of slots.
type tableModel struct {
	windows []Window
	newest  []int64
	any     bool
	keys    map[string][]map[int64]uint64
	late    uint64
}

func newTableModel(windows []Window) *tableModel {
	return &tableModel{windows: windows, newest: make([]int64, len(windows)), keys: make(map[string][]map[int64]uint64)}
}

func slotOfModel(t int64, w Window) int64 {
	s := t / int64(w.Slot)
	for s*int64(w.Slot) > t {
		s--
	}
	return s
}

func (w Window) slots() int64 { return int64(w.Span / w.Slot) }

// reach moves the windows on to t, and reports for each whether t is in it.
func (m *tableModel) reach(t int64) (in []bool, late bool) {
	late = true
	for i, w := range m.windows {
		s := slotOfModel(t, w)
		if !m.any || s > m.newest[i] {
			m.newest[i] = s
		}
		in = append(in, s >= m.newest[i]-w.slots())
		late = late && !in[i]
	}
	m.any = true
	return in, late
}

func (m *tableModel) add(t int64, key string, n uint64) bool {
	in, late := m.reach(t)
	if late {
		m.late++
		return false
	}
	if n == 0 && m.keys[key] == nil {
		return true
	}
	if m.keys[key] == nil {
		m.keys[key] = make([]map[int64]uint64, len(m.windows))
		for i := range m.windows {
			m.keys[key][i] = make(map[int64]uint64)
		}
	}
	for i, w := range m.windows {
		if in[i] {
			slots := m.keys[key][i]
			slots[slotOfModel(t, w)] += n
			if int64(len(slots)) > 3*w.slots()+9 {
				for s := range slots {
					if s < m.newest[i]-w.slots() {
						delete(slots, s)
					}
				}
			}
		}
	}
	return true
}

func (m *tableModel) bounds(t int64, key string, span int64) (lo, hi uint64) {
	if m.keys[key] == nil {
		return 0, 0
	}
	i := slices.IndexFunc(m.windows, func(w Window) bool { return int64(w.Span) >= span })
	w := m.windows[i]
	for s, count := range m.keys[key][i] {
		first, last := s*int64(w.Slot), (s+1)*int64(w.Slot)-1
		switch {
		case s < m.newest[i]-w.slots() || s > slotOfModel(t, w) || last <= t-span:
		case first > t-span:
			lo += count
			hi += count
		default:
			hi += count
		}
	}
	return lo, hi
}

// estimate is lo and the share of hi - lo that the edge of the span leaves of the
// slot in which it lies.
func (m *tableModel) estimate(t int64, lo, hi uint64, span int64) uint64 {
	w := m.windows[slices.IndexFunc(m.windows, func(w Window) bool { return int64(w.Span) >= span })]
	edge := t - span
	inside := (slotOfModel(edge, w)+1)*int64(w.Slot) - 1 - edge
	return lo + uint64(math.Round(float64(hi-lo)*float64(inside)/float64(w.Slot)))
}

// gone reports whether key has nothing in any window.
func (m *tableModel) gone(key string) bool {
	for i, w := range m.windows {
		for s, count := range m.keys[key][i] {
			if count > 0 && s >= m.newest[i]-w.slots() {
				return false
			}
		}
	}
	return true
}

// modelRun holds a Table against the model, operation by operation. What the
// table has evicted is found out when the key comes up.
type modelRun struct {
	*rand.Rand
	t       *testing.T
	tb      *Table
	m       *tableModel
	longest int64
	now     int64
	keys    int

	missing uint64 // keys that were forgotten with their counts
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

// settle forgets in the model what the table has forgotten, and reports whether
// the key is held.
func (x *modelRun) settle(key string) bool {
	held := x.held(key)
	if x.m.keys[key] == nil {
		if held {
			x.t.Fatalf("%q is held, but was never added", key)
		}
		return false
	}
	if !held {
		if !x.m.gone(key) {
			x.missing++
		}
		delete(x.m.keys, key)
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
	w := x.m.windows[x.IntN(len(x.m.windows))]
	if newest := x.m.newest[0] * int64(x.m.windows[0].Slot); x.m.any && x.now < newest && x.IntN(500) == 0 {
		x.now = newest // too long behind, all would be late
	}
	switch x.IntN(30_000) {
	case 0:
		x.now += x.Int64N(5 * int64(w.Span))
	case 1:
		x.now -= x.Int64N(2 * int64(w.Span))
	case 2:
		if x.IntN(5) == 0 { // about what a record's stamp reaches
			x.now += int64(w.Slot) * (1<<16 + x.Int64N(5) - 2 - x.Int64N(2)*w.slots())
		}
	case 3, 4, 5, 6, 7, 8, 9, 10:
		x.now += x.Int64N(int64(w.Slot))
	case 11, 12:
		x.now += int64(w.Slot)*3 - x.now%int64(w.Slot) - x.Int64N(2)
	}
}

func (x *modelRun) at() (int64, time.Time) {
	t := x.now
	if x.IntN(4) == 0 {
		t -= x.Int64N(x.longest + 2*int64(x.m.windows[len(x.m.windows)-1].Slot))
	}
	return t, time.Unix(0, t)
}

func (x *modelRun) span() int64 {
	if x.IntN(2) == 0 {
		return int64(x.m.windows[x.IntN(len(x.m.windows))].Span)
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
		if wantLo, wantHi := x.m.bounds(ns, key, span); c.Lo != wantLo || c.Hi != wantHi || err != nil {
			x.t.Fatalf("%q over %v at %v: %+v, want %d to %d; %v", key, time.Duration(span), ns, c, wantLo, wantHi, err)
		}
	case op < 98:
		lo, hi := x.tb.BoundsAt(t, key)
		if wantLo, wantHi := x.m.bounds(ns, key, x.longest); lo != wantLo || hi != wantHi {
			x.t.Fatalf("%q at %v: %d to %d, want %d to %d", key, ns, lo, hi, wantLo, wantHi)
		}
	case op == 98 && x.IntN(4) == 0:
		if x.tb.Remove(key) != held {
			x.t.Fatalf("Remove(%q) = %t, want %t", key, !held, held)
		}
		delete(x.m.keys, key)
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
	late := x.m.late
	ok := x.m.add(ns, key, n)
	refused := x.tb.Stats().Refused
	var got bool
	var sum uint64
	if x.IntN(2) == 0 {
		got = x.tb.AddAt(t, key, n)
	} else {
		sum, got = x.tb.AddSumAt(t, key, n)
		if want, _ := x.m.bounds(ns, key, x.longest); got && sum != want {
			x.t.Fatalf("AddSumAt(%d, %q, %d) = %d, want %d", ns, key, n, sum, want)
		}
	}
	switch {
	case got == ok:
	case !got && x.m.late == late && x.tb.Stats().Refused == refused+1 && !held:
		delete(x.m.keys, key)
	default:
		x.t.Fatalf("an add of %q at %d: %t, want %t", key, ns, got, ok)
	}
}

// finish holds everything that is held against the model.
func (x *modelRun) finish() {
	if x.IntN(4) == 0 { // the end of a slot
		w := x.m.windows[x.IntN(len(x.m.windows))]
		x.now = (slotOfModel(x.now, w)+1)*int64(w.Slot) - 1
	}
	at := time.Unix(0, x.now)
	for key := range x.m.keys {
		x.settle(key)
	}
	var top []KeyCount
	span := x.span()
	want := 0
	for key := range x.m.keys {
		lo, hi := x.m.bounds(x.now, key, span)
		if lo > 0 {
			top = append(top, KeyCount{key, Count{lo, hi, x.m.estimate(x.now, lo, hi, span)}})
		}
		if lo, hi := x.tb.BoundsAt(at, key); true {
			if wantLo, wantHi := x.m.bounds(x.now, key, x.longest); lo != wantLo || hi != wantHi {
				x.t.Fatalf("at last, %q: %d to %d, want %d to %d", key, lo, hi, wantLo, wantHi)
			}
		}
		for _, w := range x.m.windows {
			if _, hi := x.m.bounds(x.now, key, int64(w.Span)); hi > 0 {
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
		wantLo, wantHi := x.m.bounds(x.now, key, span)
		if x.m.keys[key] == nil || c.Lo != wantLo || c.Hi != wantHi || err != nil {
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
	if s.Keys != records || s.Late != x.m.late || x.missing > s.Evicted || s.Saturated > 0 {
		x.t.Fatalf("%+v; %d records, %d missing, %d late", s, records, x.missing, x.m.late)
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
				Rand: rand.New(rand.NewPCG(seed, 0)), t: t, tb: tb, m: newTableModel(tb.Windows()),
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
	tb, err := NewTable(c, windows...)
	if err != nil {
		t.Fatal(err)
	}
	return tb
}
