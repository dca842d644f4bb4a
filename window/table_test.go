package window

import (
	"container/list"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func tenSeconds() Window { return Window{Span: 10 * time.Second, Slot: time.Second} }

func TestTableLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := mustTable(t, TableConfig{}, tenSeconds(), Window{Span: 30 * time.Second, Slot: 30 * time.Second})
		for i := range 20 {
			if sum, ok := tb.AddSum("a", uint64(i)); !ok || i < 10 && sum != uint64(i*(i+1)/2) {
				t.Errorf("AddSum(a, %d) = %d, %t", i, sum, ok)
			}
			tb.Add("b", 1)
			time.Sleep(time.Second)
		}
		time.Sleep(500 * time.Millisecond)
		// 20.5 s: the slots 11 to 20 are inside 10 s, slot 10 is cut.
		c, err := tb.Count("a", 10*time.Second)
		if c != (Count{135, 145, 140}) || err != nil {
			t.Errorf("%+v, %v; want 135 to 145", c, err)
		}
		if c, err := tb.Count("b", 3*time.Second); c.Lo != 2 || err != nil {
			t.Errorf("b over 3 s: %+v, %v; want 2", c, err)
		}
		r := tb.Read("a")
		want := uint64(11)
		for start, count := range r.Slots(10 * time.Second) {
			if count != want%20 || time.Since(start) != time.Duration(20-want)*time.Second+500*time.Millisecond {
				t.Errorf("the slot at %v has %d, want %d", start, count, want%20)
			}
			want++
		}
		if c, err := r.Count(30 * time.Second); want != 21 || c.Lo != tb.Sum("a") || err != nil {
			t.Errorf("read %+v, %v, %d slots; the table has %d", c, err, want-11, tb.Sum("a"))
		}
		if tb.Sum("c") != 0 || tb.Len() != 2 {
			t.Errorf("c has %d; %d keys", tb.Sum("c"), tb.Len())
		}
		before := tb.Stats().Bytes
		time.Sleep(2 * time.Minute)
		if lo, hi := tb.Bounds("a"); lo != 0 || hi != 0 || tb.Estimate("a") != 0 {
			t.Errorf("minutes later: %d to %d", lo, hi)
		}
		tb.Expire()
		if s := tb.Stats(); s.Keys != 0 || s.Expired != 2 || s.Bytes > before {
			t.Errorf("after Expire: %+v", s)
		}
	})
}

// The estimate of two counters is the weighted sum of the two.
func TestTableEstimate(t *testing.T) {
	tb := mustTable(t, TableConfig{}, Window{Span: 10 * time.Second, Slot: 10 * time.Second})
	start := time.Unix(500, 0)
	tb.AddAt(start, "k", 100)
	tb.AddAt(start.Add(10*time.Second), "k", 7)
	for after, want := range map[time.Duration]uint64{0: 107, 2500: 82, 5000: 57, 9999: 7} {
		if got := tb.EstimateAt(start.Add(10*time.Second+after*time.Millisecond), "k"); got != want {
			t.Errorf("%v ms: %d, want %d", int64(after), got, want)
		}
	}
}

