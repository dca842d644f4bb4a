package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/redistest"
)

const (
	budgetLimit = 600
	budgetSpan  = time.Second
	budgetRules = "version: 1\nlimits:\n  - {name: tokens, key: user, limit: 600 per 1s}\n"
)

// A spending is the final cost of one event: what was settled, or what was reserved if its caller has crashed or was late.
// It was counted at a time between call and answer.
type spending struct {
	call, answer time.Time
	cost         uint64
	crashed      bool
}

// mostSpent returns the most that was spent in any window of the span, counting only what was certainly in the window.
func mostSpent(all []spending) (most uint64) {
	slices.SortFunc(all, func(a, b spending) int { return a.call.Compare(b.call) })
	for i := range all {
		sum, end := uint64(0), all[i].call.Add(budgetSpan)
		for _, s := range all[i:] {
			if !s.call.Before(end) {
				break
			}
			if s.answer.Before(end) {
				sum += s.cost
			}
		}
		most = max(most, sum)
	}
	return most
}

// A spender is one caller of a budget: it uses any of the servers for each step.
type spender struct {
	t      *testing.T
	nodes  []*client.Fleet
	rnd    *rand.Rand
	spent  []spending
	expiry bool // it has met one that was late
}

func (s *spender) node() *client.Fleet { return s.nodes[s.rnd.IntN(len(s.nodes))] }

// reserve spends by a reservation, which it settles in time, late, twice or not at all.
func (s *spender) reserve(ctx context.Context) {
	estimate, hold := 1+s.rnd.Uint64N(40), time.Minute
	how := s.rnd.IntN(10)
	if how == 1 {
		hold = time.Millisecond
	}
	x := spending{call: time.Now(), cost: estimate}
	r, err := s.node().Reserve(ctx, "tokens", estimate, hold, "ada")
	x.answer = time.Now()
	switch {
	case ctx.Err() != nil:
		return // it may have been counted: that only lowers what is spent
	case err != nil:
		s.t.Error(err)
		return
	case !r.Decision.Allowed:
		time.Sleep(min(max(r.Decision.RetryAfter, time.Millisecond), 50*time.Millisecond))
		return
	}
	time.Sleep(time.Duration(s.rnd.Int64N(int64(5 * time.Millisecond)))) // the work
	actual := s.rnd.Uint64N(estimate + 1)
	switch how {
	case 0:
		x.crashed = true
	case 1:
		time.Sleep(2 * time.Millisecond)
		_, err := s.node().Settle(ctx, r, actual)
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == api.Expired {
			s.expiry, x.crashed = true, true
		} else if ctx.Err() == nil {
			s.t.Errorf("settled late: %v", err)
		}
	default:
		times := 1
		if how == 2 {
			times = 2
		}
		for i := range times {
			settled, err := s.node().Settle(ctx, r, actual)
			if ctx.Err() != nil {
				break
			}
			if err != nil || settled != (i == 0) {
				s.t.Errorf("settlement %d: %v, %v", i, settled, err)
			}
		}
		x.cost = actual
	}
	s.spent = append(s.spent, x)
}

// charge spends without a reservation: it takes 1, and charges the final cost.
func (s *spender) charge(ctx context.Context) {
	x := spending{call: time.Now(), cost: 1 + s.rnd.Uint64N(40)}
	d, err := s.node().Take(ctx, "tokens", 1, "ada")
	x.answer = time.Now()
	if err != nil || !d.Allowed {
		time.Sleep(time.Millisecond)
		return
	}
	time.Sleep(time.Duration(s.rnd.Int64N(int64(5 * time.Millisecond))))
	if s.node().Charge(ctx, "tokens", x.cost, "ada") == nil {
		s.spent = append(s.spent, x)
	}
}

// spend has 200 callers spend at three servers of one store.
func spend(t *testing.T, how func(*spender, context.Context)) (all []spending, expired bool) {
	redis := redistest.Own(t)
	var fleets []*client.Fleet
	for range 3 {
		n := newNode(t, storeOf(redis))
		n.write(budgetRules)
		must.Do(t, n.Reload())
		n.wantReady(200)
		address, _ := n.Addresses()
		f := must.Get(client.NewFleet(client.FleetConfig{Nodes: []string{address}, Timeout: time.Minute}))(t)
		defer f.Close()
		fleets = append(fleets, f)
	}
	duration := 6 * time.Second
	if testing.Short() {
		duration = 2500 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	seed := randtest.Seed(t)
	spenders := make([]spender, 200)
	var running sync.WaitGroup
	for i := range spenders {
		s := &spenders[i]
		s.t, s.nodes, s.rnd = t, fleets, rand.New(rand.NewPCG(seed, uint64(i)))
		running.Go(func() {
			for ctx.Err() == nil {
				how(s, ctx)
			}
		})
	}
	running.Wait()
	for i := range spenders {
		all, expired = append(all, spenders[i].spent...), expired || spenders[i].expiry
	}
	return all, expired
}

// TestBudgetHolds has 200 callers with a budget of tokens reserve, settle, crash and settle late at three servers of one
// store: no window has more than the limit, including the reservations of callers that have crashed. Callers that charge
// the used amount without a reservation exceed it.
func TestBudgetHolds(t *testing.T) {
	t.Parallel()
	all, expired := spend(t, (*spender).reserve)
	crashed := 0
	for _, x := range all {
		if x.crashed {
			crashed++
		}
	}
	most := mostSpent(all)
	t.Logf("%d events were allowed, %d of them of callers that crashed or were late; at most %d of %d were spent in a window", len(all), crashed, most, budgetLimit)
	if most > budgetLimit {
		t.Errorf("%d were spent in a window, with a limit of %d", most, budgetLimit)
	}
	if most < budgetLimit/3 || crashed == 0 || !expired {
		t.Errorf("the test has tried too little: at most %d were spent, %d have crashed, one was late: %v", most, crashed, expired)
	}
	control, _ := spend(t, (*spender).charge)
	if most := mostSpent(control); most <= budgetLimit {
		t.Errorf("without reservations, at most %d were spent: this test cannot fail", most)
	} else {
		t.Logf("without reservations: %d", most)
	}
}
