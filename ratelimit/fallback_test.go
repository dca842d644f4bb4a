package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// fleet is a store that some nodes share, and that may be away.
type fleet struct {
	ratelimit.Store
	nodes int
	away  bool
}

var errFleet = errors.New("the store is away")

func (f *fleet) Nodes() int { return f.nodes }

func (f *fleet) Decide(ctx context.Context, batch []*ratelimit.Request) {
	if !f.away {
		f.Store.Decide(ctx, batch)
		return
	}
	for _, r := range batch {
		r.Err = errFleet
	}
}

// TestShare takes the store away from one of several nodes: it has allowed a part of the limit in the window, and allows no
// more than its share in all. In later windows it has its share, also when the number of nodes has fallen, and at least 1.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		limit             uint64
		nodes, before     int
		rest, next, fewer int // with one node fewer
	}{
		{90, 3, 20, 10, 30, 45},
		{90, 3, 60, 0, 30, 45},
		{90, 1, 20, 70, 90, 90},
		{1000, 3, 100, 233, 333, 500},
		{2, 3, 0, 1, 1, 1},
		{2, 0, 1, 1, 2, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
				Name: "r", Key: match.MustKey("path"), Limits: []ratelimit.Limit{{N: c.limit, Span: time.Minute}},
			}))(t)
			m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{}))(t)
			f := &fleet{Store: m, nodes: c.nodes}
			l := ratelimit.Over(set, f)
			var e match.Event
			e.SetString(match.Path, "/")
			takes := func(n int) (allowed int) {
				for range n {
					if l.Take(&e).Allowed {
						allowed++
					}
				}
				return allowed
			}
			want := func(what string, got, want int) {
				t.Helper()
				if got != want {
					t.Errorf("limit %d, %d nodes: %s %d are allowed, want %d", c.limit, c.nodes, what, got, want)
				}
			}
			want("by the store", takes(c.before), c.before)
			f.away = true
			want("in the rest of the window", takes(2000), c.rest)
			time.Sleep(2 * time.Minute)
			want("in another window", takes(2000), c.next)
			time.Sleep(2 * time.Minute)
			f.nodes = max(f.nodes-1, 1)
			want("with a node fewer", takes(2000), c.fewer)
			f.away = false
			time.Sleep(2 * time.Minute)
			want("by the store again", takes(2000), int(c.limit))
		})
	}
}

// TestUpdateAway changes the limits of a rule while the store is away, and local memory has
// no budget for a second table: it decides under the new rules all the same, with nothing
// counted, and a reservation from before ends.
func TestUpdateAway(t *testing.T) {
	rules := func(n uint64) *ratelimit.Set {
		return mustSet(t, limitRule(t, "r", per(n, time.Hour)))
	}
	first := rules(5)
	m := must.Get(ratelimit.NewMemory(first, ratelimit.Config{}))(t)
	l := ratelimit.Over(first, &fleet{Store: updating{m}, nodes: 1, away: true})
	l.UseLocal(smallest(t, first))
	reserved := l.Reserve(keyEvent(l, "k"), 1)
	must.Do(t, l.Update(rules(6)))
	if d := l.Take(keyEvent(l, "k")); !d.Allowed || !errors.Is(d.Err, errFleet) || d.Remaining != 5 {
		t.Errorf("%+v, want allowed by new local memory with 5 left", d)
	}
	if err := reserved.Cancel(); err != nil {
		t.Error(err)
	}
}

// TestShareWithoutBudget changes the number of nodes while local memory has no budget for a
// second table: it has the share of the new number at once, and begins with nothing counted.
func TestShareWithoutBudget(t *testing.T) {
	set := mustSet(t, limitRule(t, "r", per(9, time.Hour)))
	m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{}))(t)
	f := &fleet{Store: m, nodes: 1, away: true}
	l := ratelimit.Over(set, f)
	l.UseLocal(smallest(t, set))
	for i, nodes := range []int{1, 3, 3} {
		f.nodes = nodes
		d := l.Take(keyEvent(l, "k"))
		if want := uint64(9 / nodes); !d.Allowed || !errors.Is(d.Err, errFleet) || d.Limit != want {
			t.Errorf("decision %d, of %d nodes: %+v, want a limit of %d", i+1, nodes, d, want)
		}
	}
}

