package limits

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/benchmarks/drive"
	"github.com/lately-go/lately/benchmarks/keys"
)

// A limiter decides about one event of a key, now.
type limiter interface{ Take(key string) bool }

// retention is what a limiter does with the key that it is given.
type retention uint8

const (
	copies     retention = iota // keeps a hash or a copy
	keepsFirst                  // keeps the string with which a key first comes
	keepsEach                   // may keep the string of every call
)

// A subject is one row. Its limiters are made for up to n keys and allow limit events per key in a span.
type subject struct {
	name   string
	make   func(n int, limit uint64) limiter
	limit  uint64        // number of keys to measure with; 0: it has no limit, and allows all
	span   time.Duration // in which that many are allowed
	keys   retention
	series bool  // also measured with other numbers of keys
	most   int   // keys it is measured with at most; 0: any number
	err    error // why it can't be made: the row is left out, and the tests fail
}

const (
	// usual is the limit of most rows.
	usual = 1000

	// plenty is a limit that is not reached.
	plenty = 1 << 30

	day = 24 * time.Hour
)

// subjects returns the rows that can be made.
func subjects() (all []subject) {
	for _, group := range [][]subject{floors, peers, ours()} {
		for _, s := range group {
			if s.err == nil {
				all = append(all, s)
			}
		}
	}
	return all
}

func TestRowsCanBeMade(t *testing.T) {
	for _, s := range ours() {
		if s.err != nil {
			t.Errorf("%s: %v", s.name, s.err)
		}
	}
}

// Each row decides as its name says: for each key it allows as many events as its limit, and at most one more, which may
// have been refilled meanwhile. The keys come as in the benchmarks, so this also fails where a row keeps a string that it
// was only lent.
func TestRowsDecide(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			if s.limit == 0 {
				t.Skip("it has no limit")
			}
			f := fill(s, 50, s.limit)
			defer f.release()
			if err := f.decides(s.limit-1, s.span); err != nil { // each key was there once
				t.Error(err)
			}
		})
	}
}

// The test above is one that can fail.
func TestRowsDecideSeesOneOff(t *testing.T) {
	for _, off := range []int64{-1, +2} {
		s := floors[len(floors)-1]
		f := fill(s, 50, uint64(int64(s.limit)+off))
		if err := f.decides(s.limit-1, s.span); err == nil {
			t.Errorf("%s with %+d events: nothing was noticed", s.name, off)
		}
	}
}

// decides takes more events for each key than its remaining number.
func (f *filled) decides(left uint64, span time.Duration) error {
	k := keys.NewBuilder(f.n)
	for id := range uint32(f.n) {
		key := k.Key(id)
		if f.own != nil {
			key = f.own[id]
		}
		began, allowed := time.Now(), uint64(0)
		for range left + 10 {
			if f.l.Take(key) {
				allowed++
			}
		}
		// A bucket may gain a token at a time, counted from before its fill.
		refilled := math.Ceil(float64(time.Since(began)+f.insert) / float64(span) * float64(left+1))
		if allowed < left || float64(allowed) > float64(left)+refilled {
			return fmt.Errorf("%s: %d were allowed, want %d and at most %v more", strings.Clone(key), allowed, left, refilled)
		}
	}
	return nil
}

// A row that stays on the heap would be part of the weight of the later rows, and of their garbage collections.
func TestRowsAreFreed(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			_, heap := drive.Weigh(func() *filled {
				f := fill(s, 20_000, s.limit)
				f.release()
				return f
			})
			if heap.Bytes > 256<<10 {
				t.Errorf("%d bytes are left of a limiter of 20,000 keys", heap.Bytes)
			}
		})
	}
}
