package keytable_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

var oneSeed = maphash.MakeSeed()

// sums is a Policy whose records have a sum in their first word and the same in the second, so that two users of a record
// at once are detected. Dropped sums are added up.
type sums struct {
	t         *testing.T
	dropped   atomic.Uint64
	protected uint64 // what weighs so much is protected
	expiring  atomic.Bool
	base      atomic.Int64
}

func (s *sums) Base(base *[keytable.MaxBases]int64) { base[0] = s.base.Load() }
func (s *sums) Expired(r keytable.Record) bool {
	return s.expiring.Load() && r.Words()[0]%7 == 0
}

func (s *sums) Weight(r keytable.Record) uint64 {
	if w := r.Words()[0]; s.protected == 0 || w < s.protected {
		return w
	}
	return keytable.Protected
}

func (s *sums) Rebase(r keytable.Record, from *[keytable.MaxBases]int64) {
	r.Words()[2] += uint64(from[0] - r.Base()[0])
}

func (s *sums) Drop(r keytable.Record) {
	s.add(r, 0)
	s.dropped.Add(r.Words()[0])
}

func (s *sums) add(r keytable.Record, n uint64) {
	w := r.Words()
	if w[0] != w[1] {
		s.t.Errorf("a record has %d and %d", w[0], w[1])
	}
	w[0] += n
	if n%5 == 0 {
		runtime.Gosched() // while others look for it
	}
	w[1] += n
	if int64(w[2])+r.Base()[0] != 0 && w[0] != n {
		s.t.Errorf("a record is %d after 0, its base %d", w[2], r.Base()[0])
	}
	w[2] = uint64(-r.Base()[0])
}

// A conserving is a Table that is used by many goroutines at once.
type conserving struct {
	*sums
	in    *keytable.Table
	added atomic.Uint64
	keys  int
	odd   int // how often a goroutine does something else than add, in a thousand
}

func newConserving(t *testing.T, budget int64, keys, odd int, change func(*keytable.Config)) *conserving {
	policy := &sums{t: t}
	c := keytable.Config{Words: 3, Budget: keytable.NewBudget(budget), Policy: policy}
	if change != nil {
		change(&c)
	}
	in := must.Get(keytable.New(oneSeed, c))(t)
	return &conserving{sums: policy, in: in, keys: keys, odd: odd}
}

func (c *conserving) run(goroutines, each int, seed uint64) (lost int64) {
	var wg sync.WaitGroup
	for g := range goroutines {
		rnd := rand.New(rand.NewPCG(seed, uint64(g)))
		wg.Go(func() {
			for i := range each {
				key := fmt.Sprint("key ", rnd.IntN(1+c.keys*(i+1)/each)) // more and more keys
				if rnd.IntN(20) == 0 {
					key = "one of the longer keys: " + key
				}
				c.step(rnd, key)
			}
		})
	}
	wg.Wait()
	held := uint64(0)
	for _, r := range c.in.All() {
		held += r.Words()[0]
	}
	return int64(c.added.Load() - held - c.dropped.Load())
}

func (c *conserving) step(rnd *rand.Rand, key string) {
	hash := c.in.Hash(key)
	if rnd.IntN(1000) >= c.odd {
		r, state := c.in.LockOrAdd(hash, key)
		if state == keytable.NoMemory {
			return
		}
		n := rnd.Uint64N(1000)
		c.sums.add(r, n)
		c.added.Add(n)
		r.Unlock()
		return
	}
	switch rnd.IntN(4) {
	case 0:
		c.in.Remove(hash, key)
	case 1:
		c.sums.base.Add(1)
		c.in.Rebase(hash)
	case 2:
		c.expiring.Store(true)
		c.in.Expire()
		c.expiring.Store(false)
	case 3:
		last := rnd.IntN(16)
		for group := range c.in.Groups() {
			for range group {
			}
			if last--; last < 0 {
				break
			}
		}
	}
}

// Adds of many goroutines are there afterwards, or were in a record that was dropped, whatever happens to pages meanwhile.
func TestConcurrentTableConservation(t *testing.T) {
	each := 20_000
	if testing.Short() {
		each = 1_500
	}
	seed := randtest.New(t).Uint64()
	for _, x := range []struct {
		name   string
		budget int64
		odd    int
		change func(*keytable.Config)
	}{
		{"growing", 64 << 20, 0, nil},
		{"all at once", 64 << 20, 20, nil},
		{"dropping", 100 << 10, 0, nil},
		{"dropping, all at once", 100 << 10, 20, nil},
		{"refusing, all at once", 100 << 10, 20, func(c *keytable.Config) { c.RefuseNew = true }},
	} {
		c := newConserving(t, x.budget, 10_000, x.odd, x.change)
		if lost := c.run(8, each, seed); lost != 0 {
			t.Errorf("%s: %d of %d lost", x.name, lost, c.added.Load())
		}
		if gone := c.in.Stats(); x.budget < 1<<20 && gone.Evicted+gone.Refused == 0 || x.odd > 0 && gone.Expired == 0 {
			t.Errorf("%s: %+v", x.name, gone)
		}
	}
}

