package keytable_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/test/randtest"
)

func unlimited() *keytable.Budget { return keytable.NewBudget(math.MaxInt64 / 2) }

func timesOf(b *keytable.Blocks, l []uint64) []int64 {
	var ts []int64
	for i := range b.Len(l) {
		ts = append(ts, b.At(l, i))
	}
	return ts
}

// A sliceLog is a log as a slice.
type sliceLog struct {
	bound int
	times []int64
	lost  bool
}

func (s *sliceLog) add(t int64) {
	s.times = append(s.times, t)
	if len(s.times) > s.bound {
		s.times, s.lost = s.times[1:], true
	}
}

func (s *sliceLog) expire(gone int64) {
	k, _ := slices.BinarySearch(s.times, gone+1)
	s.times, s.lost = s.times[k:], s.lost && k == 0
}

func (s *sliceLog) remove(t int64, n int) (k int) {
	for ; k < n; k++ {
		i := slices.Index(s.times, t)
		if i < 0 {
			break
		}
		s.times = slices.Delete(s.times, i, i+1)
	}
	if len(s.times) == 0 {
		s.lost = false // nothing is left to tell by when it has
	}
	return k
}

// TestBlocksAgainstSlices does random things to several logs that share their
// storage, and to a slice for each.
func TestBlocksAgainstSlices(t *testing.T) {
	rnd := randtest.New(t)
	bounds := []int{1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 60, 64, 100, 127, 128, 129, 1000}
	for range 20 {
		bounds = append(bounds, 1+rnd.IntN(300))
	}
	for _, bound := range bounds {
		for _, inline := range []int{3, 4, 5} {
			checkBlocks(t, rnd, bound, inline)
		}
	}
}

func checkBlocks(t *testing.T, rnd *rand.Rand, bound, inline int) {
	t.Helper()
	budget := unlimited()
	b := keytable.NewBlocks(bound, inline, budget)
	const logs = 4
	words := make([][]uint64, logs)
	want := make([]sliceLog, logs)
	for i := range logs {
		words[i], want[i].bound = make([]uint64, b.Words()), bound
	}
	now := rnd.Int64N(1000) - 500
	full, lost := false, false
	for step := 0; step < 600+4*bound || bound < 100 && !(full && lost) && step < 100_000; step++ {
		now += max(rnd.Int64N(4)-1, 0) // ties are common
		i := rnd.IntN(logs)
		l, w := words[i], &want[i]
		switch rnd.IntN(40) {
		case 0:
			b.Clear(l)
			*w = sliceLog{bound: bound}
		case 1, 2:
			gone := now - rnd.Int64N(int64(2*bound)+5)
			w.expire(gone)
			if left := b.Expire(l, gone); left != len(w.times) {
				t.Fatalf("bound %d, step %d: Expire leaves %d, want %d", bound, step, left, len(w.times))
			}
		case 3, 4:
			at, n := now-rnd.Int64N(int64(bound)+5), rnd.IntN(5)
			if got, want := b.Remove(l, at, n), w.remove(at, n); got != want {
				t.Fatalf("bound %d, step %d: Remove takes %d, want %d", bound, step, got, want)
			}
		case 5:
			if !b.Reserve(l, rnd.IntN(2*bound)) {
				t.Fatalf("bound %d: no memory", bound)
			}
		default:
			if rnd.IntN(8) > 0 {
				l, w = words[0], &want[0] // one log is to reach its bound
			}
			b.Add(l, now, 1)
			w.add(now)
		}
		full, lost = full || len(w.times) == bound, lost || w.lost
		if n := len(w.times); n > 0 && (b.At(l, 0) != w.times[0] || b.Newest(l) != w.times[n-1]) {
			t.Fatalf("bound %d, inline %d, step %d: the newest time is %d, want %v", bound, inline, step, b.Newest(l), w.times)
		}
		if got := timesOf(b, l); !slices.Equal(got, w.times) || b.Lost(l) != w.lost || b.Len(l) != len(w.times) {
			t.Fatalf("bound %d, inline %d, step %d: the log is %v (lost %t), want %v (%t)", bound, inline, step, got, b.Lost(l), w.times, w.lost)
		}
	}
	for i := range logs {
		if got := timesOf(b, words[i]); !slices.Equal(got, want[i].times) {
			t.Errorf("bound %d: log %d ends as %v, want %v", bound, i, got, want[i].times)
		}
		b.Clear(words[i])
	}
	if bound < 100 && (!full || !lost) {
		t.Errorf("bound %d: no log was ever full: the test has no teeth", bound)
	}
	if b.InUse() != 0 {
		t.Errorf("bound %d: %d blocks are held by empty logs", bound, b.InUse())
	}
}

