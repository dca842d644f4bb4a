//go:build explore

package ring

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"os"
	"runtime"
	"testing"
	"time"
)

// The explorer runs the code of this package, not a model of it, in every order
// that its atomics can happen in:
//
//	go test -tags explore -run Explore ./internal/ring
//
// Each actor is a coroutine that stops before every atomic; the explorer goes
// through all choices of who takes the next step, depth first, beginning again
// from an empty ring for each. Of orders that differ only in steps that cannot
// tell (of different words, or two loads) it takes one: C. Flanagan and
// P. Godefroid, Dynamic partial-order reduction, POPL 2005, with the sleep sets
// of Godefroid's thesis, 1996.

// An actor is one goroutine's part in a scenario.
type actor struct {
	act   func()
	yield func(struct{}) bool
	next  func() (struct{}, bool)

	running bool
	what         // its next step
	seen    past // what its steps so far depend on
}

// what says what a step is about.
type what struct {
	at     any
	writes bool
}

// A past holds, for each actor, how many of its steps came before.
type past [4]int

func (p *past) join(q past) {
	for i := range p {
		p[i] = max(p[i], q[i])
	}
}

// taken is a step of the order that is run.
type taken struct {
	what
	by, nth int
	past    past // itself included
}

// A node is a choice on the way to the order that is run.
type node struct {
	chosen int
	ready  uint // who could take a step
	sleep  uint // whose step here leads to nothing new
	try    uint // whose step here must be tried, if it does not sleep
}

type explorer struct {
	path   []node
	actors []*actor
	taken  []taken
	now    int // the actor that runs, or nobody

	endless bool // the order has more than the longest
}

const nobody = -1

// abandoned ends actors whose order is not gone through to its end.
var abandoned = errors.New("abandoned")

// longest is how many steps an order may have. One that has more is that of an
// actor who waits for another, which is wrong: all are to be lock-free.
const longest = 300

// independent reports whether two steps in a row can change places.
func independent(a, b what) bool { return a.at != b.at || !a.writes && !b.writes }

// run goes through one order, that of x.path as far as it goes. It reports false
// if the order turned out to be one that has been gone through.
func (x *explorer) run(acts []func()) bool {
	x.actors, x.taken = nil, x.taken[:0]
	step = func(at any, writes bool) {
		if x.now != nobody {
			a := x.actors[x.now]
			a.what = what{at, writes}
			if !a.yield(struct{}{}) {
				panic(abandoned)
			}
		}
	}
	defer func() { x.now = nobody }()
	for i, act := range acts {
		a := &actor{act: act}
		var stop func()
		a.next, stop = iter.Pull(func(yield func(struct{}) bool) {
			defer func() {
				if err := recover(); err != nil && err != abandoned {
					panic(err)
				}
			}()
			a.yield = yield
			a.act()
		})
		defer func() {
			x.now = i
			stop()
			x.now = nobody
		}()
		x.actors = append(x.actors, a)
		x.resume(i) // up to its first step
	}
	sleep := uint(0)
	for depth := 0; ; depth++ {
		if depth == longest {
			x.endless = true
			return true
		}
		if depth == len(x.path) {
			n := node{ready: x.ready(), sleep: sleep}
			x.findRaces(n.ready)
			if n.ready == 0 {
				return true
			}
			if n.ready&^sleep == 0 {
				return false
			}
			n.chosen = bits.TrailingZeros(n.ready &^ sleep)
			n.try = 1 << n.chosen
			x.path = append(x.path, n)
		}
		n := x.path[depth]
		sleep = x.stillAsleep(n.sleep, n.chosen)
		x.record(n.chosen)
		x.resume(n.chosen)
	}
}

// record notes the step that an actor is about to take, and what it depends on.
func (x *explorer) record(i int) {
	a := x.actors[i]
	nth := a.seen[i] + 1
	for _, s := range x.taken {
		if !independent(s.what, a.what) {
			a.seen.join(s.past)
		}
	}
	a.seen[i] = nth
	x.taken = append(x.taken, taken{a.what, i, nth, a.seen})
}

// findRaces looks, for each next step, for the last step taken that it could have
// come before, and marks it to be tried there.
func (x *explorer) findRaces(ready uint) {
	for i, a := range x.actors {
		if ready>>i&1 == 0 {
			continue
		}
		for j := len(x.taken) - 1; j >= 0; j-- {
			s := &x.taken[j]
			if s.by != i && !independent(s.what, a.what) && a.seen[s.by] < s.nth {
				x.path[j].try |= 1 << i
				break
			}
		}
	}
}

