//go:build explore

package ring

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// A play is one order of a scenario: a window, and the known facts about the adds to it. Each add has a weight, a power of
// 4, so that a sum shows which adds it contains, and how often.
type play struct {
	window
	history         byte // its address stands for begun, finished and refused
	begun, finished uint64
	refused         uint64
	wrong           string
}

// window is what a scenario needs of a Ring. The controls are others.
type window interface {
	AddLive(t int64, n uint64)
	AddAt(t int64, n uint64) bool
	Newest() (int64, bool)
	Sum(first, last int64) (uint64, bool)
}

func (p *play) failf(format string, args ...any) {
	if p.wrong == "" {
		p.wrong = fmt.Sprintf(format, args...)
	}
}

// add is an actor that adds n by one of the verbs.
func (p *play) add(n uint64, verb func() bool) func() {
	return func() {
		step(&p.history, notes)
		p.begun += n
		if !verb() {
			p.refused += n
		}
		forget(0)
		step(&p.history, notes)
		p.finished += n
	}
}

func (p *play) live(slot int64, n uint64) func() {
	return p.add(n, func() bool { p.AddLive(slot*width, n); return true })
}

func (p *play) at(slot int64, n uint64) func() {
	return p.add(n, func() bool { return p.AddAt(slot*width, n) })
}

// striping is an actor that makes stripes, or more of them.
func (p *play) striping() { p.window.(interface{ Restripe() }).Restripe() }

// read is an actor that reads the newest window of that many slots and the slot before it, as a live read does. Adds that
// have finished before in slots that are in the window still must be in the sum; gone are the adds that may have left it.
func (p *play) read(slots int64, gone uint64) func() {
	return func() {
		step(&p.history, looks)
		least := p.finished
		var sum uint64
		for whole := false; !whole; {
			forget(least)
			newest, _ := p.Newest()
			sum, whole = p.Sum(newest-slots, newest)
		}
		forget(least, sum)
		step(&p.history, notes)
		p.checkSum(sum, least&^gone&^p.refused, p.begun)
	}
}

// forget declares that the running actor keeps only these of all values that its steps have loaded. The explorer sets it.
var forget = func(values ...uint64) {}

// checkSum wants each add of least once in sum, others of most once or not, and
// nothing else.
func (p *play) checkSum(sum, least, most uint64) {
	for n := uint64(1); n <= sum|least|most && n != 0; n <<= 2 {
		times := sum / n & 3
		if times > 1 || times == 0 && least&n != 0 || times == 1 && most&n == 0 {
			p.failf("a read found %b; had to have %b, could have %b", sum, least, most)
		}
	}
}

// wantSlots checks a sum at the end.
func (p *play) wantSlots(first, last int64, want ...uint64) {
	sum, _ := p.Sum(first, last)
	for _, w := range want {
		if sum == w {
			return
		}
	}
	p.failf("slots %d to %d hold %b at the end, want one of %b", first, last, sum, want)
}

// A scenario sets up a play and returns its actors, and what must hold at the
// end.
type scenario func(p *play) (actors []func(), end func())

func realRing(slots int) func() window {
	return func() window {
		r := newRing(slots)
		r.AddAt(10*width, 1)
		return r
	}
}

// stripedRing is one whose adders have stripes already, which are empty.
func stripedRing(slots int) func() window {
	return func() window {
		r := realRing(slots)().(*Ring)
		r.Restripe()
		return r
	}
}

// usedRing is a ring whose adders have been in their stripes; an actor that moves on leaves the other's stripe behind.
func usedRing(slots int) func() window {
	return func() window {
		r := stripedRing(slots)().(*Ring)
		for tokenNow = range 3 {
			r.AddLive(10*width, 0)
		}
		return used{r}
	}
}

type used struct{ *Ring }

var rings = map[string]func() window{
	"one stripe": realRing(1), "stripes": stripedRing(1), "used stripes": usedRing(1),
}

// long returns actors, and in the long form one more, with which the states are
// too many for everyday.
func long(more func(), actors ...func()) []func() {
	if os.Getenv("LATELY_LONG") != "" {
		return append(actors, more)
	}
	return actors
}

// longUnlessUsed is long, but used stripes go without the one more in the long form
// too: that makes tens of millions of states.
func (p *play) longUnlessUsed(more func(), actors ...func()) []func() {
	if _, ok := p.window.(used); ok {
		return actors
	}
	return long(more, actors...)
}

