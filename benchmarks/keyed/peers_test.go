package keyed

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/didip/tollbooth/v7"
	tollboothlimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

// Limiters by key, with limits that nothing here reaches: all is allowed.
var peers = []subject{
	{name: "httprate", make: newHTTPRate, series: true},
	{name: "throttled.memstore,map", make: func(int) table { return newThrottled(0) }, keys: keepsFirst},
	{name: "throttled.memstore,LRU", make: func(n int) table { return newThrottled(2 * n) }, keys: keepsFirst},
	{name: "go-limiter.memorystore", make: newGoLimiter, keys: keepsFirst, series: true},
	{name: "rate.Limiter,256-shards", make: func(int) table { return &rates{newShardedOf[*rate.Limiter]()} }, keys: keepsFirst},
	{name: "rate.Limiter,sync.Map", make: func(int) table { return new(syncRates) }, keys: keepsFirst},
	{name: "ulule.memory", make: newUlule},
	{name: "tollbooth", make: newTollbooth, keys: keepsFirst},
}

// plenty is a limit that is not reached.
const plenty = 1 << 30

// httpRate does what the limiter of httprate does for a request: it reads both
// windows' counts and increments.
type httpRate struct {
	counter httprate.LimitCounter
	window  time.Duration
}

func newHTTPRate(int) table {
	const window = 24 * time.Hour
	c := httprate.NewLocalLimitCounter(window)
	c.Config(plenty, window)
	return httpRate{c, window}
}

func (w httpRate) Add(key string) {
	current := time.Now().UTC().Truncate(w.window)
	if _, _, err := w.counter.Get(key, current, current.Add(-w.window)); err != nil {
		panic(err)
	}
	if err := w.counter.Increment(key, current); err != nil {
		panic(err)
	}
}

func (w httpRate) count(key string) uint64 {
	current := time.Now().UTC().Truncate(w.window)
	n, _, _ := w.counter.Get(key, current, current.Add(-w.window))
	return uint64(n)
}

type gcra struct{ *throttled.GCRARateLimiterCtx }

func newThrottled(keys int) table {
	store, err := memstore.NewCtx(keys)
	if err != nil {
		panic(err)
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDay(plenty), MaxBurst: plenty})
	if err != nil {
		panic(err)
	}
	return gcra{l}
}

func (w gcra) Add(key string) {
	limited, _, err := w.RateLimitCtx(context.Background(), key, 1)
	mustAllow(!limited && err == nil)
}

func mustAllow(ok bool) {
	if !ok {
		panic("an event was refused: the row would measure refusals")
	}
}

type goLimiter struct{ limiter.Store }

func newGoLimiter(int) table {
	s, err := memorystore.New(&memorystore.Config{Tokens: plenty, Interval: 24 * time.Hour})
	if err != nil {
		panic(err)
	}
	return goLimiter{s}
}

func (w goLimiter) Add(key string) {
	_, _, _, ok, err := w.Take(context.Background(), key)
	mustAllow(ok && err == nil)
}

// Close ends the goroutine that would keep the whole store alive.
func (w goLimiter) Close() { w.Store.Close(context.Background()) }

func (w goLimiter) count(key string) uint64 {
	limit, remaining, _ := w.Get(context.Background(), key)
	return limit - remaining
}

// A token bucket for each key, as the documentation of x/time/rate leaves it to
// its user.
type rates struct{ of shardedOf[*rate.Limiter] }

func newRate() *rate.Limiter { return rate.NewLimiter(1, plenty) }

func (w *rates) Add(key string) { mustAllow(w.of.get(key, newRate).Allow()) }

type syncRates struct{ m sync.Map }

func (w *syncRates) Add(key string) {
	l, ok := w.m.Load(key)
	if !ok {
		l, _ = w.m.LoadOrStore(key, newRate())
	}
	mustAllow(l.(*rate.Limiter).Allow())
}

type ululeMemory struct{ *ulule.Limiter }

func newUlule(int) table {
	// Without an interval no goroutine cleans up, nor keeps the store alive.
	store := ululememory.NewStoreWithOptions(ulule.StoreOptions{Prefix: "limiter"})
	return ululeMemory{ulule.New(store, ulule.Rate{Period: 24 * time.Hour, Limit: plenty})}
}

func (w ululeMemory) Add(key string) {
	c, err := w.Get(context.Background(), key)
	mustAllow(!c.Reached && err == nil)
}

func (w ululeMemory) count(key string) uint64 {
	c, _ := w.Peek(context.Background(), key)
	return uint64(c.Limit - c.Remaining)
}

type tollboothKeys struct{ *tollboothlimiter.Limiter }

func newTollbooth(int) table {
	l := tollbooth.NewLimiter(1, &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: 24 * time.Hour})
	return tollboothKeys{l.SetBurst(math.MaxInt32)}
}

func (w tollboothKeys) Add(key string) {
	mustAllow(tollbooth.LimitByKeys(w.Limiter, []string{key}) == nil)
}