// smallest returns a memory store with so small a budget that a table does not fit twice.
func smallest(t *testing.T, set *ratelimit.Set) *ratelimit.Memory {
	t.Helper()
	for budget := int64(4096); budget < 1<<20; budget += 4096 {
		if m, err := ratelimit.NewMemory(set, ratelimit.Config{Budget: budget}); err == nil {
			return m
		}
	}
	t.Fatal("a mebibyte is too small for an empty table")
	return nil
}

// updating is a store that takes any rules.
type updating struct{ ratelimit.Store }

func (updating) Update(_ context.Context, _ *ratelimit.Set, published func()) error {
	published()
	return nil
}

// TestInFlightAway takes the store away while events are in flight: they occupy places in local memory too, until they end
// or their span has passed. All nodes together never have more in flight than the limit if their load is balanced, and than
// the limit and the shares of the others if it is not.
func TestInFlightAway(t *testing.T) {
	for _, c := range []struct {
		what   string
		before []int // in flight on each node
		after  []int // what each node allows beside, while the store is away
	}{
		{"balanced", []int{3, 3, 3}, []int{0, 0, 0}},
		{"half used", []int{2, 2, 0}, []int{1, 1, 3}},
		{"all on one node", []int{9, 0, 0}, []int{0, 3, 3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			set := mustSet(t, ratelimit.Rule{
				Name: "r", Key: match.MustKey("path"), Algorithm: ratelimit.InFlight, Limits: []ratelimit.Limit{{N: 9, Span: time.Minute}},
			})
			m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{}))(t)
			for i, before := range c.before {
				f := &fleet{Store: m, nodes: 3}
				l := ratelimit.Over(set, f)
				rule := must.Get(l.Rule("r"))(t)
				reserve := func(n int) (all []*ratelimit.Reservation) {
					for range n {
						if r := rule.Reserve(1, "k"); r.Decision.Allowed {
							all = append(all, r)
						}
					}
					return all
				}
				shared := reserve(before)
				if len(shared) != before {
					t.Fatalf("%s: the store allows %d, want %d", c.what, len(shared), before)
				}
				f.away = true
				local := reserve(20)
				if len(local) != c.after[i] {
					t.Errorf("%s: node %d allows %d with %d in flight, want %d", c.what, i, len(local), before, c.after[i])
				}
				if before > 0 && before <= 3 { // one ends and the store does not receive it
					shared[0].Cancel()
					if n := len(reserve(20)); n != 1 {
						t.Errorf("%s: node %d allows %d after one has ended, want 1", c.what, i, n)
					}
				}
				for _, r := range append(shared, local...) {
					r.Cancel()
				}
				time.Sleep(2 * time.Minute)
				if n := len(reserve(20)); n != 3 {
					t.Errorf("%s: node %d allows %d when nothing is in flight any more, want its share of 3", c.what, i, n)
				}
			}
		})
	}
}

// TestShareOfLimitOfEvent takes the store away from one of three nodes: what an event brings is shared like the limit of a rule.
func TestShareOfLimitOfEvent(t *testing.T) {
	for i := range limit.Algorithms() {
		rule := plannedRule(ratelimit.Algorithm(i), 30, 300, "tenant")
		set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, rule))(t)
		m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{}))(t)
		l := ratelimit.Over(set, &fleet{Store: m, nodes: 3, away: true})
		r := must.Get(l.Rule("planned"))(t)
		for limit, share := range map[uint64]uint64{0: 10, 1: 1, 2: 1, 60: 20, 300: 100, 999: 100} {
			if d := r.TakeLimit(limit, 1, fmt.Sprint("c", limit)); !d.Allowed || d.Limit != share || !errors.Is(d.Err, errFleet) {
				t.Errorf("%v: a limit of %d by one of three nodes: %+v, want one of %d", rule.Algorithm, limit, d, share)
			}
		}
	}
}
