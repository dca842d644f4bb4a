//go:build explore

package ring

import (
	"errors"
	"iter"
	"math/bits"
	"runtime"
	"testing"
	"time"
)

// The explorer runs the code of this package, not a model of it, in every order in which its atomics can happen:
//
//	go test -tags explore -run Explore ./internal/counting/ring
//
// Each actor is a coroutine that stops before every atomic; the explorer tries all choices of the next actor, depth first,
// beginning again from a fresh ring for each. There are far too many orders to follow to their ends, but few states. An
// actor is deterministic: its position follows from the results of its steps. So the results of all actors and the memory
// determine the rest, and an order that reaches a state that was left before is cut there: its continuations have been
// seen.
//
// No two steps are assumed to commute. Only loads of values that no actor changes in any order of the scenario are not
// steps. Which ones they are is found by trying: at the first change of a value that was taken for fixed, the search starts
// again. Values without a hook (a stripe's speed, the contention) do not affect counts in so few adds.
//
// To keep the visited states, and not the steps that follow, is the state-space caching of P. Godefroid, G. Holzmann and D.
// Pirottin, CAV 1992; to keep a hash in place of a state is the hash compaction of P. Wolper and D. Leroy, CAV 1993. Two of
// n states have the same hash with a chance of n*n/2^65: of 10 million, 1 in 370,000.
type explorer struct {
	*play
	actors []*actor
	now    int // the actor that runs, or nobody

	cells   []cell
	things  []thing
	surveys bool // and so the cells it meets are the same in all orders

	path   []node
	left   map[uint64]float64 // states left behind, and how many orders lead on from each
	orders float64            // in all

	runs int

	changing map[uint64]bool // the names of cells that are changed in some order
	again    bool            // there is one more

	plain bool // goes to the end of every order
}

const nobody = -1

// errAbandoned ends actors whose order is not followed to its end.
var errAbandoned = errors.New("abandoned")

// longest is how many steps an order may have. More steps mean that an actor
// waits for another, which is wrong: all must be lock-free.
const longest = 300

// An actor is one goroutine's part in a scenario.
type actor struct {
	yield   func(struct{}) bool
	next    func() (struct{}, bool)
	running bool

	at    any // what its next step is about
	does  kind
	found uint64 // a hash of what its steps have found

	forgot bool // in its last step
}

// A node is a choice on the way to the order that is run.
type node struct {
	state  uint64
	chosen int
	try    uint    // actors still to be tried
	orders float64 // found so far to lead on from here
}

// explore goes through every order of a scenario, and returns what the first
// wrong one got wrong.
func explore(t *testing.T, fresh func() window, s scenario) (x *explorer, wrong string) {
	t.Helper()
	x = new(explorer)
	return x, x.explore(t, fresh, s)
}

func (x *explorer) explore(t *testing.T, fresh func() window, s scenario) (wrong string) {
	t.Helper()
	x.changing, x.again = map[uint64]bool{}, true
	start := time.Now()
	for more := true; more; more = x.again || x.nextPath() {
		if x.again {
			x.path, x.left, x.orders, x.runs, x.again = nil, map[uint64]float64{}, 0, 0, false
		}
		x.runs++
		if wrong := x.run(fresh, s); wrong != "" {
			return wrong
		}
	}
	t.Logf("%.3g orders, %d states, %d runs, %v",
		x.orders, len(x.left), x.runs, time.Since(start).Round(time.Millisecond))
	return ""
}

// run follows one order, that of x.path and then any, to its end or to a state that was left before.
func (x *explorer) run(fresh func() window, s scenario) (wrong string) {
	x.now = nobody
	x.play = &play{window: fresh(), begun: 1, finished: 1}
	x.survey()
	acts, end := s(x.play)
	stop := x.begin(acts)
	defer stop()
	for depth := 0; ; depth++ {
		if depth == len(x.path) {
			ready := x.ready()
			if ready == 0 {
				end()
				x.count(1)
			}
			if ready == 0 || x.wrong != "" {
				return x.wrong
			}
			if depth == longest {
				return "somebody waits for somebody"
			}
			state := x.state()
			if orders, met := x.left[state]; met && !x.plain {
				x.count(orders)
				return ""
			}
			first := bits.TrailingZeros(ready)
			x.path = append(x.path, node{state: state, chosen: first, try: ready &^ (1 << first)})
		}
		x.resume(x.path[depth].chosen)
		if x.again {
			return ""
		}
	}
}