// resume lets an actor take the step it is about to take, up to the next.
func (x *explorer) resume(i int) {
	x.now, tokenNow = i, uint64(i+1)
	_, x.actors[i].running = x.actors[i].next()
	x.now = nobody
}

func (x *explorer) ready() (set uint) {
	for i, a := range x.actors {
		if a.running {
			set |= 1 << i
		}
	}
	return set
}

// stillAsleep returns who of sleep can sleep on when an actor takes its step.
func (x *explorer) stillAsleep(sleep uint, chosen int) uint {
	for i, a := range x.actors {
		if !independent(a.what, x.actors[chosen].what) {
			sleep &^= 1 << i
		}
	}
	return sleep
}

// nextPath moves on to the next order, and reports false after the last.
func (x *explorer) nextPath() bool {
	for len(x.path) > 0 {
		n := &x.path[len(x.path)-1]
		n.sleep |= 1 << n.chosen
		if left := n.try &^ n.sleep; left != 0 {
			n.chosen = bits.TrailingZeros(left)
			return true
		}
		x.path = x.path[:len(x.path)-1]
	}
	return false
}

// A play is one order of a scenario: a window and what is known about the adds
// to it. Each add has a weight, a power of 4, so that a sum tells which adds it
// has in it, and how often.
type play struct {
	window
	history         byte // its address stands for the beginnings and ends of adds
	begun, finished uint64
	refused         uint64
	wrong           string
}

// window is what a scenario needs of a Ring. The controls are others.
type window interface {
	AddLive(t int64, n uint64) bool
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
		step(&p.history, false)
		p.begun += n
		if !verb() {
			p.refused += n
		}
		step(&p.history, false)
		p.finished += n
	}
}

func (p *play) live(slot int64, n uint64) func() {
	return p.add(n, func() bool { p.AddLive(slot*width, n); return true })
}

func (p *play) at(slot int64, n uint64) func() {
	return p.add(n, func() bool { return p.AddAt(slot*width, n) })
}

// read is an actor that reads the newest window of that many slots and the slot
// before it, as a live read does. What has finished before in slots that are in
// the window still must be in the sum; gone are the adds that may have left it.
func (p *play) read(slots int64, gone uint64) func() {
	return func() {
		step(&p.history, true)
		least := p.finished
		var sum uint64
		for whole := false; !whole; {
			newest, _ := p.Newest()
			sum, whole = p.Sum(newest-slots, newest)
		}
		step(&p.history, true)
		p.checkSum(sum, least&^gone&^p.refused, p.begun)
	}
}

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

// wantSlots checks a sum when all is over.
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

// explore goes through every order of a scenario and returns how many there
// are, and what the first wrong one got wrong.
func explore(t *testing.T, fresh func() window, s scenario) (orders int, wrong string) {
	t.Helper()
	x := &explorer{now: nobody}
	runs, start := 0, time.Now()
	for {
		p := &play{window: fresh(), begun: 1, finished: 1}
		actors, end := s(p)
		whole := x.run(actors)
		runs++
		if whole {
			orders++
			if x.endless {
				return orders, "somebody waits for somebody"
			}
			if end(); p.wrong != "" {
				return orders, p.wrong
			}
		}
		if !x.nextPath() {
			t.Logf("%d orders in %d runs, %v", orders, runs, time.Since(start).Round(time.Millisecond))
			return orders, ""
		}
	}
}

func realRing(slots int) func() window {
	return func() window {
		r := newRing(slots)
		r.AddAt(10*width, 1)
		return r
	}
}

// spreadRing is one whose adders are in lanes already, which lag behind.
func spreadRing(slots int) func() window {
	return func() window {
		r := realRing(slots)().(*Ring)
		r.Spread()
		return r
	}
}

