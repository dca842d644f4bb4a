package ban

import (
	"maps"
	"sync/atomic"
	"testing"
)

// checkTable checks the invariants of a table that no goroutine changes.
func checkTable(t testing.TB, table *Table) {
	t.Helper()
	rules, texts := map[uint32]int64{}, map[uint32]int{}
	for _, p := range []*part{&table.shared, &table.reserve} {
		n := int64(0)
		if in := p.table.Load(); in != nil {
			for _, r := range in.All() {
				e := entry(r.Words())
				n++
				rules[e.rule()]++
				if id := e.origin().text(); id != 0 {
					texts[id]++
				}
			}
		}
		if p.bans.Load() != n || n > p.most {
			t.Fatalf("there are %d bans, %d are counted, and there may be %d", n, p.bans.Load(), p.most)
		}
	}
	table.rules.Range(func(rule, n any) bool {
		if got, want := n.(*atomic.Int64).Load(), rules[rule.(uint32)]; got != want {
			t.Fatalf("%d bans of rule %d are counted, want %d", got, rule, want)
		}
		return true
	})
	shared := map[uint32]int{}
	for x, id := range table.texts.ids {
		if shared[id] = table.texts.texts[id].bans; table.texts.texts[id].text != x {
			t.Fatalf("text %d is %q, not %q", id, table.texts.texts[id].text, x)
		}
	}
	if !maps.Equal(shared, texts) {
		t.Fatalf("the texts have %v bans, want %v", shared, texts)
	}
}
