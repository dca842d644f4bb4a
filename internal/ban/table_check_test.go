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
		if g == nil {
			if s.entries() != 0 || s.bytes != 0 || s.reserved != 0 {
				t.Fatalf("shard %d has %d entries, %d bytes, %d of the reserve, and no memory", i, s.entries(), s.bytes, s.reserved)
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
		if used != s.entries() {
			t.Fatalf("shard %d: the index has %d entries, the heaps %d", i, used, s.entries())
		}
		for _, h := range []*heap{&s.held, &s.ended} {
			checkHeap(t, h)
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

func checkHeap(t testing.TB, h *heap) {
	t.Helper()
	next := int64(math.MaxInt64)
	for i := range h.n {
		number := *h.at(i)
		next = min(next, h.time(number))
		if e := h.g.entries[number]; e.state != h.state || e.place != uint32(i) {
			t.Fatalf("entry %d has the place %d %d, not %d %d", number, e.state, e.place, h.state, i)
		}
		if up := max(i-1, 0) / 2; h.time(number) < h.time(*h.at(up)) {
			t.Fatalf("the heap is out of order at %d", i)
		}
	}
	if h.next.Load() != next {
		t.Fatalf("next is %d, want %d", h.next.Load(), next)
	}
}
