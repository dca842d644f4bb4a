package ratelimit_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/store/storetest"
	"github.com/lately-go/lately/ratelimit"
)

// A broken store is a memory store with one mistake that real stores have made. Each of its cases must find it.
type broken struct {
	mistake string
	open    func(m *ratelimit.Memory, set *ratelimit.Set) ratelimit.Store
	cases   string
	config  storetest.Config
}

// TestBrokenStores checks that the cases meant for a mistake fail, and that each case finds
// some mistake.
func TestBrokenStores(t *testing.T) {
	found := map[string]bool{}
	for _, b := range slices.Concat(brokenDecisions, brokenTimes, brokenOthers) {
		t.Run(b.mistake, func(t *testing.T) {
			open := func(t testing.TB, set *ratelimit.Set) ratelimit.Store {
				return b.open(memoryStore(t, set).(*ratelimit.Memory), set)
			}
			for name := range strings.FieldsSeq(b.cases) {
				c := caseNamed(t, name)
				if err := c.Check(t, open, b.config); err == nil {
					t.Errorf("case %s passes", name)
				}
				found[name] = true
			}
		})
	}
	for _, c := range storetest.Cases() {
		if !found[c.Name] {
			t.Errorf("case %s finds no broken store", c.Name)
		}
	}
}

func caseNamed(t *testing.T, name string) storetest.Case {
	t.Helper()
	for _, c := range storetest.Cases() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("unknown case %s", name)
	return storetest.Case{}
}

// deciding returns a store that decides by decide.
func deciding(decide func(m *ratelimit.Memory, r *ratelimit.Request) error) func(*ratelimit.Memory, *ratelimit.Set) ratelimit.Store {
	return func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
		return &bent{Memory: m, decide: func(r *ratelimit.Request) error { return decide(m, r) }}
	}
}

// asking returns a store that receives changed requests: change gets a copy of each.
func asking(change func(r *ratelimit.Request)) func(*ratelimit.Memory, *ratelimit.Set) ratelimit.Store {
	return deciding(func(m *ratelimit.Memory, r *ratelimit.Request) error {
		other := *r
		other.Subjects = slices.Clone(r.Subjects)
		change(&other)
		err := m.Decided(&other)
		r.Now = other.Now
		for i, s := range other.Subjects {
			s.Outcome.Rule = r.Subjects[i].Outcome.Rule
			r.Subjects[i].Outcome, r.Subjects[i].Mark = s.Outcome, s.Mark
		}
		return err
	})
}

// afterwards returns a store that changes its outcomes by bend.
func afterwards(bend func(r *ratelimit.Request, o *ratelimit.StoreOutcome)) func(*ratelimit.Memory, *ratelimit.Set) ratelimit.Store {
	return deciding(func(m *ratelimit.Memory, r *ratelimit.Request) error {
		err := m.Decided(r)
		for i := range r.Subjects {
			bend(r, &r.Subjects[i].Outcome)
		}
		return err
	})
}

// settling returns a store that settles by settle.
func settling(settle func(m *ratelimit.Memory, s *ratelimit.Settlement) error) func(*ratelimit.Memory, *ratelimit.Set) ratelimit.Store {
	return func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
		return &bent{Memory: m, settle: func(s *ratelimit.Settlement) error { return settle(m, s) }}
	}
}

// allowed reports whether no enforced rule refuses r.
func allowed(r *ratelimit.Request) bool {
	return !slices.ContainsFunc(r.Subjects, func(s ratelimit.Subject) bool {
		return s.Outcome.Refused && !r.Set.Rules()[s.Outcome.Rule].Shadow
	})
}

// chargeAll charges r without judging it.
func chargeAll(m *ratelimit.Memory, r *ratelimit.Request) error {
	for i := range r.Subjects {
		o := &r.Subjects[i].Outcome
		o.Charged = len(r.Set.Rules()[o.Rule].Limits) > 0 && !o.Refused
	}
	return m.Settle(context.Background(), &ratelimit.Settlement{Set: r.Set, At: r.Now, Now: r.Now, Actual: r.Cost, Subjects: r.Subjects})
}

// apart decides each subject of r alone.
func apart(m *ratelimit.Memory, r *ratelimit.Request) error {
	for i := range r.Subjects {
		one := *r
		one.Subjects = r.Subjects[i : i+1]
		if err := m.Decided(&one); err != nil {
			return err
		}
		r.Now = one.Now
		runtime.Gosched() // as between two round trips
	}
	return nil
}

// compensating decides each subject alone, takes back what was charged if one refuses, and returns what is left then.
func compensating(m *ratelimit.Memory, r *ratelimit.Request) error {
	if err := apart(m, r); err != nil || allowed(r) {
		return err
	}
	back := ratelimit.Settlement{Set: r.Set, At: r.Now, Now: r.Now, Charged: r.Cost, Subjects: r.Subjects}
	if err := m.Settle(context.Background(), &back); err != nil {
		return err
	}
	for i := range r.Subjects {
		if !r.Subjects[i].Outcome.Refused {
			look := *r
			look.Cost, look.Peek, look.Subjects = 0, true, r.Subjects[i:i+1]
			if err := m.Decided(&look); err != nil {
				return err
			}
		}
	}
	return nil
}

