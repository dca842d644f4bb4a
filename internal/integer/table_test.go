package integer

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/randtest"
	"github.com/lately-go/lately/internal/snapshot"
)

// A number is what the model of a Table has of a key. Its arithmetic has no bounds.
type number struct {
	value *big.Int
	end   int64
}

// modelIncrement is Add by the words of the documentation of Redis.
func modelIncrement(m map[string]number, now int64, key string, inc *Increment) (value, added *big.Int, rejected bool) {
	was := m[key]
	if was.value == nil || was.end <= now {
		delete(m, key)
		was = number{value: new(big.Int)}
	}
	sum := new(big.Int).Add(was.value, big.NewInt(inc.By))
	bounded := sum
	if least := big.NewInt(inc.Least); sum.Cmp(least) < 0 {
		bounded = least
	} else if most := big.NewInt(inc.Most); sum.Cmp(most) > 0 {
		bounded = most
	}
	if bounded != sum && !inc.Saturate {
		return was.value, new(big.Int), false
	}
	end := was.end
	switch {
	case end != 0 && inc.OnlyNew:
	case inc.For != 0:
		end = now + int64(inc.For)
	case !inc.Until.IsZero():
		end = inc.Until.UnixNano()
	}
	added = new(big.Int).Sub(bounded, was.value)
	if end == 0 || !added.IsInt64() {
		return nil, nil, true
	}
	m[key] = number{bounded, end}
	return bounded, added, false
}

func randomIncrement(rng *rand.Rand, now int64) *Increment {
	inc := &Increment{By: rng.Int64N(7) - 2, Least: math.MinInt64, Most: math.MaxInt64, Saturate: rng.IntN(3) == 0, OnlyNew: rng.IntN(2) == 0}
	if rng.IntN(50) == 0 {
		inc.By = []int64{math.MaxInt64, math.MinInt64, math.MaxInt64 / 2}[rng.IntN(3)]
	}
	if rng.IntN(2) == 0 {
		inc.Most = rng.Int64N(20)
	}
	if rng.IntN(3) == 0 {
		inc.Least = min(rng.Int64N(10)-5, inc.Most)
	}
	switch rng.IntN(4) {
	case 0, 1:
		inc.For = time.Duration(1 + rng.IntN(200))
	case 2:
		inc.Until = time.Unix(0, now+rng.Int64N(200)-20)
	}
	return inc
}

// Random increments, deletions and restarts, each compared with a map of large integers.
func TestModel(t *testing.T) {
	rng := randtest.New(t)
	table := mustTable(t, 1<<20)
	model := map[string]number{}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	steps := 200_000
	if testing.Short() {
		steps = 20_000
	}
	for i := range steps {
		now += rng.Int64N(4)
		key := fmt.Sprint("key-", rng.IntN(40), strings.Repeat("x", rng.IntN(2)*20))
		switch rng.IntN(40) {
		case 0:
			was := model[key]
			if got, want := table.Remove(time.Unix(0, now), key), was.end > now; got != want {
				t.Fatalf("step %d: %s removed: %t, want %t", i, key, got, want)
			}
			delete(model, key)
		case 1:
			if got, want := table.Left(time.Unix(0, now), key), max(model[key].end-now, 0); int64(got) != want {
				t.Fatalf("step %d: %s has %d left, want %d", i, key, got, want)
			}
		case 2:
			if i%100 == 0 {
				table = restart(t, table, now)
			}
		default:
			inc := randomIncrement(rng, now)
			want, wantAdded, rejected := modelIncrement(model, now, key, inc)
			got, added, err := table.Add(time.Unix(0, now), key, inc)
			if rejected != (err != nil) || !rejected && (want.Cmp(big.NewInt(got)) != 0 || wantAdded.Cmp(big.NewInt(added)) != 0) {
				t.Fatalf("step %d: %s by %+v: %d, %d, %v; want %v, %v", i, key, inc, got, added, err, want, wantAdded)
			}
		}
	}
	table.ends.now.Store(math.MaxInt64)
	if table.table.Expire(); table.table.Len() != 0 {
		t.Errorf("%d keys are left", table.table.Len())
	}
}

