package keytable_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// TestReserve adds as many keys as were reserved: hardly any group grows, also when the
// sweep comes by, and all keys are there.
func TestReserve(t *testing.T) {
	keys := 100_000
	if testing.Short() {
		keys /= 5
	}
	for _, c := range []struct {
		name  string
		key   string
		bytes uint64 // of a key outside of its record
	}{
		{"short keys", "%d", 0},
		{"long keys", strings.Repeat("long ", 10) + "%08d", 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, _, budget := newTable(t, 64<<20, nil)
			in.Reserve(keytable.Size{Keys: uint64(keys), Bytes: uint64(keys) * c.bytes})
			reserved, used := mustGroups(in), budget.Used()
			for i := range keys {
				put(in, fmt.Sprintf(c.key, i), uint64(i), forever)
			}
			if got := mustGroups(in); got > reserved+reserved/50 || budget.Used() > used+used/20 {
				t.Errorf("%d groups of %d bytes were reserved, there are %d of %d", reserved, used, got, budget.Used())
			}
			if perKey := budget.Used() / int64(keys); perKey > 110+2*int64(c.bytes) {
				t.Errorf("%d bytes a key", perKey)
			}
			for i := range keys {
				if v, ok := get(in, fmt.Sprintf(c.key, i)); !ok || v != uint64(i) {
					t.Fatalf("key %d has %d, %t", i, v, ok)
				}
			}
			in.Release()
			if n := budget.Used(); n != 0 {
				t.Errorf("%d bytes are left of an empty table", n)
			}
		})
	}
}

func mustGroups(in *keytable.Table) int {
	n, _ := in.GroupCount()
	return n
}

// TestReserveNothing reserves what a budget does not allow, what cannot be a size, and for
// a table with keys.
func TestReserveNothing(t *testing.T) {
	for _, s := range []keytable.Size{{Keys: 1 << 20}, {Keys: 1 << 62}, {Keys: 1, Bytes: 1 << 40}, {Bytes: 1}, {}} {
		in, _, budget := newTable(t, 1<<20, nil)
		before := budget.Used()
		if in.Reserve(s); budget.Used() != before {
			t.Errorf("%+v: %d bytes, were %d", s, budget.Used(), before)
		}
	}
	in, _, budget := newTable(t, 8<<20, nil)
	put(in, "k", 1, forever)
	before := budget.Used()
	if in.Reserve(keytable.Size{Keys: 1000}); budget.Used() != before {
		t.Errorf("a table with a key: %d bytes, were %d", budget.Used(), before)
	}
}

// TestReserveUnused adds fewer keys than were reserved: the sweep gives the rest back.
func TestReserveUnused(t *testing.T) {
	in, _, budget := newTable(t, 64<<20, nil)
	in.Reserve(keytable.Size{Keys: 300_000})
	used := budget.Used()
	for i := range 30_000 {
		put(in, fmt.Sprint(i), 1, forever)
	}
	for i := 0; budget.Used() > used/3; i++ {
		if i == 1_000_000 {
			t.Fatalf("%d of %d bytes are in use after %d changes", budget.Used(), used, i)
		}
		put(in, "another", 1, forever)
		in.Remove(in.Hash("another"), "another")
	}
}