var brokenDecisions = []broken{
	{
		mistake: "checks, then adds",
		open: deciding(func(m *ratelimit.Memory, r *ratelimit.Request) error {
			look := r.Peek
			r.Peek = true
			err := m.Decided(r)
			if r.Peek = look; look || err != nil || !allowed(r) {
				return err
			}
			runtime.Gosched()
			return chargeAll(m, r)
		}),
		cases: "ConcurrentTakes ConcurrentRules ConcurrentSettles",
	},
	{
		mistake: "charges each rule alone",
		open:    deciding(apart),
		cases:   "RefusedElsewhere AllOrNothing Algorithms Combination ConcurrentRules PartialCharge ClockJumps",
	},
	{
		mistake: "takes back what it should not have charged",
		open:    deciding(compensating),
		cases:   "PartialCharge",
	},
	{
		mistake: "charges what it refuses",
		open: deciding(func(m *ratelimit.Memory, r *ratelimit.Request) error {
			err := m.Decided(r)
			if err != nil || r.Peek || allowed(r) {
				return err
			}
			subjects := slices.Clone(r.Subjects)
			defer func() { r.Subjects = subjects }()
			r.Subjects = slices.Clone(subjects)
			for i := range r.Subjects {
				r.Subjects[i].Outcome.Refused = false
			}
			return chargeAll(m, r)
		}),
		cases: "AllOrNothing Algorithms Combination",
	},
	{
		mistake: "charges a peek",
		open:    asking(func(r *ratelimit.Request) { r.Peek = false }),
		cases:   "Algorithms",
	},
	{
		mistake: "has 32 bits for a cost",
		open:    asking(func(r *ratelimit.Request) { r.Cost = uint64(uint32(r.Cost)) }),
		cases:   "Algorithms",
	},
	{
		mistake: "has 53 bits for a cost, and a sign",
		open: asking(func(r *ratelimit.Request) {
			if int64(r.Cost) < 0 {
				r.Cost = 0
			}
		}),
		cases: "Algorithms",
	},
	{
		mistake: "charges 1 for a cost of 0",
		open:    asking(func(r *ratelimit.Request) { r.Cost = max(r.Cost, 1) }),
		cases:   "Algorithms",
	},
	{
		mistake: "rounds waiting times down to seconds",
		open: afterwards(func(_ *ratelimit.Request, o *ratelimit.StoreOutcome) {
			if o.RetryAfter > 0 {
				o.RetryAfter = o.RetryAfter.Truncate(time.Second)
			}
		}),
		cases: "Algorithms",
	},
	{
		mistake: "tells a waiting time where none helps",
		open: afterwards(func(_ *ratelimit.Request, o *ratelimit.StoreOutcome) {
			if o.RetryAfter == ratelimit.Never {
				o.RetryAfter = time.Second
			}
		}),
		cases: "Algorithms",
	},
	{
		mistake: "remaining one too many",
		open:    afterwards(func(_ *ratelimit.Request, o *ratelimit.StoreOutcome) { o.Remaining = min(o.Remaining+1, o.Limit) }),
		cases:   "Algorithms UpdateKeeps",
	},
	{
		mistake: "counts no refused events",
		open: deciding(func(m *ratelimit.Memory, r *ratelimit.Request) error {
			look := *r
			look.Peek, look.Subjects = true, slices.Clone(r.Subjects)
			if err := m.Decided(&look); err != nil || allowed(&look) {
				return m.Decided(r)
			}
			copy(r.Subjects, look.Subjects)
			return nil
		}),
		cases: "Algorithms Combination ConcurrentBan",
	},
}

var brokenTimes = []broken{
	{
		mistake: "its clock stands still",
		open: func(m *ratelimit.Memory, set *ratelimit.Set) ratelimit.Store {
			var first atomic.Int64
			return asking(func(r *ratelimit.Request) {
				first.CompareAndSwap(0, r.Now)
				r.Now = first.Load()
			})(m, set)
		},
		cases: "Algorithms Combination ClockJumps",
	},
	{
		mistake: "deletes all counts when the clock goes back",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			var newest atomic.Int64
			return &bent{Memory: m, decide: func(r *ratelimit.Request) error {
				if r.Now < newest.Load() {
					for _, s := range r.Subjects {
						a := ratelimit.Adjustment{Change: ratelimit.Reset, Set: r.Set, Rule: s.Outcome.Rule, Key: s.Key}
						if err := m.Adjust(context.Background(), &a); err != nil {
							return err
						}
					}
				}
				newest.Store(r.Now)
				return m.Decided(r)
			}}
		},
		cases: "ClockJumps",
	},
	{
		mistake: "has one newest time for all keys",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			var mu sync.Mutex
			newest := int64(-1 << 63)
			return &bent{Memory: m, decide: func(r *ratelimit.Request) error {
				mu.Lock()
				defer mu.Unlock()
				newest = max(newest, r.Now)
				r.Now = newest
				return m.Decided(r)
			}}
		},
		cases: "ClockJumps",
	},
	{
		mistake: "has 62 bits for a time",
		open:    asking(func(r *ratelimit.Request) { r.Now = r.Now << 2 >> 2 }),
		cases:   "Algorithms",
	},
	{
		mistake: "has a clock of its own that goes back",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			var n atomic.Int64
			return &bent{Memory: m, decide: func(r *ratelimit.Request) error {
				err := m.Decided(r)
				r.Now = time.Now().UnixNano() - n.Add(1)%2*int64(time.Second)
				return err
			}}
		},
		cases:  "Algorithms",
		config: storetest.Config{SetClock: func(int64) {}},
	},
	{
		mistake: "counts a little too long",
		open:    asking(func(r *ratelimit.Request) { r.Now -= r.Now % int64(10*time.Millisecond) }),
		cases:   "Algorithms Combination UpdateCarries",
	},
}
