package hotkey_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// All counted events are passed on, with their weight, their time, and whether the key is
// hot; events of keys in Never are not.
func TestForward(t *testing.T) {
	r := cached(hotkey.CachePolicy{TTL: time.Hour})
	r.Always, r.Never = []string{"/always"}, []string{"/never"}
	d := mustDetector(t, r)
	start := time.Unix(1_000_000, 0)
	var got []string
	d.Forward(func(rule int, key string, n uint64, at time.Time, hot bool) {
		got = append(got, fmt.Sprint(rule, " ", key, " ", n, " ", at.Sub(start), " ", hot))
	})
	add := func(after time.Duration, key string, n uint64) {
		if _, _, err := under(d, "product").AddAt(start.Add(after), key, n); err != nil && err != hotkey.ErrNever {
			t.Fatal(err)
		}
	}
	add(time.Second, "/a", 1)
	add(time.Second+time.Millisecond, "/a", 1)
	add(0, "/always", 9)
	add(0, "/never", 9)
	var e match.Event
	e.SetString(match.Path, "/c")
	d.AddAt(start.Add(time.Minute), &e, 2, nil)
	for range 4 {
		add(2*time.Second, "/b", 1) // is hot from the third
	}
	d.Forward(nil)
	add(0, "/a", 1)
	want := []string{
		"0 /a 1 1s false", "0 /a 1 1.001s false", "0 /always 9 0s true", "0 /c 2 1m0s false",
		"0 /b 1 2s false", "0 /b 1 2s false", "0 /b 1 2s true", "0 /b 1 2s true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("forwarded\n%q\nwant\n%q", got, want)
	}
}

// Forwarding events allocates no more than counting.
func TestForwardDoesNotAllocate(t *testing.T) {
	d := mustDetector(t, cached(hotkey.CachePolicy{TTL: time.Hour}))
	d.Forward(func(int, string, uint64, time.Time, bool) {})
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
			caches[i] = must.Get(hotkey.NewCache(d, hotkey.CacheConfig[string]{Rule: "product", Load: s.load}))(t)
		}
		must.Do(t, under(d, "product").SetHot("/a", d.Now().Add(time.Minute)))
		want(t, caches[0], "/a", "/a#1", nil)
		want(t, caches[1], "/a", "/a#2", nil)
		under(d, "product").Changed("/a")
		var wg sync.WaitGroup
		wg.Go(func() { want(t, caches[0], "/a", "/a#3", nil) })
		time.Sleep(s.takes / 2)
		under(d, "product").Changed("/a") // while /a#3 is being loaded, from what it was before
		wg.Wait()
		want(t, caches[0], "/a", "/a#4", nil)
		want(t, caches[0], "/a", "/a#4", nil)
		want(t, caches[1], "/a", "/a#5", nil)
		if s := under(d, "product").Stats().Cache; s.Hits != 1 || s.Misses != 5 || s.Loads != 5 || s.Keys != 2 || s.Bytes == 0 {
			t.Errorf("%+v; want 1 hit, 5 misses, 5 loads, 2 keys", s)
		}
	})
}

// A key that another process has made hot is renewed beside its value, as any other.
func TestRenewalOfAForeignKeyKeepsItsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mustDetector(t, cached(hotkey.CachePolicy{TTL: 10 * time.Second}))
		var loads atomic.Int64
		c := must.Get(hotkey.NewCache(d, hotkey.CacheConfig[int64]{Rule: "product", Load: func(context.Context, string) (int64, error) { return loads.Add(1), nil }}))(t)
		for range 6000 { // ten minutes, in which this process alone would never find it hot
			must.Do(t, under(d, "product").SetHot("/a", d.Now().Add(3*time.Second)))
			must.Get(c.Get(t.Context(), "/a"))(t)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if s := c.Stats(); s.Misses != 1 || s.Loads < 60 || s.Loads > 76 {
			t.Errorf("%+v; want 1 miss and a load each 8 to 9.5 s", s)
		}
	})
}

// The additional cost of Forward for a use of a hot key is the cost of the function.
func BenchmarkCacheHitForwarded(b *testing.B) {
	d := mustDetector(b, cached(hotkey.CachePolicy{TTL: time.Hour}))
	c := must.Get(hotkey.NewCache(d, hotkey.CacheConfig[string]{Rule: "product", Load: (&source{}).load}))(b)
	d.Forward(func(int, string, uint64, time.Time, bool) {})
	for range 4 {
		_, _ = c.Get(b.Context(), "/a")
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Get(ctx, "/a")
	}
}
