package keyed

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/puzpuzpuz/xsync/v4"

	"github.com/lately-go/lately/benchmarks/baseline"
)

// Maps that count, without a window; and one with the wheel of O3 for each key.
var maps = []subject{
	{name: "map,mutex", make: func(int) table { return &mutexMap{m: map[string]int64{}} }, keys: keepsEach},
	{name: "map,mutex,256-shards", make: newShardedMap, keys: keepsEach, series: true},
	{name: "xsync.Map", make: func(int) table { return xsyncMap{xsync.NewMap[string, *atomic.Int64]()} }, keys: keepsFirst, series: true},
	{name: "otter", make: newOtter, keys: keepsFirst},
	{name: "sync.Map", make: func(int) table { return new(syncMap) }, keys: keepsFirst},
	{name: "O3-wheel,256-shards", make: newWheels, keys: keepsFirst},
}

// mutexMap is what one writes first. Assigning to a string key of a Go map
// replaces the key, too.
type mutexMap struct {
	mu sync.Mutex
	m  map[string]int64
	_  [128 - 16]byte
}

func (w *mutexMap) Add(key string) {
	w.mu.Lock()
	w.m[key]++
	w.mu.Unlock()
}
func (w *mutexMap) count(key string) uint64 { return uint64(w.m[key]) }

type shardedMap struct {
	seed   maphash.Seed
	shards []mutexMap
}

func newShardedMap(int) table {
	w := &shardedMap{maphash.MakeSeed(), make([]mutexMap, 256)}
	for i := range w.shards {
		w.shards[i].m = map[string]int64{}
	}
	return w
}

func (w *shardedMap) shard(key string) *mutexMap { return &w.shards[maphash.String(w.seed, key)>>56] }
func (w *shardedMap) Add(key string)             { w.shard(key).Add(key) }
func (w *shardedMap) count(key string) uint64    { return w.shard(key).count(key) }

type xsyncMap struct {
	*xsync.Map[string, *atomic.Int64]
}

func (w xsyncMap) Add(key string) {
	n, ok := w.Load(key)
	if !ok {
		n, _ = w.LoadOrStore(key, new(atomic.Int64))
	}
	n.Add(1)
}

func (w xsyncMap) count(key string) uint64 {
	n, _ := w.Load(key)
	return uint64(n.Load())
}

// otterCache has no bound, so it evicts nothing and keeps no order.
type otterCache struct {
	*otter.Cache[string, *atomic.Int64]
}

func newOtter(int) table {
	return otterCache{otter.Must(&otter.Options[string, *atomic.Int64]{})}
}

func (w otterCache) Add(key string) {
	n, ok := w.GetIfPresent(key)
	if !ok {
		n, _ = w.SetIfAbsent(key, new(atomic.Int64))
	}
	n.Add(1)
}

func (w otterCache) count(key string) uint64 {
	n, _ := w.GetIfPresent(key)
	return uint64(n.Load())
}

type syncMap struct{ m sync.Map }

func (w *syncMap) Add(key string) {
	n, ok := w.m.Load(key)
	if !ok {
		n, _ = w.m.LoadOrStore(key, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}

func (w *syncMap) count(key string) uint64 {
	n, _ := w.m.Load(key)
	return uint64(n.(*atomic.Int64).Load())
}

// wheels adds to a key's wheel of ten slots and reads its sum.
type wheels struct {
	of shardedOf[*baseline.Wheel]
}

func newWheels(int) table { return &wheels{newShardedOf[*baseline.Wheel]()} }

func (w *wheels) Add(key string) {
	wheel := w.of.get(key, func() *baseline.Wheel { return baseline.NewWheel(10, time.Minute) })
	wheel.Add()
	wheel.Sum()
}

func (w *wheels) count(key string) uint64 { return w.of.get(key, nil).Sum() }

// A shardedOf is 256 maps from keys to values, with a lock each.
type shardedOf[V any] struct {
	seed   maphash.Seed
	shards []shardOf[V]
}

type shardOf[V any] struct {
	mu sync.Mutex
	m  map[string]V
	_  [128 - 16]byte
}

func newShardedOf[V any]() shardedOf[V] {
	w := shardedOf[V]{maphash.MakeSeed(), make([]shardOf[V], 256)}
	for i := range w.shards {
		w.shards[i].m = map[string]V{}
	}
	return w
}

func (w *shardedOf[V]) get(key string, fresh func() V) V {
	s := &w.shards[maphash.String(w.seed, key)>>56]
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.m[key]
	if !ok {
		v = fresh()
		s.m[key] = v
	}
	return v
}
