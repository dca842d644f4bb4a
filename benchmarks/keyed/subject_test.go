package keyed

import (
	"testing"

	"github.com/lately-go/lately/benchmarks/drive"
	"github.com/lately-go/lately/benchmarks/keys"
)

// A table counts, or decides, for each key.
type table interface{ Add(key string) }

// retention is what a table does with the key that it is given.
type retention uint8

const (
	copies     retention = iota // keeps a hash or a copy
	keepsFirst                  // keeps the string with which a key first comes
	keepsEach                   // may keep the string of every call
)

// A subject is one row. Its tables are made for up to n keys, and nothing is refused in them unless the name says so.
type subject struct {
	name   string
	make   func(n int) table
	keys   retention
	series bool // also measured with other numbers of keys, and of goroutines
}

func subjects() []subject {
	var all []subject
	for _, group := range [][]subject{floors, maps, peers, ours} {
		all = append(all, group...)
	}
	return all
}

// A counted table can return how many events of a key it has counted.
type counted interface{ count(key string) uint64 }

// Each row does what its name says: for each of a thousand keys it has counted, or allowed, exactly what was added. The
// keys come as in the benchmarks, so this also fails where a row keeps a string that it was only lent.
func TestRowsCount(t *testing.T) {
	const n = 1000
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			f := fill(s, n) // each key once
			k := keys.NewBuilder(n)
			for id := range uint32(n) {
				for range id % 5 {
					if f.own != nil {
						f.t.Add(f.own[id])
					} else {
						f.t.Add(k.Key(id))
					}
				}
			}
			c, ok := f.t.(counted)
			if !ok {
				t.Skip("it cannot be asked")
			}
			for id, key := range keys.All(n) {
				if got, want := c.count(key), uint64(id%5+1); got != want {
					t.Fatalf("%s: %d, want %d", key, got, want)
				}
			}
		})
	}
}

// A row that stays on the heap would be part of the weight of the later rows, and of their garbage collections.
func TestRowsAreFreed(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			_, heap := drive.Weigh(func() *filled {
				f := fill(s, 20_000)
				f.release()
				return f
			})
			if heap.Bytes > 256<<10 {
				t.Errorf("%d bytes are left of a table of 20,000 keys", heap.Bytes)
			}
		})
	}
}