// The control of TestConcurrentTableConservation: a table that grows without locking its
// records loses concurrent adds.
func TestConcurrentTableConservationControl(t *testing.T) {
	seed := randtest.New(t).Uint64()
	for round := range uint64(50) {
		c := newConserving(t, 64<<20, 10_000, 0, nil)
		c.t = nil
		c.in.Careless()
		if c.runBroken(8, 5_000, seed+round) > 0 {
			return
		}
	}
	t.Error("a table that grows without locking its records loses nothing: the test has no teeth")
}

// runBroken is run without looking into the records.
func (c *conserving) runBroken(goroutines, each int, seed uint64) (lost int64) {
	var wg sync.WaitGroup
	for g := range goroutines {
		rnd := rand.New(rand.NewPCG(seed, uint64(g)))
		wg.Go(func() {
			for i := range each {
				key := fmt.Sprint("key ", rnd.IntN(1+c.keys*(i+1)/each))
				r, _ := c.in.LockOrAdd(c.in.Hash(key), key)
				if i%5 == 0 {
					runtime.Gosched()
				}
				r.Words()[0]++
				c.added.Add(1)
				r.Unlock()
			}
		})
	}
	wg.Wait()
	held := uint64(0)
	for _, r := range c.in.All() {
		held += r.Words()[0]
	}
	return int64(c.added.Load() - held)
}

// Drain passes on every record once, and afterwards no add counts in the old table: concurrent adds are in one table or the
// other.
func TestConcurrentTableDrainMeanwhile(t *testing.T) {
	const goroutines = 8
	each := 20_000
	if testing.Short() {
		each = 3_000
	}
	seed := randtest.New(t).Uint64()
	from := newConserving(t, 64<<20, 0, 0, nil)
	to := newConserving(t, 64<<20, 0, 0, func(c *keytable.Config) { c.Words = 5 })
	var added atomic.Uint64
	var wg sync.WaitGroup
	for g := range goroutines {
		rnd := rand.New(rand.NewPCG(seed, uint64(g)))
		wg.Go(func() {
			for i := range each {
				if g == 0 && i%(each/16) == each/32 {
					moveOn(t, from.in, to.in, i/(each/16))
				}
				key := fmt.Sprint("a key of some length ", rnd.IntN(3000))[rnd.IntN(2)*12:]
				hash := from.in.Hash(key)
				r, state := from.in.LockOrAdd(hash, key)
				if state == keytable.Moved {
					r, state = to.in.LockOrAdd(hash, key)
				}
				if state != keytable.Found && state != keytable.Added {
					t.Errorf("%q: %d", key, state)
					return
				}
				r.Words()[0]++
				r.Unlock()
				added.Add(1)
			}
		})
	}
	wg.Wait()
	held := uint64(0)
	for _, r := range to.in.All() {
		held += r.Words()[0]
	}
	if held != added.Load() || from.in.Len() != 0 {
		t.Errorf("%d held, %d added; %d keys in the old table", held, added.Load(), from.in.Len())
	}
}

func moveOn(t *testing.T, from, to *keytable.Table, page int) {
	seen := make(map[string]bool)
	drain := func(f func([]byte, keytable.Record)) { from.Drain(uint64(page)<<60, f) }
	if page == 15 {
		drain = from.DrainAll
	}
	drain(func(key []byte, r keytable.Record) {
		if seen[string(key)] {
			t.Errorf("%q comes twice", key)
		}
		seen[string(key)] = true
		into, state := to.LockOrAdd(to.Hash(string(key)), string(key))
		if state != keytable.Added {
			t.Errorf("%q was in the new table before: %d", key, state)
		}
		copy(into.Words(), slices.Clone(r.Words()))
		into.Unlock()
	})
}

// Two tables, locked in one order by all, with drops in both.
func TestConcurrentTableSeveralTables(t *testing.T) {
	each := 20_000
	if testing.Short() {
		each = 3_000
	}
	seed := randtest.New(t).Uint64()
	a := newConserving(t, 100<<10, 0, 0, nil)
	b := newConserving(t, 80<<10, 0, 0, nil)
	var wg sync.WaitGroup
	for g := range 8 {
		rnd := rand.New(rand.NewPCG(seed, uint64(g)))
		wg.Go(func() {
			for range each {
				key := fmt.Sprint("key ", min(rnd.IntN(4000), rnd.IntN(4000)))
				hash := a.in.Hash(key)
				ra, stateA := a.in.LockOrAdd(hash, key)
				rb, stateB := b.in.LockOrAdd(hash, key)
				if stateA != keytable.NoMemory {
					a.sums.add(ra, 5)
					a.added.Add(5)
				}
				if stateB != keytable.NoMemory {
					b.sums.add(rb, 1)
					b.added.Add(1)
					rb.Unlock()
				}
				if stateA != keytable.NoMemory {
					ra.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i, c := range []*conserving{a, b} {
		held := uint64(0)
		for _, r := range c.in.All() {
			held += r.Words()[0]
		}
		if held+c.dropped.Load() != c.added.Load() || c.in.Stats().Evicted == 0 {
			t.Errorf("table %d: %d held, %d dropped, %d added; %+v", i, held, c.dropped.Load(), c.added.Load(), c.in.Stats())
		}
	}
}
