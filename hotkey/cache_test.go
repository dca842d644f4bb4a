package hotkey_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// cached returns a rule under which a key is hot for a minute at its third use in a
// second, with the values kept as p says.
func cached(p hotkey.CachePolicy) hotkey.Rule {
	return hotkey.Rule{
		Name: "product", Key: match.MustKey("path"),
		Threshold: 3, Span: time.Second, Hold: time.Minute, Cache: &p,
	}
}

// A source counts its loads. Its values are their numbers.
type source struct {
	loads atomic.Int64
	takes time.Duration
	err   atomic.Pointer[error]
}

func (s *source) load(_ context.Context, key string) (string, error) {
	n := s.loads.Add(1)
	time.Sleep(s.takes)
	if err := s.err.Load(); err != nil {
		return "", *err
	}
	return fmt.Sprintf("%s#%d", key, n), nil
}

func (s *source) fail(err error) { s.err.Store(&err) }

func mustCache(t testing.TB, p hotkey.CachePolicy, s *source) *hotkey.Cache[string] {
	t.Helper()
	c := must.Get(hotkey.NewCache(mustDetector(t, cached(p)), hotkey.CacheConfig[string]{
		Rule: "product", Load: s.load, Size: func(v string) int { return len(v) },
	}))(t)
	return c
}

func want(t testing.TB, c *hotkey.Cache[string], key, value string, failure error) {
	t.Helper()
	v, err := c.Get(t.Context(), key)
	if v != value || !errors.Is(err, failure) {
		t.Fatalf("Get(%q) is %q, %v; want %q, %v", key, v, err, value, failure)
	}
}

func wantStats(t testing.TB, c *hotkey.Cache[string], hits, misses, stale, loads uint64) {
	t.Helper()
	if s := c.Stats(); s.Hits != hits || s.Misses != misses || s.Stale != stale || s.Loads != loads {
		t.Fatalf("%+v; want %d hits, %d misses, %d stale, %d loads", s, hits, misses, stale, loads)
	}
}

// A key that is not hot is loaded for each use; one that is hot once.
func TestConcurrentCacheLoadsAHotKeyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: time.Millisecond}
		c := mustCache(t, hotkey.CachePolicy{TTL: 10 * time.Second}, s)
		want(t, c, "/a", "/a#1", nil)
		want(t, c, "/a", "/a#2", nil)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { want(t, c, "/a", "/a#3", nil) })
		}
		wg.Wait()
		want(t, c, "/a", "/a#3", nil)
		wantStats(t, c, 1, 52, 0, 3)
	})
}

// A value is renewed once, at 80 to 95 % of its TTL, and the old value is used
// meanwhile.
func TestCacheRenewsBesideTheOldValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		s := &source{takes: 200 * time.Millisecond}
		var ages []time.Duration
		for range 40 { // caches whose values begin at one time
			c := mustCache(t, hotkey.CachePolicy{TTL: ttl}, s)
			for range 3 {
				c.IsHot("/a")
			}
			before := s.loads.Load()
			v, _ := c.Get(t.Context(), "/a")
			start := time.Now().Add(-s.takes)
			for s.loads.Load() == before+1 {
				time.Sleep(10 * time.Millisecond)
				want(t, c, "/a", v, nil)
			}
			ages = append(ages, time.Since(start))
			for range 15 { // until the load ends
				time.Sleep(10 * time.Millisecond)
				want(t, c, "/a", v, nil)
			}
			time.Sleep(100 * time.Millisecond)
			want(t, c, "/a", fmt.Sprintf("/a#%d", before+2), nil)
			if s.loads.Load() != before+2 {
				t.Fatalf("%d loads for one renewal", s.loads.Load()-before-1)
			}
		}
		different := map[time.Duration]bool{}
		for _, age := range ages {
			if age < ttl*80/100 || age > ttl*95/100+20*time.Millisecond {
				t.Errorf("renewed at the age of %v, want 80 to 95 %% of %v", age, ttl)
			}
			different[age] = true
		}
		if len(different) < 10 {
			t.Errorf("40 caches renewed at %d different ages", len(different))
		}
	})
}

