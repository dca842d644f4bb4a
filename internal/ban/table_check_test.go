package ban

import (
	"maps"
	"math"
	"testing"
)

// checkTable checks what must be true of every table that nobody changes.
func checkTable(t testing.TB, table *Table) {
	t.Helper()
	in := map[bool]int64{} // by whether they are of the reserve
	bytes, reserved := int64(0), int64(0)
	for i := range table.shards {
		s := &table.shards[i]
		bytes, reserved = bytes+s.bytes, reserved+s.reserved
		g := s.memory.Load()
		if g == table.empty {
			if g.inUse() != 0 || s.bytes != 0 || s.reserved != 0 {
				t.Fatalf("shard %d has %d entries, %d bytes, %d of the reserve, and no memory", i, g.inUse(), s.bytes, s.reserved)
			}
			continue
		}
		if want := generationBytes(len(g.entries), len(g.text)); s.bytes != want {
			t.Fatalf("shard %d has paid %d bytes, want %d", i, s.bytes, want)
		}
		used, rules := 0, map[uint32]int{}
		s.each(func(r ref, e *entry) {
			used++
			in[e.reserve]++
			number, ok := g.find(uint32(r.word>>32), e.rule, g.key(e))
			if !ok || number != r.number() {
				t.Fatalf("shard %d: entry %d is found as %d, %v", i, r.number(), number, ok)
			}
			if e.state == held {
				rules[e.rule]++
			} else if e.until > s.now {
				t.Fatalf("shard %d: a ban that holds is among those that ended", i)
			}
		})
		if used != g.inUse() {
			t.Fatalf("shard %d: the index has %d entries, the heaps %d", i, used, g.inUse())
		}
		if end := checkHeap(t, g, held, func(e *entry) int64 { return e.until }); s.end.Load() != end {
			t.Fatalf("shard %d: the first ban ends at %d, want %d", i, s.end.Load(), end)
		}
		if gone := checkHeap(t, g, ended, (*entry).expires); s.gone.Load() != gone {
			t.Fatalf("shard %d: the first ended ban expires at %d, want %d", i, s.gone.Load(), gone)
		}
		if !maps.Equal(rules, s.rules) {
			t.Fatalf("shard %d counts %v held, want %v", i, s.rules, rules)
		}
	}
	for reserve, n := range in {
		if p := table.pool(reserve).places; p.Used() != n || n > p.Limit() {
			t.Fatalf("reserve %v: there are %d bans, %d are counted, and there may be %d", reserve, n, p.Used(), p.Limit())
		}
	}
	if n := int64(table.Len()); n != in[false]+in[true] {
		t.Fatalf("there are %d bans, and %d are counted", in[false]+in[true], n)
	}
	if used := table.reserve.budget.Used(); used != reserved || table.shared.budget.Used() < bytes-reserved {
		t.Fatalf("%d bytes of the reserve are used, and %d others; want %d, and %d or more", used, table.shared.budget.Used(), reserved, bytes-reserved)
	}
}

// checkHeap checks the heap of the entries of a state, and returns the first of their times.
func checkHeap(t testing.TB, g *generation, s state, time func(*entry) int64) int64 {
	t.Helper()
	first := int64(math.MaxInt64)
	for i, number := range g.heap(s).Items() {
		e := &g.entries[number]
		if first = min(first, time(e)); e.state != s || e.place != uint32(i) {
			t.Fatalf("entry %d has the place %d %d, not %d %d", number, e.state, e.place, s, i)
		}
		if up := g.heap(s).Items()[max(i-1, 0)/2]; time(e) < time(&g.entries[up]) {
			t.Fatalf("the heap is out of order at %d", i)
		}
	}
	return first
}
