package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// An updatedMeanwhile is a store whose rules change during its first settlement: after it has checked that the Set is still
// that of the request.
type updatedMeanwhile struct {
	*Memory
	update func()
	during bool
}

func (s *updatedMeanwhile) Settle(ctx context.Context, settlement *Settlement) error {
	if s.during {
		return s.Memory.Settle(ctx, settlement)
	}
	s.during = true
	seen := s.rules.Load()
	s.update()
	now := s.rules.Swap(seen)
	defer s.rules.Store(now)
	return s.Memory.Settle(ctx, settlement)
}

// TestSettleWhileRulesChange checks that a reservation under two rules is given back
// once under each, when the table of the second has moved after the first was done.
func TestSettleWhileRulesChange(t *testing.T) {
	key := must.Get(match.NewKey(match.Fold{}, "client"))(t)
	set := func(after uint64) *Set {
		s := must.Get(NewSet(SetConfig{},
			Rule{Name: "stays", Key: key, Algorithm: Fixed, Limits: []Limit{{N: 100, Span: time.Hour}}},
			Rule{Name: "moves", Key: key, Algorithm: Fixed, Limits: []Limit{{N: 100, Span: time.Hour}}, Ban: &Ban{After: after, Of: Refusals, Span: time.Hour, For: time.Hour}}))(t)
		return s
	}
	first := set(100)
	memory := must.Get(NewMemory(first, Config{}))(t)
	store := &updatedMeanwhile{Memory: memory}
	l := Over(first, store)
	update := func(after uint64) {
		must.Do(t, l.Update(set(after)))
	}
	store.update = func() { update(300) }
	r := l.Reserve(clientEvent("k"), 4)
	l.Reserve(clientEvent("k"), 4)
	update(200) // so that the subjects to settle are not those that were charged
	must.Do(t, r.Cancel())
	for _, rule := range []string{"stays", "moves"} {
		r := must.Get(l.Rule(rule))(t)
		if d := r.PeekN(l.Now(), 0, "k"); 100-d.Remaining != 4 {
			t.Errorf("of 8 reserved and 4 given back, rule %s counts %d", rule, 100-d.Remaining)
		}
	}
}

func clientEvent(key string) *match.Event {
	e := new(match.Event)
	e.SetString(match.Client, key)
	return e
}
