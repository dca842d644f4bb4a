package ratelimit_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/store/storetest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// withKeys returns subjects with keys of their own.
func withKeys(subjects []ratelimit.Subject) []ratelimit.Subject {
	all := slices.Clone(subjects)
	for i := range all {
		all[i].Key = bytes.Clone(all[i].Key)
	}
	return all
}

// rekeyed returns a store that counts by other keys.
func rekeyed(change func(key []byte) []byte) func(*ratelimit.Memory, *ratelimit.Set) ratelimit.Store {
	return asking(func(r *ratelimit.Request) {
		for i := range r.Subjects {
			r.Subjects[i].Key = change(r.Subjects[i].Key)
		}
	})
}

// forgetful returns a store that begins with nothing counted at each update, and keeps only the bans of rules for which
// keep returns true.
func forgetful(keep bool) func(*ratelimit.Memory, *ratelimit.Set) ratelimit.Store {
	return func(m *ratelimit.Memory, set *ratelimit.Set) ratelimit.Store {
		b := &bent{Memory: m}
		b.update = func(set *ratelimit.Set, published func()) error {
			fresh, err := ratelimit.NewMemory(set, ratelimit.Config{})
			if err != nil {
				return err
			}
			for ban := range b.Memory.BanRecords() {
				if keep {
					fresh.Ban(context.Background(), ban) // some rules were removed
				}
			}
			b.Memory = fresh
			published()
			return nil
		}
		return b
	}
}