// If the source fails, the value is used up to its maximum age, and the source is called again every tenth of the TTL.
func TestCacheUsesAValueUpToItsMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, down := &source{}, errors.New("down")
		c := mustCache(t, hotkey.CachePolicy{TTL: 10 * time.Second, MaxAge: 30 * time.Second}, s)
		for range 3 {
			c.IsHot("/a")
		}
		want(t, c, "/a", "/a#1", nil)
		s.fail(down)
		for start := time.Now(); time.Since(start) < 30*time.Second-50*time.Millisecond; time.Sleep(50 * time.Millisecond) {
			want(t, c, "/a", "/a#1", nil)
		}
		if n := s.loads.Load() - 1; n < 20 || n > 23 {
			t.Errorf("the source was called %d times in 20 to 22 s, want every second", n)
		}
		if st := c.Stats(); st.Stale < 390 || st.Stale > 401 {
			t.Errorf("%d of %d hits stale, want the hits in 20 s", st.Stale, st.Hits)
		}
		time.Sleep(time.Second)
		want(t, c, "/a", "", down)
		if v, ok, hot := c.Peek("/a"); ok || !hot {
			t.Errorf("Peek of a hot key without a value: %q, %t, hot %t", v, ok, hot)
		}
		s.err.Store(nil)
		v, err := c.Get(t.Context(), "/a")
		if !strings.HasPrefix(v, "/a#") || err != nil {
			t.Errorf("Get is %q, %v after the source is back", v, err)
		}
	})
}

// The absence of a value is kept like a value.
func TestCachePeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		c := mustCache(t, hotkey.CachePolicy{TTL: time.Second}, s)
		peek := func(want string, wantHot bool) {
			t.Helper()
			if v, ok, hot := c.Peek("/a"); v != want || ok != (want != "") || hot != wantHot {
				t.Fatalf("Peek: %q, %t, hot %t; want %q, hot %t", v, ok, hot, want, wantHot)
			}
		}
		peek("", false)
		if c.Set("/a", "early") {
			t.Error("Set kept a value for a key that is not hot")
		}
		for range 3 {
			peek("", false)
			c.IsHot("/a")
		}
		peek("", true)
		s.fail(fmt.Errorf("row 7: %w", hotkey.ErrAbsent))
		want(t, c, "/a", "", hotkey.ErrAbsent)
		want(t, c, "/a", "", hotkey.ErrAbsent)
		peek("", true)
		wantStats(t, c, 1, 1, 0, 1)
		if !c.Set("/a", "v") {
			t.Error("Set did not keep the value of a hot key")
		}
		peek("v", true)
		c.Delete("/a")
		peek("", true)
		time.Sleep(time.Minute)
		peek("", false)
	})
}

// A load that began before a Set or Delete does not bring the old value back.
func TestConcurrentCacheSetAndDeleteOutrunALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: 100 * time.Millisecond}
		c := mustCache(t, hotkey.CachePolicy{TTL: 10 * time.Second}, s)
		for range 3 {
			c.IsHot("/a")
		}
		loading := func() {
			go func() { _, _ = c.Get(context.Background(), "/a") }()
			time.Sleep(50 * time.Millisecond)
		}
		loading()
		c.Set("/a", "set")
		time.Sleep(100 * time.Millisecond)
		want(t, c, "/a", "set", nil)
		c.Delete("/a")
		loading() // #2
		c.Delete("/a")
		want(t, c, "/a", "/a#3", nil)
		want(t, c, "/a", "/a#3", nil)
	})
}

// A value that is changed while its key is not hot is not the old one when it is again.
func TestCacheSetOfAColdKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		c := mustCache(t, hotkey.CachePolicy{TTL: time.Hour}, s)
		for range 3 {
			c.IsHot("/a")
		}
		want(t, c, "/a", "/a#1", nil)
		time.Sleep(time.Minute)
		if c.Set("/a", "new") {
			t.Fatal("the key is hot after its hold")
		}
		for range 3 {
			c.IsHot("/a")
		}
		want(t, c, "/a", "/a#2", nil)
	})
}

