package limits

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/benchmarks/baseline"
)

// Lower bounds for the cost of a decision, and simple limiters. The first three have no limit.
var floors = []subject{
	{name: "hash,one-line", make: func(n int, _ uint64) limiter { return newLines(n) }, series: true},
	{name: "hash,one-line,time.Since", make: func(n int, _ uint64) limiter { return timedLines{newLines(n), time.Now()} }, series: true},
	{name: "floor64", make: func(n int, _ uint64) limiter { return floor64{baseline.NewFloor64(n)} }, series: true},
	{name: "map,mutex", make: func(_ int, limit uint64) limiter { return &mutexMap{m: map[string]uint64{}, limit: limit} }, limit: usual, span: day, keys: keepsEach, series: true},
}

// lines is the least that a count in memory costs: hash the key, add to a word chosen by the hash. It has two words per key
// and does not compare keys.
type lines struct {
	seed  maphash.Seed
	words []atomic.Uint64
}

func newLines(n int) *lines {
	size := 1
	for size < n+n/2 {
		size *= 2
	}
	return &lines{maphash.MakeSeed(), make([]atomic.Uint64, size)}
}

func (w *lines) Take(key string) bool {
	return w.words[maphash.String(w.seed, key)&uint64(len(w.words)-1)].Add(1) > 0
}

// timedLines adds the reading of a clock, which every expiry needs.
type timedLines struct {
	*lines
	start time.Time
}

func (w timedLines) Take(key string) bool {
	return time.Since(w.start) >= 0 && w.lines.Take(key)
}

// floor64 has a cache line for each key, with a key and a window, and locks it to write the time there: the cost for a
// limiter that judges a key at a time and lets others judge other keys meanwhile. It does not compare keys.
type floor64 struct{ *baseline.Floor64 }

func (w floor64) Take(key string) bool { return w.Add(key) > 0 }

// mutexMap counts for ever. Assigning to a string key of a Go map replaces the
// key, too.
type mutexMap struct {
	mu    sync.Mutex
	m     map[string]uint64
	limit uint64
}

func (w *mutexMap) Take(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.m[key]
	if n >= w.limit {
		return false
	}
	w.m[key] = n + 1
	return true
}
