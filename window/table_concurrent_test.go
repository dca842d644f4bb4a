package window

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// TestConcurrentTableConservation requires the table to have exactly what was added after each phase of 8 writers and 2
// readers, with new keys, records that grow and move meanwhile, and a clock that goes on. Phases are further apart than the
// windows are long, and sometimes further than the numbers in a record reach.
func TestConcurrentTableConservation(t *testing.T) {
	const writers, keys = 8, 500
	adds := 4000
	if testing.Short() {
		adds = 600
	}
	seed := randtest.Seed(t)
	for _, windows := range [][]Window{
		{{Span: time.Second, Slot: time.Second}},
		{{Span: time.Second, Slot: 50 * time.Millisecond}},
		{{Span: time.Second, Slot: 100 * time.Millisecond}, {Span: 3 * time.Second, Slot: 3 * time.Second}},
	} {
		tb := mustTable(t, TableConfig{Budget: 4 << 20}, windows...)
		rnd := rand.New(rand.NewPCG(seed, 0))
		at := int64(1e18)
		for phase := range 12 {
			at += int64(5*time.Second) + rnd.Int64N(int64(time.Hour))
			begin := at / int64(time.Second) * int64(time.Second)
			s := &tableStage{tb: tb, want: make([]atomic.Uint64, keys)}
			s.clock.Store(begin)
			var done atomic.Bool
			var readers, adders sync.WaitGroup
			for reader := range 2 {
				rnd := rand.New(rand.NewPCG(seed, uint64(1000*phase+reader)))
				readers.Go(func() {
					for !done.Load() {
						s.read(t, rnd)
					}
				})
			}
			for writer := range writers {
				rnd := rand.New(rand.NewPCG(seed, uint64(1000*phase+10+writer)))
				adders.Go(func() {
					for range adds {
						s.add(t, rnd, begin+int64(900*time.Millisecond))
					}
				})
			}
			adders.Wait()
			done.Store(true)
			readers.Wait()
			s.check(t, phase)
			at = s.clock.Load()
		}
		if s := tb.Stats(); s.Late+s.Future+s.Evicted+s.Refused+s.Saturated != 0 || s.Full == 0 {
			t.Errorf("%+v", s)
		}
	}
}

type tableStage struct {
	tb    *Table
	clock atomic.Int64
	want  []atomic.Uint64
}

func (s *tableStage) add(t *testing.T, rnd *rand.Rand, stop int64) {
	now := s.clock.Load()
	if next := now + rnd.Int64N(int64(time.Millisecond)); next < stop {
		s.clock.CompareAndSwap(now, next)
	}
	k := min(rnd.IntN(len(s.want)), rnd.IntN(len(s.want)))
	n := []uint64{1, 2, 3, 1 << 22}[rnd.IntN(4)]
	s.want[k].Add(n)
	if !s.tb.AddAt(time.Unix(0, now), fmt.Sprint("key", k), n) {
		t.Error("an add was refused")
	}
}

// read reads in all ways, and expires old keys.
func (s *tableStage) read(t *testing.T, rnd *rand.Rand) {
	at := time.Unix(0, s.clock.Load())
	k := rnd.IntN(len(s.want))
	switch rnd.IntN(50) {
	case 0:
		if top, err := s.tb.TopAt(at, 5, time.Second); err != nil || !slices.IsSortedFunc(top, compareCounts) {
			t.Errorf("%v, %v", top, err)
		}
	case 1:
		for key, r := range s.tb.AllAt(at) {
			if c, err := r.Count(time.Second); err != nil || c.Lo > c.Hi || s.tb.SumAt(at, key) > 1e12 {
				t.Errorf("%q: %+v, %v", key, c, err)
			}
		}
	case 2:
		s.tb.in.Expire()
	default:
		key := fmt.Sprint("key", k)
		if got := s.tb.SumAt(at, key); got > s.want[k].Load() {
			t.Errorf("%q has %d, more than was begun", key, got)
		}
	}
}

func (s *tableStage) check(t *testing.T, phase int) {
	at := time.Unix(0, s.clock.Load())
	for k := range s.want {
		key, want := fmt.Sprint("key", k), s.want[k].Load()
		if got := s.tb.SumAt(at, key); got != want {
			t.Fatalf("phase %d: %q has %d, added were %d", phase, key, got, want)
		}
	}
}

// An add and its sum are one step: each of many adds sees another sum.
func TestConcurrentTableAddSumIsOneStep(t *testing.T) {
	const goroutines, each = 8, 2000
	tb := mustTable(t, TableConfig{}, Last(time.Hour))
	at := time.Unix(1e9, 0)
	seen := make([]atomic.Bool, goroutines*each+1)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				sum, ok := tb.AddSumAt(at, "key", 1)
				if !ok || seen[sum].Swap(true) {
					t.Errorf("the sum %d was seen twice", sum)
				}
			}
		})
	}
	wg.Wait()
}

// Live adds from many goroutines, with a flood of keys at the budget: no key may
// have more than it was given, and the keys held add up.
func TestTableConcurrentFlood(t *testing.T) {
	const goroutines = 6
	each := 60_000
	if testing.Short() {
		each = 8_000
	}
	tb := mustTable(t, TableConfig{Budget: 256 << 10}, Last(time.Hour), Window{Span: time.Millisecond, Slot: time.Millisecond})
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				if i%8 == 0 {
					tb.Add("busy", 1)
				} else if i%1000 == 1 {
					tb.Remove(fmt.Sprint(g, "-", i-5))
				} else {
					tb.Add(fmt.Sprint(g, "-", i), 1)
				}
			}
		})
	}
	wg.Wait()
	if got := tb.Sum("busy"); got != goroutines*uint64((each+7)/8) {
		t.Errorf("the busy key has %d, want %d", got, goroutines*((each+7)/8))
	}
	records := 0
	for key, r := range tb.All() {
		c, err := r.Count(time.Hour) // a machine may take a minute
		if records++; key != "busy" && c.Lo != 1 || err != nil {
			t.Errorf("%q has %+v, %v", key, c, err)
		}
	}
	if s := tb.Stats(); s.Keys != records || s.Evicted == 0 || s.Bytes > s.Budget {
		t.Errorf("%d records, %+v", records, s)
	}
}
