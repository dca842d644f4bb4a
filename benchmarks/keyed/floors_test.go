package keyed

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/lately-go/lately/benchmarks/baseline"
)

var floors = []subject{
	{name: "key-only", make: func(int) table { return new(keyOnly) }},
	{name: "hash", make: func(int) table { return &hashOnly{seed: maphash.MakeSeed()} }},
	{name: "hash,one-line", make: newLines, series: true},
	{name: "floor64", make: func(n int) table { return floor64{baseline.NewFloor64(n)} }, series: true},
}

type floor64 struct{ *baseline.Floor64 }

func (w floor64) Add(key string) { w.Floor64.Add(key) }

type keyOnly struct{ _ byte }

//go:noinline
func (*keyOnly) Add(string) {}

// hashOnly keeps its seed off the cache lines that other cores write to: without
// the pads this row was slower on two cores than on one.
type hashOnly struct {
	_    [64]byte
	seed maphash.Seed
	_    [64]byte
}

//go:noinline
func (w *hashOnly) Add(key string) { maphash.String(w.seed, key) }

// lines is the least that a count in memory costs: hash the key, add to a word chosen by the hash. It has two words per key
// and does not compare keys.
type lines struct {
	seed  maphash.Seed
	words []atomic.Uint64
}

func newLines(n int) table {
	size := 1
	for size < n+n/2 {
		size *= 2
	}
	return &lines{maphash.MakeSeed(), make([]atomic.Uint64, size)}
}

func (w *lines) Add(key string) {
	w.words[maphash.String(w.seed, key)&uint64(len(w.words)-1)].Add(1)
}