// begin brings every actor before its first step. They end when stop is called.
func (x *explorer) begin(acts []func()) (stop func()) {
	step = func(at any, does kind) {
		if x.now == nobody {
			return
		}
		if does == looks && x.isFixed(at) {
			return
		}
		a := x.actors[x.now]
		a.at, a.does = at, does
		if !a.yield(struct{}{}) {
			panic(errAbandoned)
		}
	}
	forget = func(values ...uint64) {
		a := x.actors[x.now]
		a.found, a.forgot = 0, true
		for _, v := range values {
			a.find(v)
		}
	}
	x.actors = nil
	stops := make([]func(), len(acts))
	for i, act := range acts {
		a := &actor{}
		x.actors = append(x.actors, a)
		a.next, stops[i] = iter.Pull(func(yield func(struct{}) bool) {
			defer func() {
				if err := recover(); err != nil && err != errAbandoned {
					panic(err)
				}
			}()
			a.yield = yield
			act()
		})
		x.goOn(i)
	}
	return func() {
		for i, stop := range stops {
			x.now = i
			stop()
		}
		x.now = nobody
	}
}

// goOn lets an actor run up to its next step.
func (x *explorer) goOn(i int) {
	x.now, tokenNow = i, uint64(i+1)
	_, x.actors[i].running = x.actors[i].next()
	x.now = nobody
}

// resume lets an actor take its next step, and notes the loaded value.
func (x *explorer) resume(i int) {
	a := x.actors[i]
	at, does := a.at, a.does
	c := x.cellOf(at)
	before := x.value(at)
	if does != looks && x.isFixed(at) {
		x.changing[x.cells[c].name] = true
		x.again = true
	}
	a.forgot = false
	a.find(x.cells[c].name)
	if does == looks || does == adds {
		a.find(before)
	}
	x.goOn(i)
	if does != swaps {
		return
	}
	swapped := x.changed(c, before)
	if swapped && !a.forgot {
		a.find(1)
	}
}

func (a *actor) find(what uint64) { a.found = mix(a.found, what) }

func (x *explorer) ready() (set uint) {
	for i, a := range x.actors {
		if a.running {
			set |= 1 << i
		}
	}
	return set
}

// count records that this many orders continue from the end of the path.
func (x *explorer) count(orders float64) {
	if n := len(x.path); n > 0 {
		x.path[n-1].orders += orders
		return
	}
	x.orders += orders
}

// nextPath moves on to the next order, and reports false after the last.
func (x *explorer) nextPath() bool {
	for len(x.path) > 0 {
		n := &x.path[len(x.path)-1]
		if n.try != 0 {
			n.chosen = bits.TrailingZeros(n.try)
			n.try &= n.try - 1
			return true
		}
		x.left[n.state] = n.orders
		x.path = x.path[:len(x.path)-1]
		x.count(n.orders)
	}
	return false
}

// TestExploreCuts runs small scenarios with and without cutting orders short, and requires the same states, and the number
// of orders that was computed.
func TestExploreCuts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, c := range []struct {
		name   string
		fresh  func() window
		actors func(p *play) []func()
	}{
		{"live and at", realRing(1), func(p *play) []func() { return []func(){p.live(11, 4), p.at(10, 16)} }},
		{"live and read", realRing(1), func(p *play) []func() { return []func(){p.live(11, 4), p.read(1, 0)} }},
		{"live and striping", stripedRing(1), func(p *play) []func() { return []func(){p.live(10, 4), p.striping} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := func(p *play) ([]func(), func()) { return c.actors(p), func() { p.wantSlots(10, 11, p.begun) } }
			x, y := new(explorer), &explorer{plain: true}
			if wrong := x.explore(t, c.fresh, s) + y.explore(t, c.fresh, s); wrong != "" {
				t.Fatal(wrong)
			}
			if x.orders != y.orders || len(x.left) != len(y.left) {
				t.Errorf("%.0f orders and %d states, but %.0f and %d when gone through one by one",
					x.orders, len(x.left), y.orders, len(y.left))
			}
		})
	}
}
