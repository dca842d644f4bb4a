package ring

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

const width = 10 // nanoseconds a slot in these tests

func newRing(slots int) *Ring {
	r := new(Ring)
	r.Init(width, slots)
	return r
}

func (r *Ring) mustAdd(t *testing.T, slot int64, n uint64) {
	t.Helper()
	if !r.AddAt(slot*width, n) {
		t.Fatalf("AddAt(%d, %d) was refused", slot, n)
	}
}

func (r *Ring) wantSum(t *testing.T, first, last int64, want uint64) {
	t.Helper()
	if got, whole := r.Sum(first, last); got != want || !whole {
		t.Fatalf("Sum(%d, %d) = %d, whole %t; want %d, true", first, last, got, whole, want)
	}
}

func TestEmptyRing(t *testing.T) {
	r := newRing(5)
	if _, ok := r.Newest(); ok {
		t.Error("an empty ring has a newest slot")
	}
	r.wantSum(t, -1000, 1000, 0)
	if got := r.Slot(-1); got != -1 {
		t.Errorf("Slot(-1) = %d, want -1", got)
	}
}

func TestKeepsWindowAndOneSlot(t *testing.T) {
	for slots := 1; slots <= 17; slots++ {
		r := newRing(slots)
		for s := int64(-40); s <= 40; s++ {
			r.mustAdd(t, s, uint64(s+100))
			for back := int64(0); back <= min(int64(slots), s+40); back++ {
				r.wantSum(t, s-back, s-back, uint64(s-back+100))
			}
		}
		if _, whole := r.Sum(40-int64(slots)-1, 40); whole {
			t.Errorf("%d slots: a sum over a slot that is gone calls itself whole", slots)
		}
		if r.AddAt((40-int64(slots)-1)*width, 1) {
			t.Errorf("%d slots: an add to a slot that is gone was accepted", slots)
		}
		r.mustAdd(t, 40-int64(slots), 1)
	}
}

// steps are the distances at which something changes: slot, window, ring, the
// longest step of a generation, and the distances at which tags come back.
func steps(r *Ring) []int64 {
	size := int64(1) << r.shift
	far, alias := int64(farTurns)<<r.shift, size<<tagBits
	var list []int64
	for _, d := range []int64{r.slots, size, 2 * size, far, 2 * far, alias, 2 * alias, 3 * alias} {
		list = append(list, d-size, d-1, d, d+1, d+size)
	}
	return list
}

// TestIdle fills every slot, waits, and adds one: no earlier count may show, least of all after a wait at which all stamps
// are the same again.
func TestIdle(t *testing.T) {
	for _, slots := range []int{1, 2, 5, 10, 60, 64} {
		for _, step := range steps(newRing(slots)) {
			if step <= 0 {
				continue
			}
			r := newRing(slots)
			start := int64(-12345)
			for s := start - int64(slots); s <= start; s++ {
				r.mustAdd(t, s, 1000)
			}
			next := start + step
			left := max(0, int64(slots)+1-step) // slots still kept, next included
			r.wantSum(t, next-int64(slots), next, uint64(left)*1000)
			r.mustAdd(t, next, 1)
			r.wantSum(t, next-int64(slots), next, uint64(left)*1000+1)
			r.wantSum(t, next, next, 1)
		}
	}
}

// tagOnly is the ring that TestIdle must catch: it takes a word to belong to a slot by its tag alone.
type tagOnly struct {
	words [16]uint64
}

func (r *tagOnly) add(slot int64, n uint64) uint64 {
	w := &r.words[slot&15]
	if (*w^stampOf(slot, 4))>>tagShift != 0 {
		*w = stampOf(slot, 4)
	}
	*w += n
	return countOf(*w)
}

// TestIdleControl shows that the waits of TestIdle are the dangerous ones.
func TestIdleControl(t *testing.T) {
	r := new(tagOnly)
	r.add(7, 1000)
	caught := false
	for _, step := range steps(newRing(10)) {
		naive := *r
		caught = caught || naive.add(7+step, 1) > 1 && step > 16
	}
	if !caught {
		t.Error("a ring with tags alone passes: the waits prove nothing")
	}
}

// TestFarControl shows why a generation has a longest step: the words that a stopped writer has stamped for a step of up to
// that can be distinguished from older ones, those for a longer step cannot.
func TestFarControl(t *testing.T) {
	for _, c := range []struct {
		turns int64
		clear bool
	}{{1, true}, {farTurns - 1, true}, {farTurns, true}, {3 * farTurns, false}, {5 * farTurns, false}} {
		r := newRing(10)
		r.mustAdd(t, 100, 1)
		e := r.gen.Load()
		slot := 100 + c.turns<<r.shift
		e.stamp(open(100), slot)
		if got := e.slotFound(e.word(slot).Load(), slot, open(100)); (got == slot) != c.clear {
			t.Errorf("%d turns on: slot %d reads as slot %d, want clear %t", c.turns, slot, got, c.clear)
		}
	}
}