var brokenOthers = []broken{
	{
		mistake: "counts requests that wait for their answer",
		open: asking(func(r *ratelimit.Request) {
			for i := range r.Subjects {
				r.Subjects[i].Look = false
			}
		}),
		cases: "Answers",
	},
	{
		mistake: "judges an answer as it judges an event",
		open:    asking(func(r *ratelimit.Request) { r.Answer = false }),
		cases:   "Answers",
	},
	{
		mistake: "does not count refusals of requests that wait for their answer",
		open:    asking(func(r *ratelimit.Request) { r.Peek = r.Peek || r.Looks }),
		cases:   "Answers",
	},
	{
		mistake: "charges what was refused before",
		open:    asking(func(r *ratelimit.Request) { r.Refused = false }),
		cases:   "Refused",
	},
	{
		mistake: "counts nothing of what was refused before",
		open:    asking(func(r *ratelimit.Request) { r.Peek = r.Peek || r.Refused }),
		cases:   "Refused",
	},
	{
		mistake: "gives back twice",
		open: settling(func(m *ratelimit.Memory, s *ratelimit.Settlement) error {
			if err := m.Settle(context.Background(), s); err != nil {
				return err
			}
			return m.Settle(context.Background(), s)
		}),
		cases: "Algorithms Combination UpdateSettle",
	},
	{
		mistake: "refunds at the present time",
		open: settling(func(m *ratelimit.Memory, s *ratelimit.Settlement) error {
			now := *s
			now.At = s.Now
			return m.Settle(context.Background(), &now)
		}),
		cases: "Algorithms",
	},
	{
		mistake: "gives back what was not charged",
		open: settling(func(m *ratelimit.Memory, s *ratelimit.Settlement) error {
			all := *s
			all.Subjects = slices.Clone(s.Subjects)
			for i := range all.Subjects {
				all.Subjects[i].Outcome.Charged = true
			}
			return m.Settle(context.Background(), &all)
		}),
		cases: "Algorithms",
	},
	{
		mistake: "gives back what came last",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			b, last := &bent{Memory: m}, ratelimit.Request{}
			b.decide = func(r *ratelimit.Request) error {
				err := m.Decided(r)
				if allowed(r) && !r.Peek && r.Cost > 0 {
					last = *r
					last.Subjects = withKeys(r.Subjects)
				}
				return err
			}
			b.adjust = func(r *ratelimit.Adjustment) error {
				i := slices.IndexFunc(last.Subjects, func(s ratelimit.Subject) bool {
					return s.Outcome.Rule == r.Rule && bytes.Equal(s.Key, r.Key)
				})
				if i < 0 || r.Change != ratelimit.Refund {
					return m.Adjust(context.Background(), r)
				}
				r.Taken = min(r.N, last.Cost)
				return m.Settle(context.Background(), &ratelimit.Settlement{
					Set: r.Set, At: last.Now, Now: r.Now, Charged: r.Taken, Subjects: last.Subjects[i : i+1],
				})
			}
			return b
		},
		cases: "RefundOldest",
	},
	{
		mistake: "says that it has given back all",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			return &bent{Memory: m, adjust: func(r *ratelimit.Adjustment) error {
				err := m.Adjust(context.Background(), r)
				r.Taken = r.N
				return err
			}}
		},
		cases: "RefundOldest",
	},
	{
		mistake: "opens another window for another N",
		open: asking(func(r *ratelimit.Request) {
			for i := range r.Subjects {
				s := &r.Subjects[i]
				s.Key = fmt.Appendf(nil, "%d of %s", s.N, s.Key)
			}
		}),
		cases: "LimitOfEvent",
	},
	{
		mistake: "ignores the N of an event",
		open: asking(func(r *ratelimit.Request) {
			for i := range r.Subjects {
				r.Subjects[i].N = 0
			}
		}),
		cases: "LimitOfEvent",
	},
	{
		mistake: "wraps when it charges later",
		open: settling(func(m *ratelimit.Memory, s *ratelimit.Settlement) error {
			if s.Actual > math.MaxUint32 {
				s.Actual = 0
			}
			return m.Settle(context.Background(), s)
		}),
		cases: "ChargeLater",
	},
	{
		mistake: "resets all rules",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			return &bent{Memory: m, adjust: func(a *ratelimit.Adjustment) error {
				if a.Change != ratelimit.Reset {
					return m.Adjust(context.Background(), a)
				}
				for i := range a.Set.Rules() {
					a.Rule = i
					if err := m.Adjust(context.Background(), a); err != nil {
						return err
					}
				}
				return nil
			}}
		},
		cases: "Reset",
	},
	{
		mistake: "gives back after a reset",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			b := &bent{Memory: m}
			b.settle = func(s *ratelimit.Settlement) error {
				look := &ratelimit.Request{Set: s.Set, Now: s.Now, Peek: true, Subjects: slices.Clone(s.Subjects)}
				if err := m.Decided(look); err != nil {
					return err
				}
				for i := range s.Subjects {
					s.Subjects[i].Mark = look.Subjects[i].Mark
				}
				return m.Settle(context.Background(), s)
			}
			return b
		},
		cases: "SettleAfterReset Reset",
	},
	{
		mistake: "truncates keys at a NUL",
		open:    rekeyed(func(key []byte) []byte { key, _, _ = bytes.Cut(key, []byte{0}); return key }),
		cases:   "Keys",
	},
	{
		mistake: "truncates keys at 64 bytes",
		open:    rekeyed(func(key []byte) []byte { return key[:min(len(key), 64)] }),
		cases:   "Keys",
	},
	{
		mistake: "makes keys valid UTF-8",
		open:    rekeyed(func(key []byte) []byte { return bytes.ToValidUTF8(key, []byte("\ufffd")) }),
		cases:   "Keys",
	},
	{
		mistake: "joins names and keys by a colon",
		open: asking(func(r *ratelimit.Request) {
			s := &r.Subjects[0]
			joined := r.Set.Rules()[s.Outcome.Rule].Name + ":" + string(s.Key)
			for i := range r.Set.Rules() {
				if rest, ok := strings.CutPrefix(joined, r.Set.Rules()[i].Name+":"); ok && len(r.Subjects) == 1 {
					s.Outcome.Rule, s.Key = i, []byte(rest)
					break
				}
			}
		}),
		cases: "Keys",
	},
	{
		mistake: "writes later, by keys that it did not copy",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			var behind *ratelimit.Request
			return &bent{Memory: m, decide: func(r *ratelimit.Request) error {
				if behind != nil {
					if err := m.Decided(behind); err != nil {
						return err
					}
					behind = nil
				}
				if !r.Peek {
					later := *r
					later.Subjects = slices.Clone(r.Subjects)
					behind = &later
				}
				look := *r
				look.Peek = true
				err := m.Decided(&look)
				for i := range r.Subjects {
					o := &r.Subjects[i].Outcome
					o.Charged = !r.Peek && r.Cost > 0 && allowed(r)
				}
				return err
			}}
		},
		cases: "Algorithms",
	},
	{
		mistake: "hits during a ban extend it",
		open: deciding(func(m *ratelimit.Memory, r *ratelimit.Request) error {
			err := m.Decided(r)
			for i := range r.Subjects {
				o, rule := &r.Subjects[i].Outcome, r.Set.Rules()[r.Subjects[i].Outcome.Rule]
				if o.Banned && !o.Started && !r.Peek && rule.Ban != nil {
					o.BannedUntil = time.Unix(0, r.Now).Add(rule.Ban.For)
				}
			}
			return err
		}),
		cases: "Combination",
	},
	{
		mistake: "bans are all of one length",
		open: afterwards(func(r *ratelimit.Request, o *ratelimit.StoreOutcome) {
			if o.Started {
				o.BannedUntil = time.Unix(0, r.Now).Add(r.Set.Rules()[o.Rule].Ban.Duration(0))
			}
		}),
		cases: "Combination BanJitter",
	},
	{
		mistake: "holds eight bans",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			var bans []ratelimit.Subject
			return &bent{Memory: m, decide: func(r *ratelimit.Request) error {
				err := m.Decided(r)
				for _, s := range withKeys(r.Subjects) {
					if s.Outcome.Started {
						bans = append(bans, s)
					}
				}
				if len(bans) > 8 {
					m.Unban(context.Background(), r.Set.Rules()[bans[0].Outcome.Rule].Name, bans[0].Key)
					bans = bans[1:]
				}
				return err
			}}
		},
		cases: "ListBans",
	},
	{
		mistake: "the later of two bans holds",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			return &bent{Memory: m, ban: func(b ratelimit.BanRecord) error {
				if _, err := m.Unban(context.Background(), b.Rule, []byte(b.Key[0])); err != nil {
					return err
				}
				return m.Ban(context.Background(), b)
			}}
		},
		cases: "BanByHand",
	},
	{
		mistake: "does not end bans that a rule began",
		open: func(m *ratelimit.Memory, _ *ratelimit.Set) ratelimit.Store {
			return &bent{Memory: m, unban: func(rule string, key []byte) (bool, error) {
				for b := range m.BanRecords() {
					if b.Rule == rule && b.Key[0] == string(key) && b.Source == "rule" {
						return true, nil
					}
				}
				return m.Unban(context.Background(), rule, key)
			}}
		},
		cases: "BanByHand ListBans",
	},
	{
		mistake: "judges under rules that are gone",
		open: func(m *ratelimit.Memory, set *ratelimit.Set) ratelimit.Store {
			b := &bent{Memory: m}
			b.decide = func(r *ratelimit.Request) error {
				asked := r.Set
				r.Set = set
				err := m.Decided(r)
				r.Set = asked
				return err
			}
			b.update = func(s *ratelimit.Set, published func()) error {
				return m.Update(context.Background(), s, func() { set = s; published() })
			}
			return b
		},
		cases: "Stale",
	},
	{
		mistake: "loses all at an update",
		open:    forgetful(false),
		cases:   "UpdateKeeps UpdateCarries UpdateThereAndBack UpdateSettle",
	},
	{
		mistake: "loses all but the bans at an update",
		open:    forgetful(true),
		cases:   "UpdateKeeps",
	},
	{
		mistake: "loses what is counted during an update",
		open: func(m *ratelimit.Memory, set *ratelimit.Set) ratelimit.Store {
			var mu sync.RWMutex
			b := &bent{Memory: m}
			b.decide = func(r *ratelimit.Request) error {
				mu.RLock()
				in := b.Memory
				mu.RUnlock()
				return in.Decided(r)
			}
			b.update = func(s *ratelimit.Set, published func()) error {
				fresh, err := ratelimit.NewMemory(s, ratelimit.Config{})
				if err != nil {
					return err
				}
				mu.Lock()
				b.Memory = fresh
				mu.Unlock()
				runtime.Gosched()
				published()
				return nil
			}
			return b
		},
		cases: "ConcurrentUpdates",
	},
}

// TestCompensates holds a store to its own claim: a store that takes back what it should not have charged passes where that
// is allowed.
func TestCompensates(t *testing.T) {
	open := func(t testing.TB, set *ratelimit.Set) ratelimit.Store {
		return deciding(compensating)(memoryStore(t, set).(*ratelimit.Memory), set)
	}
	for name := range strings.FieldsSeq("AllOrNothing ConcurrentTakes ConcurrentRules PartialCharge") {
		if err := caseNamed(t, name).Check(t, open, storetest.Config{Compensates: true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOwnClock runs all cases against a store that judges at a clock of its own.
func TestOwnClock(t *testing.T) {
	var now atomic.Int64
	open := func(t testing.TB, set *ratelimit.Set) ratelimit.Store {
		m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{Resolution: time.Microsecond}))(t)
		return deciding(func(m *ratelimit.Memory, r *ratelimit.Request) error {
			r.Now = now.Load()
			return m.Decided(r)
		})(m, set)
	}
	storetest.Run(t, open, storetest.Config{SetClock: now.Store, Resolution: time.Microsecond})
}