func mustTable(t testing.TB, budget int64) *Table {
	t.Helper()
	table, err := New(budget)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// restart returns the table that another process would have.
func restart(t *testing.T, table *Table, now int64) *Table {
	t.Helper()
	again := mustTable(t, 1<<20)
	for chunk := range table.Export(time.Unix(0, now)) {
		if _, err := again.Import(time.Unix(0, now), chunk); err != nil {
			t.Fatal(err)
		}
	}
	return again
}

// However many call at once, no more is added than the bound allows, in each window.
func TestConcurrentAtOnce(t *testing.T) {
	table := mustTable(t, 1<<20)
	for window := range int64(20) {
		var added atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					_, n, err := table.Add(time.Unix(0, window*1000), "k", &Increment{By: 1, Least: math.MinInt64, Most: 100, For: 1000, OnlyNew: true})
					if err != nil {
						t.Error(err)
					}
					added.Add(n)
				}
			})
		}
		wg.Wait()
		if added.Load() != 100 {
			t.Errorf("window %d: %d were added, want 100", window, added.Load())
		}
	}
}

// At the budget, new keys are rejected and no key begins again; those that have ended make
// way.
func TestAtTheBudget(t *testing.T) {
	table := mustTable(t, 256<<10)
	inc := &Increment{By: 1, Least: math.MinInt64, Most: math.MaxInt64, For: time.Minute}
	var kept []string
	for i := range 20_000 {
		key := fmt.Sprint("key-", i)
		_, _, err := table.Add(time.Unix(0, 1), key, inc)
		if err == nil {
			kept = append(kept, key)
			continue
		}
		if !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
	}
	if s := table.Stats(); s.Bytes > s.Budget || s.Keys != len(kept) || s.Full != uint64(20_000-len(kept)) || len(kept) < 3000 || len(kept) == 20_000 {
		t.Fatalf("%d kept: %+v", len(kept), s)
	}
	for _, key := range kept {
		if n, _, err := table.Add(time.Unix(0, 2), key, inc); n != 2 || err != nil {
			t.Fatalf("%s: %d, %v; want 2", key, n, err)
		}
	}
	// A group of keys that has just rejected one looks again after an eighth as many.
	later, rejected := 2+int64(time.Minute), 0
	for i := range len(kept) {
		n, _, err := table.Add(time.Unix(0, later), fmt.Sprint("new-", i), inc)
		if err != nil {
			rejected++
		} else if n != 1 {
			t.Fatalf("new key %d: %d", i, n)
		}
	}
	if rejected > len(kept)/8 {
		t.Errorf("%d of %d new keys were rejected after the others had ended", rejected, len(kept))
	}
}

// A key that was evicted at a time does not begin before it, although its caller has looked
// at the clock before.
func TestBeginsAfterEviction(t *testing.T) {
	table := mustTable(t, 1<<20)
	inc := &Increment{By: 1, Least: math.MinInt64, Most: 1, For: 1000, OnlyNew: true}
	table.Add(time.Unix(0, 0), "k", inc)
	table.Add(time.Unix(0, 1001), "other", inc)
	table.table.Expire()
	if _, added, err := table.Add(time.Unix(0, 999), "k", inc); added != 1 || err != nil {
		t.Fatalf("%d were added to the key that was evicted, %v", added, err)
	}
	if left := table.Left(time.Unix(0, 1001), "k"); left != 1000 {
		t.Errorf("it has %d ns left from the eviction on, want 1000", left)
	}
}

// A damaged chunk is an error, or restores what is not damaged, and never panics.
func TestDamaged(t *testing.T) {
	table := mustTable(t, 1<<20)
	for i := range 100 {
		table.Add(time.Unix(0, 1), fmt.Sprint("key-", i), &Increment{By: int64(i), Least: math.MinInt64, Most: math.MaxInt64, For: time.Hour})
	}
	rng := randtest.New(t)
	for chunk := range table.Export(time.Unix(0, 2)) {
		for range 1000 {
			damaged := slices.Clone(chunk)
			damaged[rng.IntN(len(damaged))] ^= byte(1 + rng.IntN(255))
			if _, err := mustTable(t, 1<<20).Import(time.Unix(0, 2), damaged); err == nil {
				t.Fatal("no error")
			}
		}
		const checksum = 4
		cut := snapshot.Seal(slices.Clone(chunk[:len(chunk)-checksum-1])) // in the last entry
		done, err := mustTable(t, 1<<20).Import(time.Unix(0, 2), cut)
		var at int
		if fmt.Sscanf(fmt.Sprint(err), "chunk is damaged after %d of", &at); done.Keys != 99 || at == 0 || at >= len(cut)-checksum {
			t.Errorf("%v, with %d keys: it must say where, after 99", err, done.Keys)
		}
	}
}
