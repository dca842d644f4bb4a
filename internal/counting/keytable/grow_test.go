package keytable_test

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/test/must"
)

// guarded is a Policy that protects records whose first word is 1, and counts
// the looks at weights.
type guarded struct {
	ages
	looks int
}

func (g *guarded) Weight(r keytable.Record) uint64 {
	g.looks++
	if r.Words()[0] == 1 {
		return keytable.Protected
	}
	return r.Words()[0]
}

func newGuarded(t *testing.T, budget int64) (*keytable.Table, *guarded) {
	policy := new(guarded)
	in := must.Get(keytable.New(maphash.MakeSeed(), keytable.Config{Words: 5, Budget: keytable.NewBudget(budget), Policy: policy}))(t)
	return in, policy
}

// A fetch that goes elsewhere is not wrong, only useless, so no other test would see it.
func TestTableFetchesWhereItLooks(t *testing.T) {
	in, _ := newGuarded(t, 64<<20)
	for i := range uint64(100_000) {
		put(in, fmt.Sprint("key ", i), 0, 100)
	}
	groups, entries := in.GroupCount()
	if n := in.MisplacedEntries(); n != 0 || groups < 100 {
		t.Errorf("%d of %d entries of %d groups lead a fetch elsewhere than to the places of their group", n, entries, groups)
	}
}

// Where all records are protected, new keys are refused, at little cost, until
// some have expired.
func TestTableAllProtected(t *testing.T) {
	in, policy := newGuarded(t, 256<<10)
	n := uint64(0)
	for ; put(in, fmt.Sprint("held ", n), 1, 100); n++ {
	}
	before := policy.looks
	refused := 0
	for i := range uint64(50_000) {
		if !put(in, fmt.Sprint("new ", i), 1, 100) {
			refused++
		}
	}
	held := in.Len()
	if refused < 45_000 || in.Stats().Evicted != 0 || int(in.Stats().Refused) != refused+1 {
		t.Errorf("%d refused, %+v", refused, in.Stats())
	}
	// 8 to 11 for each key; without the refusals between looks 10 to 30, 16 in the mean.
	if looks := policy.looks - before; looks > 13*50_000 {
		t.Errorf("%d looks at weights for %d keys", looks, 50_000)
	}
	for i := range n {
		if _, ok := get(in, fmt.Sprint("held ", i)); !ok {
			t.Fatalf("a protected key is gone: %d of %d", i, n)
		}
	}
	policy.now = 101
	added := 0
	for i := range held {
		if put(in, fmt.Sprint("later ", i), 1, 200) {
			added++
		}
	}
	if added < held*3/4 || in.Stats().Evicted != 0 {
		t.Errorf("%d of %d added after all had expired; %+v", added, held, in.Stats())
	}
}

// Keys that are not protected are evicted for each other, with few visits to the others.
func TestTableFewUnprotected(t *testing.T) {
	var looks []int
	keys := 50_000
	if testing.Short() {
		keys /= 5
	}
	for range 5 {
		looks = append(looks, looksOfFewUnprotected(t, keys))
	}
	slices.Sort(looks)
	// 8 to 11 for each key; without the refusals between looks 10 to 30, 16 in the mean.
	if looks[2] > 12*keys {
		t.Errorf("%d looks at weights for %d keys", looks, keys)
	}
}

// looksOfFewUnprotected returns how often a table, where two keys in a hundred may be evicted, reads weights for a number
// of new keys.
func looksOfFewUnprotected(t *testing.T, keys int) int {
	in, policy := newGuarded(t, 256<<10)
	for i := uint64(0); put(in, fmt.Sprint("held ", i), 1, forever); i++ {
	}
	full := in.Len()
	for i := 0; in.Len() > full-full/50; i++ {
		key := fmt.Sprint("held ", i)
		in.Remove(in.Hash(key), key)
	}
	before, held := policy.looks, in.Len()
	allowed := 0
	for i := range uint64(keys) {
		if put(in, fmt.Sprint("passing ", i), 2+i, forever) {
			allowed++
		}
	}
	protected := 0
	for _, r := range in.All() {
		if r.Words()[0] == 1 {
			protected++
		}
	}
	if protected != held || allowed < 100 || in.Stats().Evicted == 0 {
		t.Errorf("%d protected of %d, %d passing keys allowed; %+v", protected, held, allowed, in.Stats())
	}
	return int(policy.looks - before)
}

