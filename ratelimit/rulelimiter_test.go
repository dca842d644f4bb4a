package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// byRule takes under one rule of several, by its name.
type byRule struct {
	limiterJudge
	rule string
}

func (l *byRule) take(t int64, key string, cost uint64) ratelimit.Decision {
	return mustRule(l.Limiter, l.rule).TakeAt(time.Unix(0, t), cost, key)
}

func (l *byRule) peek(t int64, key string, cost uint64) ratelimit.Decision {
	return mustRule(l.Limiter, l.rule).PeekN(time.Unix(0, t), cost, key)
}

func (l *byRule) reserve(t int64, key string, cost uint64) (ratelimit.Decision, func(int64)) {
	r := mustRule(l.Limiter, l.rule).ReserveAt(time.Unix(0, t), cost, key)
	return r.Decision, func(t int64) { r.SettleAt(time.Unix(0, t), 0) }
}

// slowStore is a memory store that a Limiter does not recognize as one.
type slowStore struct{ ratelimit.Store }

// byRuleAndAlone attacks a rule by its name in a set of others, and alone, and
// returns how the decisions differ, if they do.
func byRuleAndAlone(t testing.TB, rnd *rand.Rand, n int, wrap func(j judge) judge) (o outcome, differs string) {
	r := bannedRule(t, rnd)
	attacked := r
	if r.Limits == nil {
		attacked = limitRule(t, "r", per(max(r.Ban.After, 1), r.Ban.Span))
	}
	a := newAttack(0, attacked)
	a.claims, a.held, a.needed, a.turns = a.claims[:1], 0, false, nil
	c := ratelimit.Config{Budget: 8 << 20, Bans: 10_000}
	if a.setBack = rnd.IntN(2) == 0; a.setBack {
		c.Budget = -1
	}
	r.When.Path = []string{"/nowhere"} // what it matches does not matter
	tight := limitRule(t, "tight", per(1, time.Hour))
	tight.Ban = &ratelimit.Ban{After: 1, Span: time.Hour, For: time.Hour}
	set := mustSet(t, tight, r, limitRule(t, "other", per(0, time.Hour)))
	var byName judge
	if m, err := ratelimit.NewMemory(set, c); err != nil {
		t.Fatal(err)
	} else if rnd.IntN(3) == 0 {
		byName = &byRule{limiterJudge{Limiter: ratelimit.Over(set, slowStore{m})}, r.Name}
	} else {
		byName = &byRule{limiterJudge{Limiter: ratelimit.Over(set, m)}, r.Name}
	}
	r.When = match.When{}
	alone := mustLimiter(t, mustSet(t, r), c)
	tw := &twins{a: wrap(byName), b: &byOutcomes{limiterJudge{Limiter: alone}}}
	o = a.run(rnd, tw, n)
	return o, tw.differs
}

// TestConcurrentRuleLimiter takes, peeks and reserves under one of three rules by its name, and compares each decision with
// that of a limiter with this rule alone.
func TestConcurrentRuleLimiter(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 60
	switch {
	case longForm():
		rounds = 3000
	case testing.Short():
		rounds = 20
	}
	var all outcome
	for range rounds {
		o, differs := byRuleAndAlone(t, rnd, 600, func(j judge) judge { return j })
		if differs != "" {
			t.Fatal(differs)
		}
		all.add(&o)
	}
	if all.refused < all.arrivals/50 || all.allowed < all.arrivals/50 {
		t.Errorf("%d allowed, %d refused: the test has no teeth", all.allowed, all.refused)
	}
}

// TestConcurrentCarelessRuleLimiterIsCaught does the same with a careless one.
func TestConcurrentCarelessRuleLimiterIsCaught(t *testing.T) {
	rnd := randtest.New(t)
	for range 20 {
		if _, differs := byRuleAndAlone(t, rnd, 600, func(j judge) judge { return careless{j} }); differs != "" {
			return
		}
	}
	t.Error("nobody notices")
}