// TestBusyWrap goes round all tags several times within one generation.
func TestBusyWrap(t *testing.T) {
	r := newRing(5)
	first := int64(3)
	r.mustAdd(t, first, 7)
	e := r.gen.Load()
	slot := first
	for hop := range 20 {
		slot += e.far() - int64(hop%3)
		r.mustAdd(t, slot, uint64(hop+1))
		r.wantSum(t, slot-5, slot, uint64(hop+1))
		r.mustAdd(t, slot-5, 100)
		r.wantSum(t, slot-5, slot, uint64(hop+1)+100)
	}
	if r.gen.Load() != e {
		t.Error("steps of at most far() took a new generation")
	}
	r.mustAdd(t, slot+e.far()+1, 1)
	if r.gen.Load() == e {
		t.Error("a step beyond far() did not take a new generation")
	}
}

// The tests below stop a writer between two of its steps and let others go on.

func TestStoppedUncheckedWriter(t *testing.T) {
	r := newRing(5)
	r.mustAdd(t, 100, 1)
	e := r.gen.Load() // the writer has seen newest at 100, and stops
	r.mustAdd(t, 108, 1)
	e.addUnchecked(100, 3)
	r.wantSum(t, 108, 108, 4) // 108 has taken the place of 100
	r.mustAdd(t, 116, 1)
	r.mustAdd(t, 118, 1)
	e.addUnchecked(100, 3)
	r.wantSum(t, 116, 116, 4)
	r.wantSum(t, 113, 118, 5)
}

func TestStoppedExactWriter(t *testing.T) {
	r := newRing(5)
	r.mustAdd(t, 100, 1)
	e := r.gen.Load()
	r.mustAdd(t, 108, 1)
	if _, _, _, ok := e.add(100, 3); ok {
		t.Error("add reached slot 108 by the name of slot 100")
	}
	r.wantSum(t, 103, 108, 1)
}

// A writer that has stamped the words for slot 110 and stopped before publishing blocks no other.
func TestStoppedAdvance(t *testing.T) {
	stopped := func() *Ring {
		r := newRing(5)
		for s := int64(95); s <= 100; s++ {
			r.mustAdd(t, s, 1)
		}
		e := r.gen.Load()
		for s := int64(103); s <= 110; s++ {
			e.stamp(open(100), s)
		}
		return r
	}
	t.Run("add at", func(t *testing.T) {
		r := stopped()
		if r.AddAt(100*width, 1) {
			t.Error("slot 100 has been replaced, its add must be refused as late")
		}
		r.mustAdd(t, 110, 1)
		r.wantSum(t, 105, 110, 1)
	})
	t.Run("add live", func(t *testing.T) {
		for _, n := range []uint64{1, maxUnchecked + 1} {
			r := stopped()
			r.AddLive(100*width, n)
			r.mustAdd(t, 110, 0)
			r.wantSum(t, 105, 110, n)
		}
	})
	t.Run("sum", func(t *testing.T) {
		r := stopped()
		if _, whole := r.Sum(96, 100); whole {
			t.Error("a sum over replaced slots calls itself whole")
		}
		for range 10 {
			newest, _ := r.Newest()
			if sum, whole := r.Sum(newest-5, newest); whole && sum == 0 && newest > 100 {
				return
			}
		}
		t.Error("reading the newest window does not end")
	})
	t.Run("advance less", func(t *testing.T) {
		r := stopped()
		if r.AddAt(101*width, 1) {
			t.Error("slot 101 has been replaced by 109, its add must be refused as late")
		}
		r.mustAdd(t, 110, 1)
		r.wantSum(t, 110, 110, 1)
	})
	t.Run("goes on", func(t *testing.T) {
		r := stopped()
		r.mustAdd(t, 120, 5)
		r.gen.Load().stamp(open(100), 111) // the stopped one wakes up
		r.gen.Load().advance(open(100), 112)
		r.wantSum(t, 115, 120, 5)
	})
}