// Empty tables take little memory, and give all of it back.
func TestTableManyTables(t *testing.T) {
	const tables = 1024
	budget := keytable.NewBudget(64 << 20)
	policy := new(ages)
	var all []*keytable.Table
	for range tables {
		in := must.Get(keytable.New(oneSeed, keytable.Config{Words: 5, Budget: budget, Policy: policy}))(t)
		all = append(all, in)
	}
	if each := budget.Used() / tables; each > 9<<10 {
		t.Errorf("an empty table takes %d bytes", each)
	}
	hash := all[0].Hash("key")
	for i, in := range all {
		if in.Hash("key") != hash {
			t.Fatal("tables with one seed do not agree on a hash")
		}
		for k := range 10 * (i % 10) {
			put(in, fmt.Sprint(k), 1, forever)
		}
	}
	for _, in := range all {
		in.Release()
		in.Release()
		if _, state := in.LockOrAdd(hash, "key"); state != keytable.Moved || in.Len() != 0 {
			t.Fatalf("a table that was released: %d, %d keys", state, in.Len())
		}
	}
	if used := budget.Used(); used != 0 {
		t.Errorf("%d bytes are not given back", used)
	}
}

// Drain hands over each key of the group, once, and no other.
func TestTableDrain(t *testing.T) {
	in, policy, budget := newTable(t, 4<<20, nil)
	policy.dropped = make(map[uint64]bool)
	for i := range uint64(3000) {
		put(in, fmt.Sprint("a key, not all too short: ", i)[i%2*20:], i, forever)
	}
	got := make(map[uint64]string)
	take := func(key []byte, r keytable.Record) { got[r.Words()[0]] = string(key) }
	hash := in.Hash("a key, not all too short: 0")
	in.Drain(hash, take)
	in.Drain(hash, func([]byte, keytable.Record) { t.Error("a page was drained twice") })
	if got[0] == "" || len(got) > 1000 || in.Len() != 3000-len(got) {
		t.Errorf("%d keys in one page, %d left", len(got), in.Len())
	}
	for i := range uint64(3000) {
		key := fmt.Sprint("a key, not all too short: ", i)[i%2*20:]
		r, state := in.Lock(in.Hash(key), key)
		if moved := got[i] != ""; moved && (state != keytable.Moved || got[i] != key) || !moved && state != keytable.Found {
			t.Errorf("%q: %d, was drained as %q", key, state, got[i])
		}
		if state == keytable.Found {
			r.Unlock()
		}
		if got[i] != "" && in.Remove(in.Hash(key), key) {
			t.Errorf("%q was removed from a drained page", key)
		}
	}
	in.DrainAll(take)
	in.Expire()
	in.Rebase(hash)
	if len(got) != 3000 || in.Len() != 0 || len(policy.dropped) != 0 {
		t.Errorf("%d keys in all, %d left, %d dropped", len(got), in.Len(), len(policy.dropped))
	}
	in.Release()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are not given back", budget.Used())
	}
}

func TestTableErrors(t *testing.T) {
	for _, x := range []struct {
		c    keytable.Config
		want string
	}{
		{keytable.Config{Words: 1, Budget: keytable.NewBudget(4000)}, "budget 4000: an empty table takes "},
		{keytable.Config{Words: -1, Budget: keytable.NewBudget(1 << 20)}, "words -1: must be from 0 to 1048573"},
	} {
		x.c.Policy = new(ages)
		if _, err := keytable.New(oneSeed, x.c); err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.c, err, x.want)
		}
	}
}
