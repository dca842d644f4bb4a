package ratelimit_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// TestConcurrentExportWhileDecisionsGoOn exports while others take, and while rules are updated. Counts restored from each
// export lie between what had been taken when it began, and what calls to take had begun when it ended.
func TestConcurrentExportWhileDecisionsGoOn(t *testing.T) {
	const keys, most = 40, 20_000
	rules := func(n uint64) *ratelimit.Set {
		r := limitRule(t, "r", per(n, time.Hour))
		r.Algorithm = ratelimit.Exact
		other := limitRule(t, "other", per(n, time.Hour))
		other.Algorithm = ratelimit.GCRA
		return mustSet(t, r, other)
	}
	sets := []*ratelimit.Set{rules(most), rules(most + 1)}
	m, l := mustMemory(t, sets[0], ratelimit.Config{})
	var begun, done [keys]atomic.Uint64
	var stop atomic.Bool
	var updates atomic.Uint64
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for g := range 2 {
		wg.Go(func() {
			for i := g; !stop.Load() && begun[i%keys].Load() < most-100; i++ {
				k := i % keys
				begun[k].Add(1)
				if d := takeKeyN(l, second(0), fmt.Sprint(k), 1); !d.Allowed {
					t.Errorf("%+v", d)
				}
				done[k].Add(1)
			}
		})
	}
	wg.Go(func() {
		for i := 1; !stop.Load(); i++ {
			if err := l.Update(sets[i%2]); err != nil {
				t.Error(err)
			}
			updates.Add(1)
			runtime.Gosched()
		}
	})
	exports := 8
	if testing.Short() {
		exports = 2
	}
	for i := 0; i < exports || updates.Load() == 0; i++ { // on a busy machine the first update takes its time
		var before [keys]uint64
		for k := range before {
			before[k] = done[k].Load()
		}
		chunks := exported(m, second(0))
		b, lb := mustMemory(t, rules(most+1), ratelimit.Config{})
		for _, chunk := range chunks {
			if did, err := b.ImportAt(second(0), chunk); err != nil || did.Unknown+did.Refused > 0 {
				t.Fatalf("%+v, %v", did, err)
			}
		}
		for k := range keys {
			d, outcomes := lb.Judge(second(0), keyEvent(lb, fmt.Sprint(k)), 0, nil)
			for i, o := range outcomes {
				used := most + 1 - o.Remaining
				if after := begun[k].Load(); used < before[k] || used > after {
					t.Fatalf("key %d, rule %d: %d restored, of %d to %d (%+v)", k, i, used, before[k], after, d)
				}
			}
		}
	}
}

// TestImportConcurrently imports the chunks after the first by several goroutines. Each key
// is as it was.
func TestImportConcurrently(t *testing.T) {
	keys := 30_000
	if testing.Short() {
		keys /= 10
	}
	set := mustSet(t, limitRule(t, "r", per(10, time.Hour)), limitRule(t, "many", per(1000, time.Hour)))
	a, la := mustMemory(t, set, ratelimit.Config{})
	for i := range keys {
		takeKeyN(la, second(0), fmt.Sprint("a key of that length ", i), uint64(1+i%7))
	}
	chunks := exported(a, second(1))
	b, lb := mustMemory(t, set, ratelimit.Config{})
	mustImport(t, b, second(1), chunks[:1])
	var next atomic.Int64
	var restored atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := next.Add(1); i < int64(len(chunks)); i = next.Add(1) {
				did, err := b.ImportAt(second(1), chunks[i])
				if err != nil {
					t.Error(err)
				}
				restored.Add(int64(did.Keys))
			}
		})
	}
	wg.Wait()
	if n := restored.Load(); n != int64(2*keys) {
		t.Errorf("%d keys were restored, want %d", n, 2*keys)
	}
	for i := range keys {
		key := fmt.Sprint("a key of that length ", i)
		if got, want := peekKeyN(lb, second(1), key, 1), peekKeyN(la, second(1), key, 1); !sameDecision(got, want) {
			t.Fatalf("%s: %+v, want %+v", key, got, want)
		}
	}
}