// A writer that has closed a generation and stopped blocks no other either.
func TestStoppedClose(t *testing.T) {
	const next = 1 << 50
	for name, use := range map[string]func(r *Ring){
		"add at":       func(r *Ring) { r.AddAt(next*width, 1) },
		"add at after": func(r *Ring) { r.AddAt((next+1)*width, 1) },
		"add live":     func(r *Ring) { r.AddLive(next*width, 1) },
		"late live":    func(r *Ring) { r.AddLive(100*width, 1) },
		"sum": func(r *Ring) {
			if sum, _ := r.Sum(90, next); sum != 0 {
				t.Errorf("sum after the close is %d", sum)
			}
			r.mustAdd(t, next, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRing(5)
			r.mustAdd(t, 100, 9)
			e := r.gen.Load()
			e.newest.Store(closed(next))
			if e.advance(open(100), 101); newestOf(e.newest.Load()) != next {
				t.Error("a closed generation has moved on")
			}
			use(r)
			r.wantSum(t, next-4, next+1, 1)
			e.addUnchecked(100, 1) // a straggler
			r.wantSum(t, next-4, next+1, 1)
		})
	}
}

// A writer that has decided to close a generation, and stopped, must not take an add
// with it that came in between and belongs to what comes after.
func TestStoppedBeforeClose(t *testing.T) {
	r := newRing(5)
	r.mustAdd(t, 100, 1)
	e := r.gen.Load()
	far := 100 + e.far()
	r.mustAdd(t, far, 7)
	e.close(open(100), far+1)
	r.mustAdd(t, far+1, 1)
	r.wantSum(t, far-3, far+1, 8)
}

// A writer that wants to stamp, and has stopped until its words have passed half of all tags, must not take them for older
// ones.
func TestStoppedBeforeStamp(t *testing.T) {
	for turns := int64(1); turns <= 5*farTurns; turns += farTurns / 2 {
		r := newRing(5)
		r.mustAdd(t, 100, 1)
		e := r.gen.Load()
		slot := int64(100)
		for last := slot + turns*8; slot < last; {
			slot = min(last, slot+e.far())
			r.mustAdd(t, slot, 3)
		}
		for s := int64(101); s <= 108; s++ {
			if e.stamp(open(100), s) {
				t.Errorf("%d turns on, slot %d was stamped", turns, s)
			}
		}
		e.advance(open(100), 101)
		r.wantSum(t, slot-5, slot, 3)
	}
}

func TestOverflow(t *testing.T) {
	type step struct {
		n    uint64
		live bool
	}
	for i, c := range []struct {
		steps     []step
		want      uint64
		saturated uint64
	}{
		{[]step{{MaxCount, false}}, MaxCount, 0},
		{[]step{{MaxCount, true}}, MaxCount, 0},
		{[]step{{MaxCount - 1, false}, {1, true}}, MaxCount, 0},
		{[]step{{MaxCount, false}, {0, true}, {0, false}}, MaxCount, 0},
		{[]step{{MaxCount, false}, {1, true}}, MaxCount, 1},
		{[]step{{MaxCount, false}, {1, true}, {maxUnchecked, true}, {1, false}}, MaxCount, 3},
		{[]step{{1 << 36, false}}, MaxCount, 1},
		{[]step{{1, true}, {1<<64 - 1, true}}, MaxCount, 1},
		{[]step{{1, true}, {1<<64 - 1, false}, {1<<64 - 1, false}}, MaxCount, 2},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := newRing(3)
			r.mustAdd(t, 40, 5)
			for _, s := range c.steps {
				if s.live {
					r.AddLive(41*width, s.n)
				} else {
					r.mustAdd(t, 41, s.n)
				}
			}
			r.wantSum(t, 41, 41, c.want)
			r.wantSum(t, 40, 41, c.want+5)
			if got := r.Saturated(); got != c.saturated {
				t.Errorf("Saturated() = %d, want %d", got, c.saturated)
			}
			r.mustAdd(t, 42, 1) // the tags are unharmed
			r.wantSum(t, 40, 42, c.want+6)
		})
	}
}

// A full slot between an overflowing add and its clamp reads as full.
func TestOverflowUnclamped(t *testing.T) {
	r := newRing(3)
	r.mustAdd(t, 41, MaxCount)
	r.gen.Load().word(41).Add(maxUnchecked)
	r.wantSum(t, 41, 41, MaxCount)
	r.mustAdd(t, 41, 1)
	r.wantSum(t, 41, 41, MaxCount)
	if got := r.Saturated(); got != 1 {
		t.Errorf("Saturated() = %d, want 1", got)
	}
}

// TestOverflowControl adds to a full slot like a ring that neither guards nor clamps: the count carries into the tag, and
// the tests above would find it.
func TestOverflowControl(t *testing.T) {
	r := newRing(3)
	r.mustAdd(t, 41, MaxCount)
	r.gen.Load().word(41).Add(lowMask - MaxCount + 1)
	if sum, _ := r.Sum(41, 41); sum == MaxCount {
		t.Errorf("a carry into the tag went unnoticed: the slot reads %d", sum)
	}
}