// TestBlocksGiveBack fills logs and lets all their times leave, again and again: no more blocks may be taken than in the
// first round, and an empty log or one with a single time has none.
func TestBlocksGiveBack(t *testing.T) {
	for _, bound := range []int{1, 3, 4, 5, 70, 600} {
		b := keytable.NewBlocks(bound, 3, unlimited())
		words := make([][]uint64, 50)
		now := int64(0)
		round := func(left int64) {
			for i := range words {
				if words[i] == nil {
					words[i] = make([]uint64, b.Words())
				}
				for range bound {
					now++
					b.Add(words[i], now, 1)
				}
				if n := int64(b.Expire(words[i], now-left)); n != min(left, int64(bound)) {
					t.Fatalf("bound %d: %d left", bound, n)
				}
			}
		}
		round(0)
		first := b.Ever()
		for k := range int64(20) {
			round(k % 2)
			if b.InUse() != 0 {
				t.Errorf("bound %d: %d blocks in use", bound, b.InUse())
			}
		}
		if b.Ever() != first {
			t.Errorf("bound %d: %d blocks after 21 rounds, %d after one", bound, b.Ever(), first)
		}
	}
}

// TestBlocksKeepTheBudget fills logs until there is no memory: the used bytes stay within the budget, reserved ones stay
// available, and a log that gets no memory does not change.
func TestBlocksKeepTheBudget(t *testing.T) {
	for _, bound := range []int{60, 1000, 60_000} {
		const limit = 2_000_000
		budget := keytable.NewBudget(limit)
		b := keytable.NewBlocks(bound, 3, budget)
		var words [][]uint64
		refused := 0
		for i := 0; refused < 100 && i < 10_000; i++ {
			l := make([]uint64, b.Words())
			words = append(words, l)
			for now := range int64(bound) {
				before := slices.Clone(l)
				if !b.Reserve(l, 1) {
					refused++
					if !slices.Equal(l, before) {
						t.Fatalf("a log without memory has changed: %x, was %x", l, before)
					}
					break
				}
				b.Add(l, now, 1)
				if b.Len(l) != int(now)+1 || b.Lost(l) {
					t.Fatalf("bound %d: a log with memory has %d times, not %d", bound, b.Len(l), now+1)
				}
			}
		}
		if refused < 100 {
			t.Fatalf("bound %d: the budget was never spent", bound)
		}
		held := 0
		for _, l := range words {
			held += b.Len(l)
			for i, at := range timesOf(b, l) {
				if at != int64(i) {
					t.Fatalf("bound %d: time %d of a log is %d", bound, i, at)
				}
			}
		}
		if used := budget.Used(); used > limit || int64(held)*8 > used || held*8 < limit/8 {
			t.Errorf("bound %d: %d times in %d bytes", bound, held, used)
		}
		for _, l := range words {
			b.Clear(l)
		}
		if l := make([]uint64, b.Words()); !b.Reserve(l, min(bound, 8)) {
			t.Errorf("bound %d: no memory although all blocks are free", bound)
		}
	}
}

// TestBlocksRelease gives everything back, and starts over.
func TestBlocksRelease(t *testing.T) {
	budget := keytable.NewBudget(1_000_000)
	b := keytable.NewBlocks(100, 3, budget)
	for range 3 {
		for range 300 {
			l := make([]uint64, b.Words())
			for now := range int64(60) {
				b.Add(l, now, 1)
			}
		}
		if budget.Used() < 300*60*8 {
			t.Errorf("%d bytes used", budget.Used())
		}
		b.Release()
		if budget.Used() != 0 || b.InUse() != 0 {
			t.Errorf("%d bytes and %d blocks in use after Release", budget.Used(), b.InUse())
		}
	}
}

