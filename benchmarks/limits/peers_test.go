package limits

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	golimiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

// Limiters by key, each used as documented. Their weaknesses are in the report.
var peers = []subject{
	{name: "httprate.LimitCounter", make: newHTTPCounter, limit: usual, span: day, series: true},
	{name: "httprate.RateLimiter", make: newHTTPLimiter, limit: usual, span: day, series: true},
	{name: "throttled.memstore,map", make: func(_ int, limit uint64) limiter { return newThrottled(0, limit) }, limit: usual, span: day, keys: keepsFirst, series: true},
	{name: "throttled.memstore,LRU", make: func(n int, limit uint64) limiter { return newThrottled(2*n, limit) }, limit: usual, span: day, keys: keepsFirst, series: true},
	{name: "go-limiter.memorystore", make: newGoLimiter, limit: usual, span: day, keys: keepsFirst, series: true},
	{name: "rate.Limiter,256-shards", make: newRates, limit: usual, span: day, keys: keepsFirst, series: true},
	{name: "rate.Limiter,sync.Map", make: func(_ int, limit uint64) limiter { return &syncRates{limit: limit} }, limit: usual, span: day, keys: keepsFirst, series: true},
	{name: "ulule.memory", make: newUlule, limit: usual, span: day, series: true},
	{name: "tollbooth", make: newTollbooth, limit: usual, span: day, keys: keepsFirst, series: true},
	{name: "sentinel.hotspot", make: newHotspot, limit: usual, span: day, keys: keepsFirst, series: true},
}

type gcra struct{ *throttled.GCRARateLimiterCtx }

func newThrottled(n int, limit uint64) limiter {
	store, err := memstore.NewCtx(n)
	if err != nil {
		panic(err)
	}
	// Its burst is what it allows besides the first.
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDay(int(limit)), MaxBurst: int(limit) - 1})
	if err != nil {
		panic(err)
	}
	return gcra{l}
}

// Take counts as refused what fails: its store gives a key up after ten attempts
// in which others were faster, and its middleware then answers 500.
func (w gcra) Take(key string) bool {
	limited, _, err := w.RateLimitCtx(context.Background(), key, 1)
	return !limited && err == nil
}

type goLimiter struct{ golimiter.Store }

func newGoLimiter(_ int, limit uint64) limiter {
	s, err := memorystore.New(&memorystore.Config{Tokens: limit, Interval: day})
	if err != nil {
		panic(err)
	}
	return goLimiter{s}
}

func (w goLimiter) Take(key string) bool {
	_, _, _, ok, err := w.Store.Take(context.Background(), key)
	if err != nil {
		panic(err)
	}
	return ok
}

// Close ends the goroutine that would keep the whole store alive.
func (w goLimiter) Close() { w.Store.Close(context.Background()) }

// rates is a token bucket for each key, as the documentation of x/time/rate
// leaves it to its user, in 256 maps with a lock each.
type rates struct {
	seed   maphash.Seed
	limit  uint64
	shards [256]struct {
		mu sync.Mutex
		m  map[string]*rate.Limiter
		_  [128 - 16]byte
	}
}

func newRates(_ int, limit uint64) limiter {
	w := &rates{seed: maphash.MakeSeed(), limit: limit}
	for i := range w.shards {
		w.shards[i].m = map[string]*rate.Limiter{}
	}
	return w
}

func newRate(limit uint64) *rate.Limiter {
	return rate.NewLimiter(rate.Every(day/time.Duration(limit)), int(limit))
}

func (w *rates) Take(key string) bool { return w.of(key).Allow() }

func (w *rates) of(key string) *rate.Limiter {
	s := &w.shards[maphash.String(w.seed, key)>>56]
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.m[key]
	if l == nil {
		l = newRate(w.limit)
		s.m[key] = l
	}
	return l
}

type syncRates struct {
	m     sync.Map
	limit uint64
}

func (w *syncRates) Take(key string) bool {
	l, ok := w.m.Load(key)
	if !ok {
		l, _ = w.m.LoadOrStore(key, newRate(w.limit))
	}
	return l.(*rate.Limiter).Allow()
}

type ululeMemory struct{ *ulule.Limiter }

func newUlule(_ int, limit uint64) limiter {
	// Without an interval no goroutine cleans up, nor keeps the store alive.
	store := ululememory.NewStoreWithOptions(ulule.StoreOptions{Prefix: "limiter"})
	return ululeMemory{ulule.New(store, ulule.Rate{Period: day, Limit: int64(limit)})}
}

func (w ululeMemory) Take(key string) bool {
	c, err := w.Get(context.Background(), key)
	if err != nil {
		panic(err)
	}
	return !c.Reached
}

type tollboothKeys struct{ *tollboothlimiter.Limiter }

func newTollbooth(_ int, limit uint64) limiter {
	l := tollbooth.NewLimiter(float64(limit)/day.Seconds(), &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: day})
	return tollboothKeys{l.SetBurst(int(limit))}
}

func (w tollboothKeys) Take(key string) bool {
	return tollbooth.LimitByKeys(w.Limiter, []string{key}) == nil
}