func TestTableErrors(t *testing.T) {
	for _, x := range []struct {
		c       TableConfig
		windows []Window
		want    string
	}{
		{TableConfig{}, nil, "0 windows: must be from 1 to 8"},
		{TableConfig{}, make([]Window, 9), "9 windows"},
		{TableConfig{}, []Window{{}}, "window: span 0s"},
		{TableConfig{}, []Window{{Span: time.Hour, Slot: time.Millisecond}}, "has 3600000 slots"},
		{TableConfig{}, []Window{{Span: time.Second, Slot: 200 * time.Microsecond}}, "at most 4096, so the slot must be 244.141µs or more"},
		{TableConfig{}, []Window{Last(time.Second), Last(time.Minute), {Span: time.Second, Slot: time.Second}}, "two windows of span 1s"},
		{TableConfig{Budget: -1}, []Window{Last(time.Second)}, "budget -1: must be positive"},
		{TableConfig{Budget: 1000}, []Window{Last(time.Second)}, "budget 1000: an empty table takes"},
	} {
		if _, err := NewTable(x.c, x.windows...); err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "window: ") {
			t.Errorf("%+v %v: %v, want %q", x.c, x.windows, err, x.want)
		}
	}
	tb := mustTable(t, TableConfig{}, Last(time.Second), Last(time.Millisecond))
	if w := tb.Windows(); len(w) != 2 || w[0] != Last(time.Millisecond) {
		t.Errorf("windows %v", w)
	}
	for _, span := range []time.Duration{0, -1, time.Second + 1} {
		if _, err := tb.Count("k", span); err == nil || !strings.Contains(err.Error(), "longest window's 1s") {
			t.Errorf("span %d: %v", span, err)
		}
		if _, err := tb.Top(3, span); err == nil {
			t.Errorf("Top over %d: no error", span)
		}
	}
}

// The least budget that NewTable takes is enough for a table that works.
func TestTableLeastBudget(t *testing.T) {
	for _, windows := range [][]Window{{tenSeconds()}, {Last(time.Second), Last(time.Hour), {Span: 4096 * time.Hour, Slot: time.Hour}}} {
		budget := int64(1)
		for ; ; budget = budget*5/4 + 1 {
			if _, err := NewTable(TableConfig{Budget: budget}, windows...); err == nil {
				break
			}
		}
		tb := mustTable(t, TableConfig{Budget: budget}, windows...)
		for i := range 1000 {
			if key := fmt.Sprint(i); !tb.Add(key, 1) || tb.Sum(key) != 1 {
				t.Fatalf("budget %d: key %d refused", budget, i)
			}
		}
		if s := tb.Stats(); s.Bytes > budget || s.Evicted == 0 {
			t.Errorf("%+v", s)
		}
	}
}

func TestTableAhead(t *testing.T) {
	w := tenSeconds()
	w.Ahead = time.Minute
	tb := mustTable(t, TableConfig{}, w, Last(time.Hour))
	add := func(s int64, ns int64, ok bool) {
		t.Helper()
		if got := tb.AddAt(time.Unix(s, ns), fmt.Sprint(s), 1); got != ok {
			t.Errorf("AddAt(%d s) = %t, want %t", s, got, ok)
		}
	}
	add(10_000, 0, true)
	add(10_060, 999_999_999, true)
	add(10_121, 0, false)
	add(4_070_908_800, 0, false)
	add(10_062, 0, true)
	add(4_070_908_811, 0, false)
	if got := tb.SumAt(time.Unix(10_062, 0), "10062"); got != 1 || tb.Len() != 3 {
		t.Errorf("sum %d, %d keys: refused events must change nothing", got, tb.Len())
	}
	add(4_070_908_801, 0, true)
	add(10_064, 0, false)
	if s := tb.Stats(); s.Future != 3 || s.Late != 1 {
		t.Errorf("%+v", s)
	}
}

// Counts above the bound of a slot in a small record are not lost.
func TestTableLargeCounts(t *testing.T) {
	for _, w := range []Window{{Span: 10 * time.Second, Slot: 10 * time.Second}, tenSeconds(), Last(10 * time.Second)} {
		tb := mustTable(t, TableConfig{}, w, Last(time.Second))
		at := time.Unix(1000, 0)
		var want uint64
		for i, n := range []uint64{1, 65_533, 1, 1, 1 << 24, 1<<24 - 1, 1 << 40, 1 << 63, 5} {
			want += n
			if sum, ok := tb.AddSumAt(at.Add(time.Duration(i)*time.Millisecond), "k", n); sum != want || !ok {
				t.Fatalf("%v: %d, want %d", w, sum, want)
			}
		}
		if s := tb.Stats(); s.Full != 1 || s.Saturated != 0 {
			t.Errorf("%v: %+v", w, s)
		}
		if sum, ok := tb.AddSumAt(at, "k", math.MaxUint64); sum != math.MaxUint64 || !ok || tb.Stats().Saturated != 1 {
			t.Errorf("%v: %d, %t, %+v", w, sum, ok, tb.Stats())
		}
		tb.AddAt(at.Add(time.Minute), "k", 3)
		if got := tb.SumAt(at.Add(time.Minute), "k"); got != 3 {
			t.Errorf("%v: a minute later %d, want 3", w, got)
		}
		tb.Remove("k")
		if s := tb.Stats(); s.Full != 0 || s.Keys != 0 {
			t.Errorf("%v: removed, %+v", w, s)
		}
	}
}