// Keys in Always are kept from their first use on, keys in Never are not kept.
func TestCacheAlwaysAndNever(t *testing.T) {
	s := &source{}
	r := cached(hotkey.CachePolicy{TTL: time.Hour})
	r.Always, r.Never = []string{"/always"}, []string{"/never"}
	c := must.Get(hotkey.NewCache(mustDetector(t, r), hotkey.CacheConfig[string]{Rule: "product", Load: s.load}))(t)
	want(t, c, "/always", "/always#1", nil)
	want(t, c, "/always", "/always#1", nil)
	for i := range 5 {
		want(t, c, "/never", fmt.Sprintf("/never#%d", i+2), nil)
	}
	if v, ok, hot := c.Peek("/always"); !ok || !hot || !c.Set("/always", "v") || c.Set("/never", "v") {
		t.Errorf("Peek of the key that is always hot: %q, %t, hot %t", v, ok, hot)
	}
}

// A caller whose context ends does not wait, and does not end the load for others.
func TestCacheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: time.Second}
		c := mustCache(t, hotkey.CachePolicy{TTL: 10 * time.Second}, s)
		for range 3 {
			c.IsHot("/a")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.Get(ctx, "/a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get is %v after its deadline", err)
		}
		want(t, c, "/a", "/a#1", nil)
	})
}

// A panic in Load, or a Load that ends its goroutine, is an error for all waiting callers.
func TestCacheLoadPanics(t *testing.T) {
	for _, end := range []func(){func() { panic("row 7") }, runtime.Goexit} {
		c := must.Get(hotkey.NewCache(mustDetector(t, cached(hotkey.CachePolicy{TTL: time.Second})), hotkey.CacheConfig[int]{
			Rule: "product", Load: func(context.Context, string) (int, error) { end(); return 1, nil },
		}))(t)
		for range 3 {
			c.IsHot("/a")
		}
		for range 2 {
			if _, err := c.Get(t.Context(), "/a"); err == nil || !strings.Contains(err.Error(), "hotkey: load") {
				t.Errorf("Get is %v after a Load that did not return", err)
			}
		}
	}
}

// Values never take more than MaxBytes, and those in use stay.
func TestCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		const most = 20 * (160 + 8)
		c := mustCache(t, hotkey.CachePolicy{TTL: time.Hour, MaxBytes: most}, s)
		rng := randtest.New(t)
		for range 3 {
			c.IsHot("/used")
		}
		want(t, c, "/used", "/used#1", nil)
		for range 2000 {
			key := fmt.Sprint("/", rng.IntN(500))
			for range 3 {
				c.IsHot(key)
			}
			if !c.Set(key, strings.Repeat("v", rng.IntN(100))) {
				t.Fatalf("%s is not hot", key)
			}
			if b := c.Stats(); b.Bytes > most || b.Bytes < 0 {
				t.Fatalf("%d bytes of %d keys, want at most %d", b.Bytes, b.Keys, most)
			}
			want(t, c, "/used", "/used#1", nil)
		}
		if k := c.Stats().Keys; k < 5 {
			t.Errorf("%d keys kept", k)
		}
		c.Set("/used", strings.Repeat("v", most)) // alone too large: it is not kept
		if b := c.Stats().Bytes; b > most {
			t.Errorf("%d bytes, want at most %d", b, most)
		}
		want(t, c, "/used", "/used#2", nil)
	})
}

// Keys whose hold has ended are removed as others become hot.
func TestCacheRemovesColdKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustCache(t, hotkey.CachePolicy{TTL: time.Hour}, &source{})
		for i := range 600 { // ten minutes, at each second another
			for range 3 {
				c.IsHot(fmt.Sprint("/", i))
			}
			c.Set(fmt.Sprint("/", i), "v")
			time.Sleep(time.Second)
			if k := c.Stats().Keys; k > 122 {
				t.Fatalf("%d keys are kept, 60 of them hot", k)
			}
		}
	})
}