// TestRuleLimiterLive judges now, and leaves other rules and keys alone.
func TestRuleLimiterLive(t *testing.T) {
	both := ratelimit.Rule{Name: "both", Key: mustKey(t, "client", "user"), Limits: []ratelimit.Limit{per(2, time.Hour)}}
	l := mustLimiter(t, mustSet(t, limitRule(t, "client", per(3, time.Hour)), both), ratelimit.Config{})
	byClient, byBoth := mustRule(l, "client"), mustRule(l, "both")
	for i, want := range []uint64{1, 0, 0} {
		if d := byBoth.Take("203.0.113.9", "ada"); d.Allowed != (i < 2) || d.Remaining != want || d.Rule != "both" {
			t.Errorf("take %d: %+v", i, d)
		}
	}
	var e match.Event
	e.SetString(match.Client, "203.0.113.9")
	e.SetString(match.User, "ada")
	if d := l.Take(&e); d.Allowed || d.Rule != "both" {
		t.Errorf("an event of the key is decided %+v", d)
	}
	if d := byClient.Peek("203.0.113.9"); d.Remaining != 2 {
		t.Errorf("the other rule has counted: %+v", d)
	}
	r := byClient.Reserve(2, "203.0.113.9")
	if !r.Decision.Allowed || len(r.Outcomes) != 1 || r.Outcomes[0].Rule != 0 || r.Outcomes[0].Set != l.Set() {
		t.Errorf("reserved %+v", r.Decision)
	}
	if err := r.Settle(1); err != nil {
		t.Error(err)
	}
	if d := byClient.Peek("203.0.113.9"); d.Remaining != 1 {
		t.Errorf("after a reservation of 2 that cost 1: %+v", d)
	}
	if err := byBoth.Reset("203.0.113.9", "ada"); err != nil {
		t.Error(err)
	}
	if d := byBoth.Peek("203.0.113.9", "ada"); d.Remaining != 1 {
		t.Errorf("after a reset: %+v", d)
	}
	if d := byClient.Peek("203.0.113.9"); d.Remaining != 1 {
		t.Errorf("after a reset of the other rule: %+v", d)
	}
}

// TestRuleLimiterAllow takes keys whose client is on the allow list, at every position in a key and folded.
func TestRuleLimiterAllow(t *testing.T) {
	key := func(fields ...string) match.Key {
		k := must.Get(match.NewKey(match.Fold{IPv6: 64}, fields...))(t)
		return k
	}
	zero := []ratelimit.Limit{per(0, time.Hour)}
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2001:db9::/128"),
	}},
		ratelimit.Rule{Name: "client", Key: key("client"), Limits: zero},
		ratelimit.Rule{Name: "user,client", Key: key("user", "client"), Limits: zero},
		ratelimit.Rule{Name: "user", Key: key("user"), Limits: zero},
	))(t)
	l := mustLimiter(t, set, ratelimit.Config{})
	for _, c := range []struct {
		rule    string
		values  []string
		allowed bool
	}{
		{"client", []string{"10.1.2.3"}, true},
		{"client", []string{"11.1.2.3"}, false},
		{"client", []string{"2001:db8::1"}, true},
		{"client", []string{"2001:db8:1:2::/64"}, true},
		{"client", []string{"2001:db9::1"}, false}, // its /64 is not
		{"client", []string{"a/b"}, false},
		{"user,client", []string{"ada", "10.1.2.3"}, true},
		{"user,client", []string{"10.1.2.3", "ada"}, false},
		{"user", []string{"10.1.2.3"}, false},
	} {
		r := mustRule(l, c.rule)
		for range 2 { // without a record, and with one
			if d := r.Take(c.values...); d.Allowed != c.allowed || d.Unmatched {
				t.Errorf("%s %q: %+v", c.rule, c.values, d)
			}
			if d := r.Peek(c.values...); d.Allowed != c.allowed {
				t.Errorf("peek %s %q: %+v", c.rule, c.values, d)
			}
		}
	}
}

// TestVerbsAllow judges clients on the allow list with every verb: they are allowed and
// not counted, under one rule and several.
func TestVerbsAllow(t *testing.T) {
	client := must.Get(match.NewKey(match.Fold{IPv6: 64}, "client"))(t)
	rules := []ratelimit.Rule{
		{Name: "one", Key: client, Limits: []ratelimit.Limit{per(1, time.Hour)}},
		{Name: "two", Key: client, Algorithm: ratelimit.Fixed, Limits: []ratelimit.Limit{per(1, time.Hour)}},
	}
	for n := range rules {
		set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"),
		}}, rules[:n+1]...))(t)
		l := mustLimiter(t, set, ratelimit.Config{})
		last := mustRule(l, rules[n].Name)
		for key, allowed := range map[string]bool{"10.1.2.3": true, "2001:db8:1:2::3": true, "192.0.2.1": false, "2001:db9::1": false} {
			e := keyEvent(l, key)
			l.Take(e)
			for name, d := range map[string]ratelimit.Decision{
				"Take": l.Take(e), "TakeAt": l.TakeAt(l.Now(), e, 1), "Peek": l.Peek(e), "Reserve": l.Reserve(e, 1).Decision,
				"RuleLimiter.Take": last.Take(key), "RuleLimiter.Reserve": last.Reserve(1, key).Decision,
			} {
				if d.Allowed != allowed || allowed && d.Rule != "" {
					t.Errorf("%d rules, %s(%q): %+v", n+1, name, key, d)
				}
			}
		}
		for i, s := range l.Stats().Rules {
			if s.Keys != 2 {
				t.Errorf("%d rules, rule %d has counted %d keys, want 2", n+1, i, s.Keys)
			}
		}
	}
}

