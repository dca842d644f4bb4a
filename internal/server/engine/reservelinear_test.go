package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/randtest"
)

// Histories of sessions that share an engine are checked for linearizability: each reservation, settlement, also a second one
// of an id, and take must be explained by an instant at which it alone was done. No time passes in a history.

const linearLimit = 8

type linearOp struct {
	verb string // take, reserve or settle
	n    uint64
	id   int // of a reservation
}

type linearAnswer struct {
	allowed   bool
	remaining uint64
}

// A linearState is the sequential specification: the used amount, and the charge of each reservation; -1 after it was
// settled.
type linearState struct {
	used uint64
	held [64]int8
}

var linearModel = porcupine.Model{
	Init: func() any { return linearState{} },
	Step: func(state, input, output any) (bool, any) {
		s, op, a := state.(linearState), input.(linearOp), output.(linearAnswer)
		if op.verb == "settle" {
			first := s.held[op.id] >= 0
			if first {
				s.used -= uint64(s.held[op.id]) - op.n
			}
			s.held[op.id] = -1
			return a.allowed == first, s
		}
		if s.used+op.n > linearLimit {
			return a == linearAnswer{false, linearLimit - s.used}, s
		}
		s.used += op.n
		if op.verb == "reserve" {
			s.held[op.id] = int8(op.n)
		}
		return a == linearAnswer{true, linearLimit - s.used}, s
	},
}

// linearHistory runs operations of some sessions at once. settle settles an id.
func linearHistory(t testing.TB, rnd *rand.Rand, settle func(*engine.Session, string, uint64) (bool, error)) (all []porcupine.Operation) {
	e := newEngine(t, fmt.Sprintf("version: 1\nlimits: [{name: r, key: user, limit: %d per 1h}]\n", linearLimit))
	var mu sync.Mutex
	type reservation struct {
		op   linearOp
		text string
	}
	var open []reservation
	ids := 0
	start := time.Now()
	var running sync.WaitGroup
	for g := range 5 {
		rnd := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		c := e.Session()
		running.Go(func() {
			for range 12 {
				op, text := linearOp{verb: []string{"take", "reserve", "settle", "settle"}[rnd.IntN(4)], n: 1 + rnd.Uint64N(3)}, ""
				mu.Lock()
				switch {
				case op.verb == "reserve":
					op.id = ids
					ids++
				case op.verb == "settle" && len(open) > 0:
					r := open[rnd.IntN(len(open))]
					op.id, op.n, text = r.op.id, rnd.Uint64N(r.op.n+1), r.text
				case op.verb == "settle":
					op.verb = "take"
				}
				mu.Unlock()
				o := porcupine.Operation{ClientId: g, Input: op, Call: int64(time.Since(start))}
				var a linearAnswer
				var err error
				if op.verb == "settle" {
					a.allowed, err = settle(c, text, op.n)
				} else {
					a, text, err = linearTake(c, op)
				}
				o.Output, o.Return = a, int64(time.Since(start))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				all = append(all, o)
				if op.verb == "reserve" && a.allowed {
					open = append(open, reservation{op, text})
				}
				mu.Unlock()
				runtime.Gosched()
			}
		})
	}
	running.Wait()
	return all
}

func linearTake(c *engine.Session, op linearOp) (a linearAnswer, text string, err error) {
	terms := engine.Terms{}
	if op.verb == "reserve" {
		terms.Hold = time.Hour
	}
	if err := c.QueueTake("r", op.n, terms, "ada"); err != nil {
		return a, "", err
	}
	for d, err := range c.Decide() {
		id, _ := c.ID()
		return linearAnswer{d.Allowed, d.Remaining}, string(id), err
	}
	return a, "", nil
}

// TestReservationsAreLinearizable checks histories, and that histories of a server that does not record settlements are
// found to be wrong.
func TestReservationsAreLinearizable(t *testing.T) {
	rnd := randtest.New(t)
	histories := 300
	if testing.Short() {
		histories = 40
	}
	for range histories {
		h := linearHistory(t, rnd, (*engine.Session).Settle)
		if result := porcupine.CheckOperationsTimeout(linearModel, h, time.Minute); result != porcupine.Ok {
			t.Fatalf("a history is %v", result)
		}
	}
	for range 1000 {
		h := linearHistory(t, rnd, func(c *engine.Session, id string, n uint64) (bool, error) {
			settled, err := c.Settle(id, n)
			return settled || n == 0, err // as if it gave back again
		})
		if porcupine.CheckOperationsTimeout(linearModel, h, time.Minute) == porcupine.Illegal {
			return
		}
	}
	t.Error("no history is wrong of a server that settles twice")
}
