package hotkey_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/tally"
	"github.com/lately-go/lately/match"
)

// All that is counted is passed on, with its weight, its time, and whether the key is hot;
// what is never counted is not.
func TestForward(t *testing.T) {
	r := cached(hotkey.CachePolicy{TTL: time.Hour})
	r.Always, r.Never = []string{"/always"}, []string{"/never"}
	d := mustDetector(t, r)
	urgent := 0
	to := tally.New(1<<20, []uint64{6}, func() { urgent++ })
	d.Forward(to)
	start := time.Unix(1_000_000, 0)
	add := func(after time.Duration, key string, n uint64) {
		if _, _, err := d.AddKeyN(start.Add(after), "product", key, n); err != nil && err != hotkey.ErrNever {
			t.Fatal(err)
		}
	}
	add(time.Second, "/a", 1)
	add(time.Second+time.Millisecond, "/a", 1)
	add(0, "/always", 9)
	add(0, "/never", 9)
	var e match.Event
	e.SetString(match.Path, "/c")
	d.AddN(start.Add(time.Minute), &e, 2, nil)
	if urgent != 0 {
		t.Errorf("%d urgent calls for low counts, and for a key that is always hot", urgent)
	}
	for range 10 {
		add(2*time.Second, "/b", 1) // is hot from the third
	}
	if urgent != 0 {
		t.Errorf("%d urgent calls for a key that is hot", urgent)
	}
	d.Forward(nil)
	add(0, "/a", 1)
	got := map[string]string{}
	to.Take(func(r tally.Record) { got[r.Key] = fmt.Sprint(r.Rule, r.N, time.Duration(r.At-start.UnixNano())) })
	want := map[string]string{"/a": "0 2 1s", "/always": "0 9 0s", "/c": "0 2 1m0s", "/b": "0 10 2s"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("told\n%v\nwant\n%v", got, want)
	}
}

// Counting for a fleet allocates no more than counting.
func TestForwardDoesNotAllocate(t *testing.T) {
	d := mustDetector(t, cached(hotkey.CachePolicy{TTL: time.Hour}))
	d.Forward(tally.New(1<<20, []uint64{1 << 40}, nil))
	var e match.Event
	e.SetString(match.Path, "/c")
	var edges []hotkey.Edge
	count := func() { edges = d.Add(&e, edges[:0]) }
	for range 10 {
		count()
	}
	if n := testing.AllocsPerRun(1000, count); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Changed removes the value from all caches of the rule, also one that is being loaded.
func TestConcurrentChangedReachesAllCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mustDetector(t, cached(hotkey.CachePolicy{TTL: time.Hour}))
		s := &source{takes: time.Second}
		var caches [2]*hotkey.Cache[string]
		for i := range caches {
			var err error
			if caches[i], err = hotkey.NewCache(d, hotkey.CacheConfig[string]{Rule: "product", Load: s.load}); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.SetHot("product", "/a", d.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		want(t, caches[0], "/a", "/a#1", nil)
		want(t, caches[1], "/a", "/a#2", nil)
		d.Changed("product", "/a")
		var wg sync.WaitGroup
		wg.Go(func() { want(t, caches[0], "/a", "/a#3", nil) })
		time.Sleep(s.takes / 2)
		d.Changed("product", "/a") // while /a#3 is being loaded, from what it was before
		d.Changed("nosuch", "/a")
		wg.Wait()
		want(t, caches[0], "/a", "/a#4", nil)
		want(t, caches[0], "/a", "/a#4", nil)
		want(t, caches[1], "/a", "/a#5", nil)
		if s := d.CacheStats("product"); s.Hits != 1 || s.Misses != 5 || s.Loads != 5 || s.Keys != 2 || s.Bytes == 0 {
			t.Errorf("%+v; want 1 hit, 5 misses, 5 loads, 2 keys", s)
		}
		if s := d.CacheStats("nosuch"); s != (hotkey.CacheStats{}) {
			t.Errorf("%+v of an unknown rule", s)
		}
	})
}

// A key that another process has made hot is renewed beside its value, as any other.
func TestRenewalOfAForeignKeyKeepsItsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mustDetector(t, cached(hotkey.CachePolicy{TTL: 10 * time.Second}))
		var loads atomic.Int64
		c, err := hotkey.NewCache(d, hotkey.CacheConfig[int64]{Rule: "product", Load: func(context.Context, string) (int64, error) { return loads.Add(1), nil }})
		if err != nil {
			t.Fatal(err)
		}
		for range 6000 { // ten minutes, in which this process alone would never find it hot
			if err := d.SetHot("product", "/a", d.Now().Add(3*time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Get(t.Context(), "/a"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if s := c.Stats(); s.Misses != 1 || s.Loads < 60 || s.Loads > 76 {
			t.Errorf("%+v; want 1 miss and a load each 8 to 9.5 s", s)
		}
	})
}

// What Forward adds to a use of a hot key is what the function costs.
func BenchmarkCacheHitForwarded(b *testing.B) {
	d := mustDetector(b, cached(hotkey.CachePolicy{TTL: time.Hour}))
	c, err := hotkey.NewCache(d, hotkey.CacheConfig[string]{Rule: "product", Load: (&source{}).load})
	if err != nil {
		b.Fatal(err)
	}
	d.Forward(tally.New(1<<20, []uint64{1 << 40}, nil))
	for range 4 {
		_, _ = c.Get(b.Context(), "/a")
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Get(ctx, "/a")
	}
}