// TestConcurrentRuleLimiterUpdate takes by name while rules come and go: each take is decided by a rule of that name, or
// returns that there is none.
func TestConcurrentRuleLimiterUpdate(t *testing.T) {
	with := mustSet(t, limitRule(t, "a", per(1e6, time.Hour)), limitRule(t, "b", per(2e6, time.Hour)))
	without := mustSet(t, limitRule(t, "b", per(2e6, time.Hour)))
	l := mustLimiter(t, with, ratelimit.Config{})
	a, b := mustRule(l, "a"), mustRule(l, "b")
	var wg sync.WaitGroup
	done := make(chan struct{})
	for g := range 2 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				d := a.Take(strconv.Itoa(g*1000 + n%100))
				if gone, _ := d.Err.(*ratelimit.RuleError); gone == nil && (d.Rule != "a" || d.Limit != 1e6) || gone != nil && (gone.Name != "a" || !d.Allowed || !d.Unmatched) {
					t.Errorf("a: %+v", d)
					return
				}
				if d := b.Take("k"); d.Err != nil || d.Rule != "b" || d.Limit != 2e6 {
					t.Errorf("b: %+v", d)
					return
				}
				if _, err := b.Refund(1, "k"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 40 {
		set := without
		if i%2 == 1 {
			set = with
		}
		if err := l.Update(set); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
}

// TestOutcomesNameTheirSet changes the rules between two events.
func TestOutcomesNameTheirSet(t *testing.T) {
	one := mustSet(t, limitRule(t, "a", per(5, time.Second)))
	two := mustSet(t, limitRule(t, "b", per(5, time.Second)), limitRule(t, "a", per(5, time.Second)))
	l := mustLimiter(t, one, ratelimit.Config{})
	for _, set := range []*ratelimit.Set{one, two} {
		must.Do(t, l.Update(set))
		_, judged := l.Judge(at(0), keyEvent(l, "k"), 1, nil)
		for _, o := range append(judged, reserveN(l, at(0), keyEvent(l, "k"), 1).Outcomes...) {
			if o.Set != set {
				t.Errorf("an outcome of rule %d is of another set", o.Rule)
			}
		}
	}
}

// TestRuleLimiterDoNotAllocate takes and gives back under one of several rules.
func TestRuleLimiterDoNotAllocate(t *testing.T) {
	bans := limitRule(t, "banned", per(1000, time.Second))
	bans.Ban = &ratelimit.Ban{After: 5000, Span: time.Second, For: time.Second}
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		limitRule(t, "a", per(3, time.Second)), bans, limitRule(t, "two", per(1000, time.Second), per(40, time.Second)),
		ratelimit.Rule{Name: "both", Key: mustKey(t, "client", "user"), Limits: []ratelimit.Limit{per(2, time.Hour)}}))(t)
	l := mustLimiter(t, set, ratelimit.Config{})
	a, banned, two, both := mustRule(l, "a"), mustRule(l, "banned"), mustRule(l, "two"), mustRule(l, "both")
	now := int64(0)
	for name, verb := range map[string]func(){
		"Rule":       func() { mustRule(l, "banned").Take("203.0.113.9") },
		"Take":       func() { banned.Take("203.0.113.9") },
		"Take IPv6":  func() { banned.Take("2001:db8::1") },
		"TakeAt":     func() { a.TakeAt(at(now), 1, "k") },
		"two limits": func() { two.TakeAt(at(now), 1, "k") },
		"Peek":       func() { two.Peek("k") },
		"Refund":     func() { two.Refund(1, "k") },
		"Reset":      func() { two.Reset("k") },
		"two values": func() { both.TakeAt(at(now), 1, "192.0.2.1", "ada") },
		"an event of one field": func() {
			var e match.Event
			e.SetString(match.Client, "192.0.2.1")
			l.TakeAt(at(now), &e, 1)
		},
	} {
		step := func() {
			now += 20
			verb()
		}
		for range 500 {
			step()
		}
		if n := testing.AllocsPerRun(500, step); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkRule takes by name in sets of that many rules.
func BenchmarkRule(b *testing.B) {
	for _, n := range []int{1, 8, 1000} {
		var rules []ratelimit.Rule
		for i := range n {
			rules = append(rules, limitRule(b, fmt.Sprint("per-client-", i), per(60, time.Minute)))
		}
		l := mustLimiter(b, mustSet(b, rules...), ratelimit.Config{Budget: 1 << 30})
		name := rules[n/2].Name
		for _, by := range []string{"Rule", "Take"} {
			if by == "Take" && n > 1 {
				continue
			}
			r := mustRule(l, name)
			b.Run(fmt.Sprintf("by=%s/rules=%d", by, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if by == "Take" {
						r.Take("203.0.113.9")
					} else {
						mustRule(l, name).Take("203.0.113.9")
					}
				}
			})
		}
	}
}
