package ratelimit

import (
	"math"
	"testing"
)

// checkBanTable checks what must be true of every table that nobody changes.
func checkBanTable(t testing.TB, table *banTable) {
	t.Helper()
	var in [2]int64
	for i := range table.shards {
		s := &table.shards[i]
		ix := s.index.Load()
		if ix == nil {
			if s.entries() != 0 {
				t.Fatalf("shard %d has %d entries and no index", i, s.entries())
			}
			continue
		}
		words := checkBanIndex(t, table, ix)
		if len(words) != s.entries() {
			t.Fatalf("shard %d: the index has %d entries, the heaps %d", i, len(words), s.entries())
		}
		for room := range s.heaps {
			checkBanHeap(t, table, &s.heaps[room], words)
			in[room] += int64(len(s.heaps[room].numbers))
		}
	}
	for i := range table.rooms {
		if n := table.rooms[i].n.Load(); n != in[i] || n > table.rooms[i].most {
			t.Fatalf("room %d has %d bans, %d noted, of %d", i, in[i], n, table.rooms[i].most)
		}
	}
}

func checkBanHeap(t testing.TB, table *banTable, h *banHeap, words map[uint32]bool) {
	t.Helper()
	oldest := int64(math.MaxInt64)
	for at, number := range h.numbers {
		e := table.entry(number)
		oldest = min(oldest, e.until())
		if !words[number+1] || e.heapAt() != at {
			t.Fatalf("entry %d is not in the index, or has the place %d, not %d", number, e.heapAt(), at)
		}
		if up := max(at-1, 0) / 2; e.until() < table.entry(h.numbers[up]).until() {
			t.Fatalf("the heap is out of order at %d", at)
		}
	}
	if h.oldest.Load() != oldest {
		t.Fatalf("oldest is noted as %d, want %d", h.oldest.Load(), oldest)
	}
}

// checkBanIndex checks that each line of ix has the bytes of its tags, and counts
// what has passed it. It returns which words there are.
func checkBanIndex(t testing.TB, table *banTable, ix *banIndex) map[uint32]bool {
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