// Many writers that overflow one slot at the same time do not reach its tag.
func TestOverflowConcurrent(t *testing.T) {
	const writers, adds, at = 4, 5000, 41 * width
	r := newRing(3)
	r.contention.Store(0xff) // they stay in one stripe
	r.AddLive(at, MaxCount-1000)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range adds {
				r.AddLive(at, maxUnchecked)
				if sum, _ := r.Sum(41, 41); sum < MaxCount-1000 {
					t.Errorf("a slot about to overflow reads %d", sum)
					return
				}
			}
		})
	}
	wg.Wait()
	r.wantSum(t, 41, 41, MaxCount)
	// 3 adds of 256 fit into 1000. Each of the others does not.
	if got := r.Saturated(); got != writers*adds-3 {
		t.Errorf("Saturated() = %d, want %d", got, writers*adds-3)
	}
	r.mustAdd(t, 42, 1)
	r.wantSum(t, 41, 42, MaxCount+1)
}

func TestAddLive(t *testing.T) {
	r := newRing(5)
	r.AddLive(100*width+3, 1)
	r.AddLive(100*width+9, 1)
	r.AddLive(101*width, 1)
	r.wantSum(t, 100, 100, 2)
	r.wantSum(t, 101, 101, 1)
	r.AddLive(97*width, 1) // overtaken, but its slot is in the window
	r.wantSum(t, 97, 97, 1)
	r.AddLive(96*width, 1) // its slot has left: the newest
	r.AddLive(-5*width, 1)
	r.wantSum(t, 96, 96, 0)
	r.wantSum(t, 101, 101, 3)
}

// TestWordsOnlyGrow is the invariant of a generation, after random adds.
func TestWordsOnlyGrow(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := newRing(6)
	slot := int64(-50)
	for range 20_000 {
		slot += rnd.Int64N(20) - 8
		if rnd.IntN(100) == 0 {
			slot += rnd.Int64N(int64(farTurns) << r.shift)
		}
		r.AddAt(slot*width, 1)
		e := r.gen.Load()
		state := e.newest.Load()
		newest := newestOf(state)
		for s := newest - int64(len(e.words)) + 1; s <= newest; s++ {
			if got := e.slotFound(e.word(s).Load(), s, state); got != s {
				t.Fatalf("newest %d: the word of slot %d belongs to slot %d", newest, s, got)
			}
		}
	}
}

// TestLateWriter stops a writer of either kind between reading the time and counting, moves on by up to several rings or a
// whole generation, and lets it go on. Its add is kept, in a slot that was reached meanwhile, or refused.
func TestLateWriter(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	lost, wrong := 0, 0
	for range 10_000 {
		slots := 1 + rnd.IntN(12)
		r := newRing(slots)
		r.mustAdd(t, 100, 1)
		if rnd.IntN(2) == 0 {
			r.Restripe()
			r.AddLive(100*width, 0)
		}
		e, slot := r.ready(100 * width) // the writer, which stops here
		for e == nil {                  // it has moved to a stripe that is not there yet
			r.AddLive(100*width, 0)
			e, slot = r.ready(100 * width)
		}
		newest := int64(100)
		for range rnd.IntN(5) {
			newest += 1 + rnd.Int64N(int64(2*len(e.words)))
			if rnd.IntN(20) == 0 {
				newest += e.far() + 1
			}
			r.AddLive(newest*width, 1)
		}
		before := r.sumAll(newest)
		e.addUnchecked(slot, 4)
		after := r.sumAll(newest)
		if after != before && after != before+4 {
			wrong++
		}
		// It is out of the window only if its own slot, or its generation, is.
		if after == before && newest-int64(slots) <= slot {
			lost++
		}
	}
	if lost+wrong > 0 {
		t.Errorf("%d adds were lost and %d counted wrong, of 10,000", lost, wrong)
	}
}

// TestLateWriterControl is a ring that puts the stamp it has read beside its count: a writer that was stopped brings an old
// slot back, and deletes a new one.
func TestLateWriterControl(t *testing.T) {
	r := newRing(3)
	r.mustAdd(t, 100, 1)
	e, slot := r.ready(100 * width)
	r.mustAdd(t, 104, 1)
	e.word(slot).Store(stampOf(slot, r.shift) | 5)
	if sum := r.sumAll(104); sum == 1 || sum == 5 {
		t.Errorf("the slot of 104 has its count, or the late one: %d; the test proves nothing", sum)
	}
}

// sumAll returns the counts in the window at newest and in the slot before it.
func (r *Ring) sumAll(newest int64) uint64 {
	sum, _ := r.Sum(newest-r.slots, newest)
	return sum
}
