package ban

import (
	"maps"
	"math"
	"testing"
)

// checkTable checks what must be true of every table that nobody changes.
func checkTable(t testing.TB, table *Table) {
	t.Helper()
	in := int64(0)
	for i := range table.shards {
		s := &table.shards[i]
		ix := s.index.Load()
		if ix == nil {
			if s.entries() != 0 {
				t.Fatalf("shard %d has %d entries and no index", i, s.entries())
			}
			continue
		}
		words := checkIndex(t, table, ix)
		if len(words) != s.entries() {
			t.Fatalf("shard %d: the index has %d entries, the heaps %d", i, len(words), s.entries())
		}
		rules := map[uint32]int{}
		for _, h := range []*heap{&s.held, &s.ended} {
			checkHeap(t, h, words)
			in += int64(h.n)
			for at := range h.n {
				if e := table.entry(*h.at(at)); !h.ended {
					rules[e.rule()]++
				} else if e.until() > s.now {
					t.Fatalf("shard %d: a ban that holds is among those that ended", i)
				}
			}
		}
		if !maps.Equal(rules, s.rules) {
			t.Fatalf("shard %d counts %v held, want %v", i, s.rules, rules)
		}
	}
	if n := int64(table.Len()); n != in {
		t.Fatalf("there are %d bans, and %d are counted", in, n)
	}
	for _, p := range []*pool{&table.entries.shared, &table.entries.reserve} {
		if p.used > p.most {
			t.Fatalf("%d entries of %d are used", p.used, p.most)
		}
	}
}

func checkHeap(t testing.TB, h *heap, words map[uint32]bool) {
	t.Helper()
	table := h.s.t
	next := int64(math.MaxInt64)
	for i := range h.n {
		number := *h.at(i)
		e := table.entry(number)
		next = min(next, h.time(number))
		if ended, at := e.place(); !words[number+1] || ended != h.ended || at != i {
			t.Fatalf("entry %d is not in the index, or has the place %v %d, not %v %d", number, ended, at, h.ended, i)
		}
		if up := max(i-1, 0) / 2; h.time(number) < h.time(*h.at(up)) {
			t.Fatalf("the heap is out of order at %d", i)
		}
	}
	if h.next.Load() != next {
		t.Fatalf("next is %d, want %d", h.next.Load(), next)
	}
}

// checkIndex checks that each line of ix has the bytes of its tags, and counts
// what has passed it. It returns which words there are.
func checkIndex(t testing.TB, table *Table, ix *index) map[uint32]bool {
	t.Helper()
	words, beyond := map[uint32]bool{}, make([]uint64, len(ix.lines))
	for i := range ix.lines {
		head := ix.lines[i][0].Load()
		for at := 1; at < len(ix.lines[i]); at++ {
			w := ix.lines[i][at].Load()
			if got, want := head>>(8*(at-1))&0xff, tagByte(w); w != 0 && got != want || w == 0 && got != 0 {
				t.Fatalf("line %d has the byte %x for the word %x", i, got, w)
			}
			if w == 0 {
				continue
			}
			words[uint32(w)] = true
			e := table.entry(uint32(w) - 1)
			for j := ix.home(e.hashLow(), e.rule()); j != uint32(i); j = (j + 1) & ix.mask {
				beyond[j]++
			}
		}
	}
	for i, n := range beyond {
		if got := ix.lines[i][0].Load() >> 56; got != n && got != 255 || n > 255 && got != 255 {
			t.Fatalf("line %d counts %d beyond, want %d", i, got, n)
		}
	}
	return words
}