// Slot 10 has 1 in it, by then. A window of one slot has a ring of two words, so
// that every other slot takes the same one.
var scenarios = map[string]scenario{
	"two live, the slot changes": func(p *play) ([]func(), func()) {
		return []func(){p.live(10, 4), p.live(11, 16), p.read(1, 0)}, func() { p.wantSlots(10, 11, 21) }
	},
	"two live, both change the slot": func(p *play) ([]func(), func()) {
		return long(p.read(1, 0), p.live(11, 4), p.live(11, 16)), func() { p.wantSlots(10, 11, 21) }
	},
	"two live, two slots": func(p *play) ([]func(), func()) {
		return p.longUnlessUsed(p.read(1, 1), p.live(11, 4), p.live(12, 16)), func() { p.wantSlots(11, 12, 20) }
	},
	"one live is overtaken by a turn": func(p *play) ([]func(), func()) {
		return long(p.read(1, 1|4), p.live(10, 4), p.live(12, 16)), func() { p.wantSlots(11, 12, 16, 20) }
	},
	"two at, two slots": func(p *play) ([]func(), func()) {
		return p.longUnlessUsed(p.read(1, 1), p.at(11, 4), p.at(12, 16)), func() {
			p.wantSlots(11, 11, 4)
			p.wantSlots(12, 12, 16)
		}
	},
	"one at is overtaken by a turn": func(p *play) ([]func(), func()) {
		return long(p.read(1, 1|4), p.at(10, 4), p.at(12, 16)), func() { p.wantSlots(11, 12, 16) }
	},
	"at and live": func(p *play) ([]func(), func()) {
		return long(p.read(1, 0), p.at(10, 4), p.live(11, 16)), func() {
			p.wantSlots(10, 10, 5)
			p.wantSlots(11, 11, 16)
		}
	},
	"at, beside a generation that ends": func(p *play) ([]func(), func()) {
		far := int64(10 + farTurns*2 + 1)
		return long(p.read(1, 1|4), p.at(10, 4), p.live(far, 16)), func() { p.wantSlots(far-1, far, 16) }
	},
	"live, beside a generation that ends": func(p *play) ([]func(), func()) {
		far := int64(10 + farTurns*2 + 1)
		return long(p.read(1, 1|4), p.live(10, 4), p.live(far, 16)), func() { p.wantSlots(far-1, far, 16, 20) }
	},
	"two end the generation": func(p *play) ([]func(), func()) {
		far := int64(10 + farTurns*2 + 1)
		return p.longUnlessUsed(p.read(1, 1), p.live(far, 4), p.live(far+1, 16)), func() { p.wantSlots(far, far+1, 20) }
	},
	"two end the generation in the same slot": func(p *play) ([]func(), func()) {
		far := int64(10 + farTurns*2 + 1)
		return long(p.read(1, 1), p.live(far, 4), p.live(far, 16)), func() { p.wantSlots(far-1, far, 20) }
	},
	"striping meanwhile": func(p *play) ([]func(), func()) {
		return long(p.live(10, 4), p.live(11, 16), p.read(1, 0), p.striping), func() { p.wantSlots(10, 11, p.begun) }
	},
}

func TestExplore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // for two stripes
	orders, states := 0.0, 0
	for name, s := range scenarios {
		for kind, fresh := range rings {
			t.Run(name+", "+kind, func(t *testing.T) {
				x, wrong := explore(t, fresh, s)
				if wrong != "" {
					t.Error(wrong)
				}
				orders += x.orders
				states += len(x.left)
			})
		}
	}
	t.Logf("%.3g orders, %d states in all", orders, states)
}

// hasty is a Ring that publishes the newest slot before its word is stamped.
type hasty struct{ *Ring }

func (r hasty) AddLive(t int64, n uint64) {
	e, slot := r.gen.Load(), FloorDiv(t, r.width)
	if state := e.newest.Load(); slot > newestOf(state) && e.newest.CompareAndSwap(state, open(slot)) {
		for s := newestOf(state) + 1; s <= slot; s++ {
			e.stamp(open(slot), s)
		}
	}
	r.Ring.AddLive(t, n)
}

// forgetful is a Ring that adds without checking the slot of the word again, for a time that must not move.
type forgetful struct{ *Ring }

func (r forgetful) AddAt(t int64, n uint64) bool {
	if e, s := r.ready(t); e != nil {
		e.addUnchecked(s, n)
		return true
	}
	return r.Ring.AddAt(t, n)
}

// split keeps stamp and count apart, and stamps first.
type split struct {
	*Ring
	stamps, counts [2]atomicInt64
}

func (r *split) AddLive(t int64, n uint64) {
	slot := FloorDiv(t, r.width)
	stamp, count := &r.stamps[slot&1], &r.counts[slot&1]
	if old := stamp.Load(); old < slot && stamp.CompareAndSwap(old, slot) {
		step(count, swaps)
		count.Store(0)
	}
	for c := count.Load(); !count.CompareAndSwap(c, c+int64(n)); {
		c = count.Load()
	}
}

func (r *split) Sum(first, last int64) (sum uint64, whole bool) {
	for s := first; s <= last; s++ {
		if r.stamps[s&1].Load() == s {
			sum += uint64(r.counts[s&1].Load())
		}
	}
	return sum, true
}

// TestExploreControls shows that the explorer finds planted errors.
func TestExploreControls(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, c := range []struct {
		scenario string
		broken   window
	}{
		{"two live, the slot changes", hasty{realRing(1)().(*Ring)}},
		{"one at is overtaken by a turn", forgetful{}},
		{"two live, both change the slot", &split{}},
	} {
		fresh := func() window {
			r := realRing(1)().(*Ring)
			switch c.broken.(type) {
			case hasty:
				return hasty{r}
			case forgetful:
				return forgetful{r}
			}
			x := &split{Ring: r}
			x.stamps[0].Store(10)
			x.counts[0].Store(1)
			return x
		}
		t.Run(c.scenario, func(t *testing.T) {
			x, wrong := explore(t, fresh, scenarios[c.scenario])
			if wrong == "" {
				t.Fatalf("no order of %.3g was found wrong, of a ring that is", x.orders)
			}
			t.Logf("found in run %d: %s", x.runs, wrong)
		})
	}
}
