package ratelimit

import (
	"errors"
	"net/netip"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/lately-go/lately/match"
)

// TakeRule judges an event of a key now under the rule of that name alone, and
// counts it once: no other rule hears of it, and what the rule matches does not
// matter. It is short for TakeRuleAt(now, rule, key, 1).
//
// key is as the rule's key has it: of one field its bytes, of several what
// [match.Key.Join] makes. A key whose client is on the allow list is allowed and not
// counted. The error is a [*RuleError] if there is no such rule; nothing has
// happened then. What else may go wrong stands in the Decision, as in that of Take.
// The cost is that of TakeKey for one rule, and a map's for the name.
func (l *Limiter) TakeRule(rule, key string) (d Decision, err error) {
	set := l.set.Load()
	i, ok := set.names[rule]
	if ok && l.memory != nil && !set.allowsKey(i, key) && l.memory.take(&d, set, i, l, 0, key, 1) {
		return d, nil
	}
	return l.judgeRule(&ask{now: l.now(), rule: rule, key: key, cost: 1})
}

// TakeRuleAt is TakeRule at time t with a cost.
func (l *Limiter) TakeRuleAt(t time.Time, rule, key string, cost uint64) (d Decision, err error) {
	set := l.set.Load()
	i, ok := set.names[rule]
	if ok && l.memory != nil && !set.allowsKey(i, key) && l.memory.take(&d, set, i, nil, nanos(t), key, cost) {
		return d, nil
	}
	return l.judgeRule(&ask{now: nanos(t), rule: rule, key: key, cost: cost})
}

// PeekRule says what TakeRule would, and changes nothing.
func (l *Limiter) PeekRule(rule, key string) (Decision, error) {
	return l.judgeRule(&ask{now: l.now(), rule: rule, key: key, cost: 1, look: true})
}

// PeekRuleAt says what TakeRuleAt would, and changes nothing.
func (l *Limiter) PeekRuleAt(t time.Time, rule, key string, cost uint64) (Decision, error) {
	return l.judgeRule(&ask{now: nanos(t), rule: rule, key: key, cost: cost, look: true})
}

// judgeRule is judge under one rule.
func (l *Limiter) judgeRule(a *ask) (Decision, error) {
	if err := l.Set().has(a.rule); err != nil {
		return Decision{}, err
	}
	d, _ := l.judge(a, nil)
	if err := a.set.has(a.rule); err != nil {
		return Decision{}, err // it has gone meanwhile
	}
	return d, nil
}

// has returns the error for a rule that s has not.
func (s *Set) has(rule string) error {
	if _, ok := s.names[rule]; !ok {
		return s.NoRule(rule)
	}
	return nil
}

// ReserveRule is TakeRule with a cost that is known only later: see [Reservation].
// The error is a [*RuleError] if there is no such rule, and the Reservation nil.
func (l *Limiter) ReserveRule(rule, key string, cost uint64) (*Reservation, error) {
	return l.reserveRule(&ask{now: l.now(), rule: rule, key: key, cost: cost})
}

// ReserveRuleAt is ReserveRule at time t.
func (l *Limiter) ReserveRuleAt(t time.Time, rule, key string, cost uint64) (*Reservation, error) {
	return l.reserveRule(&ask{now: nanos(t), rule: rule, key: key, cost: cost})
}

func (l *Limiter) reserveRule(a *ask) (*Reservation, error) {
	if err := l.Set().has(a.rule); err != nil {
		return nil, err
	}
	r := l.reserve(a)
	if err := a.set.has(a.rule); err != nil {
		return nil, err
	}
	return r, nil
}

// ResetRule forgets what the rule of that name has counted of a key, as
// [Limiter.Reset] does. The error is a [*RuleError] or the store's.
func (l *Limiter) ResetRule(rule, key string) error {
	if err := l.Set().has(rule); err != nil {
		return err
	}
	a := ask{rule: rule, key: key}
	if err := l.reset(&a); err != nil {
		return err
	}
	return a.set.has(rule)
}

// RefundRule gives back now up to n of what a key has used under the rule of that
// name, and returns how much that was: in each limit of the rule the oldest of what
// it counts, and of several limits the least is returned. It is for callers who
// have taken and have no [Reservation] to settle: whose own upload failed, say.
//
// Nobody says which events are meant, so the oldest are taken, which would have
// left the window first. There is no credit in it: whichever n were meant, at no
// later time is there more room than if just those had never come. Never more is
// admitted in a window than the rule says, and what was given back in it. Of a
// bucket (GCRA and its like) whole units are taken; what has drained of the oldest
// is not given back. What is gone from the window gives nothing, nor what is
// counted in a sketch when the budget is spent, nor counts that were cut because they
// went beyond what is kept: a bucket that was charged more than it holds gives nothing
// back until it has been empty. Of [InFlight] as many end as are given back. Hits and
// refusals that count toward a ban stay, and a ban that holds goes on.
//
// An event that is given back so and by its Reservation as well is given back
// twice. The error is a [*RuleError] or the store's.
func (l *Limiter) RefundRule(rule, key string, n uint64) (uint64, error) {
	return l.refundRule(l.now(), rule, key, n)
}

// RefundRuleAt is RefundRule at time t.
func (l *Limiter) RefundRuleAt(t time.Time, rule, key string, n uint64) (uint64, error) {
	return l.refundRule(nanos(t), rule, key, n)
}

func (l *Limiter) refundRule(now int64, rule, key string, n uint64) (uint64, error) {
	sc := l.scratch.Get().(*scratch)
	defer l.scratch.Put(sc)
	for {
		set := l.set.Load()
		i, ok := set.names[rule]
		if !ok {
			return 0, set.NoRule(rule)
		}
		sc.refund = Refund{Set: set, Rule: i, Key: viewed(key), Now: now, N: n}
		if err := l.store.Refund(&sc.refund); !errors.Is(err, ErrStale) {
			return sc.refund.Taken, err
		}
		runtime.Gosched()
	}
}

// allowsKey reports whether the client in a key of the i-th rule is on the allow
// list: an address that is, or a prefix of which all addresses are.
func (s *Set) allowsKey(i int, key string) bool {
	return len(s.allow) > 0 && s.allowsClient(i, key)
}

func (s *Set) allowsClient(i int, key string) bool {
	at, k := 0, &s.rules[i].Key
	for v := range k.Parts(viewed(key)) {
		if at == s.clients[i] {
			return s.allowsValue(k.ClientOf(at, v))
		}
		at++
	}
	return false
}

func (s *Set) allowsValue(client []byte) bool {
	if match.InPrefixes(s.allow, client) {
		return true
	}
	text := unsafe.String(unsafe.SliceData(client), len(client)) // only read
	if !strings.Contains(text, "/") {
		return false
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return false
	}
	for _, a := range s.allow {
		if a.Bits() <= p.Bits() && a.Contains(p.Addr()) {
			return true
		}
	}
	return false
}