// If there is no memory for a larger record, a slot stays at its maximum.
func TestTableSaturates(t *testing.T) {
	tb := mustTable(t, TableConfig{Budget: 300 << 10, RefuseNew: true}, tenSeconds())
	at := time.Unix(1000, 0)
	n := 0
	for ; tb.Stats().Saturated == 0 && n < 100_000; n++ {
		tb.AddAt(at, fmt.Sprint(n), 100_000)
	}
	s := tb.Stats()
	if s.Saturated == 0 || s.Full == 0 || s.Bytes > s.Budget {
		t.Fatalf("after %d keys: %+v", n, s)
	}
	if got := tb.SumAt(at, fmt.Sprint(n-1)); got != 65_535 {
		t.Errorf("the slot has %d, want 65535", got)
	}
}

// The memory of full records returns with them: later keys have as much memory as those of a new table.
func TestTableGivesFullRecordsBack(t *testing.T) {
	at := time.Unix(1000, 0)
	tb := mustTable(t, TableConfig{Budget: 1 << 20, RefuseNew: true}, Last(time.Minute))
	fill := func(tb *Table, at time.Time, n uint64) int {
		for i := range 20_000 {
			tb.AddAt(at, fmt.Sprint(i), n)
		}
		return tb.Len()
	}
	want := fill(mustTable(t, TableConfig{Budget: 1 << 20, RefuseNew: true}, Last(time.Minute)), at, 1)
	if fill(tb, at, 100_000); tb.Stats().Full == 0 {
		t.Fatalf("%+v", tb.Stats())
	}
	tb.ExpireAt(at.Add(time.Hour))
	if s := tb.Stats(); s.Keys != 0 || s.Bytes > s.Budget/5 {
		t.Errorf("expired: %+v", s)
	}
	if got := fill(tb, at.Add(time.Hour), 1); got < want*9/10 {
		t.Errorf("memory for %d keys, %d in a new table", got, want)
	}
}

// E2: a key that is counted often stays, whatever number of new keys comes. The control, a table that evicts the least
// recently used key, loses it.
func TestTableFloodKeepsTheBusy(t *testing.T) {
	const victims, hits = 50, 9
	at := time.Unix(1000, 0)
	for _, w := range []Window{{Span: time.Minute, Slot: time.Minute}, {Span: time.Minute, Slot: 6 * time.Second}} {
		tb := mustTable(t, TableConfig{Budget: 192 << 10}, w)
		for i := range victims {
			tb.AddAt(at, fmt.Sprint("victim", i), hits)
		}
		capacity := 0
		for i := 0; tb.Stats().Evicted == 0; i++ {
			tb.AddAt(at, fmt.Sprint("fill", i), 1)
			capacity = i
		}
		lru := newLRUCounts(capacity)
		for i := range victims {
			lru.add(fmt.Sprint("victim", i), hits)
		}
		for i := range 10 * capacity {
			key := fmt.Sprint("flood", i)
			if !tb.AddAt(at.Add(time.Duration(i)), key, 1) {
				t.Fatalf("%q refused", key)
			}
			lru.add(key, 1)
		}
		kept := 0
		for i := range victims {
			key := fmt.Sprint("victim", i)
			if got := tb.SumAt(at.Add(time.Second), key); got != hits {
				t.Errorf("%v: %s has %d, want %d", w, key, got, hits)
			}
			kept += int(lru.counts[key].n)
		}
		if kept != 0 {
			t.Errorf("the control has kept %d, so this test shows nothing", kept)
		}
		s := tb.Stats()
		if s.Keys < capacity*3/4 || s.Evicted < uint64(8*capacity) {
			t.Errorf("%+v with a capacity of %d", s, capacity)
		}
	}
}