// TestBlocksConcurrently has goroutines fill and empty logs of their own: no goroutine changes what another wrote.
func TestBlocksConcurrently(t *testing.T) {
	b := keytable.NewBlocks(100, 3, unlimited())
	var wg sync.WaitGroup
	for g := range int64(4) {
		rnd := rand.New(rand.NewPCG(uint64(g), 3))
		wg.Go(func() {
			words := make([][]uint64, 400) // enough for large chunks as well
			for i := range words {
				words[i] = make([]uint64, b.Words())
			}
			for range 6000 {
				l := words[rnd.IntN(len(words))]
				n := rnd.IntN(100)
				if !b.Reserve(l, n) {
					t.Error("no memory")
				}
				for range n {
					b.Add(l, g, 1)
				}
				if rnd.IntN(2) == 0 {
					b.Expire(l, g)
				}
				for _, at := range timesOf(b, l) {
					if at != g {
						t.Errorf("a log of %d has %d", g, at)
						return
					}
				}
			}
			for _, l := range words {
				b.Clear(l)
			}
		})
	}
	wg.Wait()
	if b.InUse() != 0 {
		t.Errorf("%d blocks in use, all logs are empty", b.InUse())
	}
}

func TestBlocksDoNotAllocateWhenFull(t *testing.T) {
	b := keytable.NewBlocks(100, 3, unlimited())
	l := make([]uint64, b.Words())
	now := int64(0)
	tick := func() {
		now++
		b.Expire(l, now-50)
		b.Add(l, now, 1)
	}
	for range 200 {
		tick()
	}
	if n := testing.AllocsPerRun(100, tick); n != 0 {
		t.Errorf("%v allocations to add to a log that has its memory", n)
	}
}

func TestNewBlocksPanics(t *testing.T) {
	for _, c := range [][2]int{{0, 3}, {keytable.MaxLog + 1, 3}, {1, 2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("bound %d, inline %d: no panic", c[0], c[1])
				}
			}()
			keytable.NewBlocks(c[0], c[1], unlimited())
		}()
	}
}

// Fits finds as much memory as repeated calls with one time less would.
func TestBlocksFitsAgainstLoop(t *testing.T) {
	rnd := randtest.New(t)
	for range 2000 {
		bound, inline := 2+rnd.IntN(3000), 3+rnd.IntN(3)
		limit := int64(rnd.IntN(64 << 10))
		if rnd.IntN(4) == 0 {
			limit = 0
		}
		made := func() (*keytable.Blocks, []uint64) {
			b := keytable.NewBlocks(bound, inline, keytable.NewBudget(limit))
			return b, make([]uint64, b.Words())
		}
		n := 1 + rnd.IntN(2*bound)
		want := min(n, bound)
		model, l := made()
		for !model.Reserve(l, want) {
			want--
		}
		b, l := made()
		if got := b.Fits(l, n); got != want {
			t.Fatalf("%d times fit of %d, bound %d, %d inline, budget %d; want %d", got, n, bound, inline, limit, want)
		}
		for i := range want {
			if !b.Push(l, int64(i)) {
				t.Fatalf("no memory for time %d of %d that are to fit", i+1, want)
			}
		}
	}
}

// The memory of blocks is freed when most of them are, although the others are scattered: records that are visited now and
// then have theirs moved together.
func TestBlocksGather(t *testing.T) {
	rnd := randtest.New(t)
	budget := keytable.NewBudget(16 << 20)
	b := keytable.NewBlocks(64, 3, budget)
	logs := make([][]uint64, 20_000)
	for i := range logs {
		logs[i] = make([]uint64, b.Words())
		for j := range 20 {
			if !b.Push(logs[i], int64(i+j)) {
				t.Fatal("no memory")
			}
		}
	}
	full := budget.Used()
	var left []int
	for i, l := range logs {
		if rnd.IntN(10) > 0 {
			b.Clear(l)
		} else {
			left = append(left, i)
		}
	}
	if budget.Used() < full/2 {
		t.Fatalf("%d bytes of %d: chunks are empty by chance: no test", budget.Used(), full)
	}
	for _, i := range left {
		b.Gather(logs[i])
	}
	if most := full/10 + full/8 + 3*64<<10; budget.Used() > most {
		t.Errorf("%d bytes of %d are kept for a tenth of the logs, want at most %d", budget.Used(), full, most)
	}
	for _, i := range left {
		for j := range 20 {
			if b.At(logs[i], j) != int64(i+j) {
				t.Fatalf("log %d has the times %v after it was moved", i, timesOf(b, logs[i]))
			}
		}
	}
	for range 3 { // what was given back is used again
		for i := range logs {
			for j := range 20 {
				b.Push(logs[i], int64(100_000+i+j))
			}
		}
		for _, l := range logs {
			b.Clear(l)
		}
	}
	if used := budget.Used(); used > full/8 || b.InUse() != 0 {
		t.Errorf("%d bytes and %d blocks are kept for nothing", used, b.InUse())
	}
	b.Release()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are not given back", budget.Used())
	}
}
