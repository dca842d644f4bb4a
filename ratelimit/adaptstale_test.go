package ratelimit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestStaleReadsAreNotTraffic decides under rules whose table has just moved: the request
// is stale and made again, and the traffic that an Adapt follows is one event.
func TestStaleReadsAreNotTraffic(t *testing.T) {
	key := must.Get(match.NewKey(match.Fold{}, "client"))(t)
	set := func(span time.Duration) *Set {
		s := must.Get(NewSet(SetConfig{}, Rule{
			Name: "r", Key: key, Limits: []Limit{{N: 100, Span: span}},
			Adapt: &Adapt{Span: time.Second, Steps: []AdaptStep{{Below: 50, Limit: 100}}, Above: 10},
		}))(t)
		return s
	}
	first := set(time.Minute)
	m := must.Get(NewMemory(first, Config{}))(t)
	now := time.Unix(1_700_000_000, 0)
	decide := func(s *Set) error {
		return m.decide(&Request{Set: s, Now: now.UnixNano(), Cost: 1, Subjects: []Subject{{Key: []byte("k")}}})
	}
	traffic := func() uint64 { return m.rules.Load().rules[0].adapt.traffic.SumAt(now) }
	if err := decide(first); err != nil || traffic() != 1 {
		t.Fatalf("%d events, %v", traffic(), err)
	}
	before := m.rules.Load()
	second := set(time.Hour) // other counts, the same Adapt
	must.Do(t, m.Update(context.Background(), second, func() {}))
	after := m.rules.Swap(before) // as one sees it that has just read the rules
	if err := decide(first); !errors.Is(err, ErrStale) {
		t.Fatalf("the error is %v, want ErrStale", err)
	}
	m.rules.Store(after)
	if err := decide(second); err != nil || traffic() != 2 {
		t.Errorf("two events were counted as %d, %v", traffic(), err)
	}
}