// long returns actors, and in the long form a reader as well, which makes the
// orders of these many too many for everyday.
func long(reader func(), writers ...func()) []func() {
	if os.Getenv("LATELY_LONG") != "" {
		return append(writers, reader)
	}
	return writers
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
		return long(p.read(1, 1), p.live(11, 4), p.live(12, 16)), func() { p.wantSlots(11, 12, 20) }
	},
	"one live is overtaken by a turn": func(p *play) ([]func(), func()) {
		return long(p.read(1, 1|4), p.live(10, 4), p.live(12, 16)), func() { p.wantSlots(11, 12, 16, 20) }
	},
	"two at, two slots": func(p *play) ([]func(), func()) {
		return long(p.read(1, 1), p.at(11, 4), p.at(12, 16)), func() {
			p.wantSlots(11, 11, 4)
			p.wantSlots(12, 12, 16)
		}
	},
	"one at is overtaken by a turn": func(p *play) ([]func(), func()) {
		return long(p.read(1, 1|4), p.at(10, 4), p.at(12, 16)), func() { p.wantSlots(11, 12, 16) }
	},
	"at and live": func(p *play) ([]func(), func()) {
		return []func(){p.at(10, 4), p.live(11, 16), p.read(1, 0)}, func() {
			p.wantSlots(10, 10, 5)
			p.wantSlots(11, 11, 16)
		}
	},
	"at, beside an era that ends": func(p *play) ([]func(), func()) {
		far := int64(10 + farTurns*2 + 1)
		return long(p.read(1, 1|4), p.at(10, 4), p.live(far, 16)), func() { p.wantSlots(far-1, far, 16) }
	},
	"live, beside an era that ends": func(p *play) ([]func(), func()) {
		far := int64(10 + farTurns*2 + 1)
		return long(p.read(1, 1|4), p.live(10, 4), p.live(far, 16)), func() { p.wantSlots(far-1, far, 16, 20) }
	},
	"two end the era": func(p *play) ([]func(), func()) {
		far := int64(10 + farTurns*2 + 1)
		return long(p.read(1, 1), p.live(far, 4), p.live(far+1, 16)), func() { p.wantSlots(far, far+1, 20) }
	},
	"spread meanwhile": func(p *play) ([]func(), func()) {
		spread := func() {
			if r, ok := p.window.(*Ring); ok {
				r.Spread()
			}
		}
		return []func(){p.live(10, 4), p.live(11, 16), p.read(1, 0), spread}, func() { p.wantSlots(10, 11, 21) }
	},
}

func TestExplore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // for two lanes
	all := 0
	for name, s := range scenarios {
		for kind, fresh := range map[string]func() window{"one lane": realRing(1), "lanes": spreadRing(1)} {
			t.Run(name+", "+kind, func(t *testing.T) {
				orders, wrong := explore(t, fresh, s)
				if wrong != "" {
					t.Error(wrong)
				}
				all += orders
			})
		}
	}
	t.Logf("%d orders in all", all)
}

// hasty is a Ring that publishes the newest slot before its word is stamped.
type hasty struct{ *Ring }

func (r hasty) AddLive(t int64, n uint64) bool {
	e, slot := r.era.Load(), Floor(t, r.width)
	if state := e.newest.Load(); slot > newestOf(state) && e.newest.CompareAndSwap(state, open(slot)) {
		for s := newestOf(state) + 1; s <= slot; s++ {
			e.stamp(open(slot), s)
		}
	}
	return r.Ring.AddLive(t, n)
}

// forgetful is a Ring that adds without a look at the slot that the word has by
// then, for a time that must not move.
type forgetful struct{ *Ring }

func (r forgetful) AddAt(t int64, n uint64) bool {
	if e, s := r.ready(t); e != nil {
		e.blind(s, n)
		return true
	}
	return r.Ring.AddAt(t, n)
}

// split keeps stamp and count apart, and stamps first.
type split struct {
	*Ring
	stamps, counts [2]atomicInt64
}

func (r *split) AddLive(t int64, n uint64) bool {
	slot := Floor(t, r.width)
	stamp, count := &r.stamps[slot&1], &r.counts[slot&1]
	if old := stamp.Load(); old < slot && stamp.CompareAndSwap(old, slot) {
		step(count, true)
		count.Store(0)
	}
	for c := count.Load(); !count.CompareAndSwap(c, c+int64(n)); {
		c = count.Load()
	}
	return false
}

func (r *split) Sum(first, last int64) (sum uint64, whole bool) {
	for s := first; s <= last; s++ {
		if r.stamps[s&1].Load() == s {
			sum += uint64(r.counts[s&1].Load())
		}
	}
	return sum, true
}

// TestExploreControls shows that the explorer finds what is wrong.
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
			orders, wrong := explore(t, fresh, scenarios[c.scenario])
			if wrong == "" {
				t.Fatalf("no order of %d was found wrong, of a ring that is", orders)
			}
			t.Logf("found after %d orders: %s", orders, wrong)
		})
	}
}