// With any number of goroutines a value belongs to its key and is no older than MaxAge.
func TestConcurrentCacheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maxAge = 300 * time.Millisecond
		type version struct {
			key  string
			time time.Time // when the source had it, or it was set
		}
		seed := randtest.Seed(t)
		c := must.Get(hotkey.NewCache(mustDetector(t, cached(hotkey.CachePolicy{TTL: 200 * time.Millisecond, MaxAge: maxAge, MaxBytes: 8 * 200})), hotkey.CacheConfig[version]{
			Rule: "product",
			Load: func(_ context.Context, key string) (version, error) {
				v := version{key, time.Now()}
				time.Sleep(time.Duration(len(key)) * 3 * time.Millisecond)
				if time.Now().UnixMilli()%7 == 0 {
					return version{}, errors.New("down")
				}
				return v, nil
			},
			Size: func(version) int { return 16 },
		}))(t)
		var wg sync.WaitGroup
		for g := range 8 {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			wg.Go(func() {
				deleted := map[string]time.Time{}
				for range 2000 {
					key := strings.Repeat("x", 1+rng.IntN(12))
					switch began := time.Now(); rng.IntN(20) {
					case 0:
						c.Delete(key)
						deleted[key] = began
					case 1:
						c.Set(key, version{key, began})
					default:
						v, err := c.Get(t.Context(), key)
						if err != nil {
							break
						}
						if v.key != key || began.Sub(v.time) > maxAge || v.time.Before(deleted[key]) {
							t.Errorf("Get(%q) at %v: value of %q at %v, deleted at %v", key, began, v.key, v.time, deleted[key])
						}
					}
					time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second) // until the last renewals end
		if s := c.Stats(); s.Hits < 1000 || s.Loads < 100 || s.Bytes > 8*200 {
			t.Errorf("%+v: the test has tested little, or the bound does not hold", s)
		}
	})
}

func TestCacheConfig(t *testing.T) {
	load := func(context.Context, string) (int, error) { return 1, nil }
	for _, test := range []struct {
		policy *hotkey.CachePolicy
		config hotkey.CacheConfig[int]
		want   string
	}{
		{&hotkey.CachePolicy{TTL: time.Second}, hotkey.CacheConfig[int]{Rule: "produce", Load: load}, `unknown rule "produce"`},
		{nil, hotkey.CacheConfig[int]{Rule: "product", Load: load}, `rule "product": missing cache`},
		{&hotkey.CachePolicy{TTL: time.Second}, hotkey.CacheConfig[int]{Rule: "product"}, "missing Load"},
		{&hotkey.CachePolicy{TTL: time.Second, MaxBytes: 1}, hotkey.CacheConfig[int]{Rule: "product", Load: load}, "missing Size"},
		{&hotkey.CachePolicy{TTL: time.Second}, hotkey.CacheConfig[int]{Rule: "product", Load: load}, ""},
	} {
		r := cached(hotkey.CachePolicy{})
		r.Cache = test.policy
		_, err := hotkey.NewCache(mustDetector(t, r), test.config)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("NewCache: %v, want %q", err, test.want)
		}
	}
	for _, test := range []struct {
		policy hotkey.CachePolicy
		want   string
	}{
		{hotkey.CachePolicy{}, "cache.ttl: 0s: must be whole milliseconds"},
		{hotkey.CachePolicy{TTL: time.Minute, MaxAge: time.Second}, "cache.max_age: 1s: must be the ttl, 1m, or longer"},
		{hotkey.CachePolicy{TTL: time.Minute, MaxBytes: -1}, "cache.max_bytes: -1: must be 0 or more"},
	} {
		if _, err := hotkey.New(cached(test.policy)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("New: %v, want %q", err, test.want)
		}
	}
}

// A use of a hot key that has a value does not allocate.
func TestCacheHitDoesNotAllocate(t *testing.T) {
	c := mustCache(t, hotkey.CachePolicy{TTL: time.Hour}, &source{})
	for range 4 {
		_, _ = c.Get(t.Context(), "/a")
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = c.Get(ctx, "/a") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCacheHit(b *testing.B) {
	c := mustCache(b, hotkey.CachePolicy{TTL: time.Hour}, &source{})
	for range 4 {
		_, _ = c.Get(b.Context(), "/a")
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Get(ctx, "/a")
	}
}