type lruCounts struct {
	capacity int
	order    *list.List
	counts   map[string]lruCount
}

type lruCount struct {
	n    uint64
	elem *list.Element
}

func newLRUCounts(capacity int) *lruCounts {
	return &lruCounts{capacity: capacity, order: list.New(), counts: make(map[string]lruCount)}
}

func (l *lruCounts) add(key string, n uint64) {
	c, ok := l.counts[key]
	if ok {
		l.order.MoveToFront(c.elem)
	} else {
		c.elem = l.order.PushFront(key)
	}
	c.n += n
	l.counts[key] = c
	if len(l.counts) > l.capacity {
		delete(l.counts, l.order.Remove(l.order.Back()).(string))
	}
}

func TestTableRefusesNewKeys(t *testing.T) {
	tb := mustTable(t, TableConfig{Budget: 256 << 10, RefuseNew: true}, tenSeconds())
	at := time.Unix(1000, 0)
	held := make(map[string]bool)
	for i := range 20_000 {
		if key := fmt.Sprint(i); tb.AddAt(at, key, 1) {
			held[key] = true
		}
	}
	s := tb.Stats()
	if s.Keys != len(held) || s.Refused != 20_000-uint64(len(held)) || s.Evicted+s.Expired != 0 || s.Keys < 2000 {
		t.Errorf("%+v, %d held", s, len(held))
	}
	for key := range held {
		if sum, ok := tb.AddSumAt(at, key, 1); sum != 2 || !ok {
			t.Fatalf("%q has %d, %t; a key that is held must go on", key, sum, ok)
		}
	}
	later := 0
	for i := range 20_000 {
		if tb.AddAt(at.Add(time.Hour), fmt.Sprint("new", i), 1) {
			later++
		}
	}
	if later < s.Keys*3/4 {
		t.Errorf("%d new keys held after all had expired, %d before", later, s.Keys)
	}
}

func TestTableLongKeys(t *testing.T) {
	tb := mustTable(t, TableConfig{}, tenSeconds())
	for n := MaxTableKey - 1; n <= MaxTableKey+1; n++ {
		key := strings.Repeat("x", n)
		held := n <= MaxTableKey
		if sum, ok := tb.AddSum(key, 3); ok != held || (sum == 3) != held || (tb.Sum(key) == 3) != held {
			t.Errorf("a key of %d bytes: %d, %t", n, sum, ok)
		}
	}
	if s := tb.Stats(); s.Keys != 2 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
}

// An add whose slot another add has meanwhile moved out of the window gets that result, and changes nothing.
func TestTableFormOlderThanTheRing(t *testing.T) {
	for _, window := range []Window{tenSeconds(), {Span: time.Second, Slot: time.Second}} {
		var w tableWindow
		w.init(window, 0, 0, 0)
		words := make([]uint64, w.end)
		for _, x := range []struct {
			rel  int64
			fits bool
		}{{100, true}, {100 - w.slots, true}, {100 - w.slots - 1, false}, {0, false}, {100 + w.slots, true}, {100, true}, {99, false}} {
			before := slices.Clone(words)
			if got := w.add(words, x.rel, 3); got != x.fits || slices.Equal(before, words) == x.fits {
				t.Errorf("%v: an add at %d: %t, want %t; %x, before %x", window, x.rel, got, x.fits, words, before)
			}
		}
	}
}
