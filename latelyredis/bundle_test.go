package latelyredis_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// askEach has a store decide in one batch about n subjects, each under each of the rules alone.
func askEach(s *latelyredis.Store, rules *ratelimit.Set, n int) (batch []*latelyredis.Request) {
	for i := range n {
		for rule := range rules.Rules() {
			subject := about(rule, fmt.Sprint("k", i))
			batch = append(batch, &latelyredis.Request{Set: rules, Cost: uint64(i%3 + 1), Subjects: []latelyredis.Subject{subject}})
		}
	}
	s.Decide(context.Background(), batch)
	return batch
}

// eachRules have a rule for each script that decides about several subjects.
func eachRules(t testing.TB) *ratelimit.Set {
	t.Helper()
	path := match.MustKey("path")
	return set(t, limited("bucket", path, ratelimit.GCRA, 10), limited("times", path, ratelimit.Exact, 10), limited("slots", path, ratelimit.Sliding, 1000),
		limited("two", path, ratelimit.TwoBucket, 10))
}

// TestBundleFails replaces some of the records of a command by other values: these decisions
// fail, about a damaged record once, and all others are made once.
func TestBundleFails(t *testing.T) {
	client := redis(t).client(t)
	rules, config := eachRules(t), prefixed()
	store := newStore(t, client, rules, config)
	failed := map[string]int{} // in how many rounds
	for rule := range rules.Rules() {
		name := func(i int) string { return fmt.Sprintf("%s{path=k%d}:%s", config.Prefix, i, rules.Rules()[rule].Name) }
		do(t, client, "RPUSH", name(3), "x")
		do(t, client, "SET", name(5), "\x01")
		do(t, client, "SET", name(7), string(rune(2*latelyredis.RecordForm))+"of a newer form")
		for i, rounds := range map[int]int{3: 2, 5: 1, 7: 2} {
			failed[fmt.Sprint(rule, "k", i)] = rounds
		}
	}
	for round := range 2 {
		for _, r := range askEach(store, rules, 20) {
			sub := r.Subjects[0]
			name := fmt.Sprint(sub.Outcome.Rule, string(sub.Key))
			fails, left := round < failed[name], rules.Rules()[sub.Outcome.Rule].Limits[0].N-r.Cost*uint64(round+1-failed[name])
			if fails != (r.Err != nil) || r.Err == nil && (sub.Outcome.Refused || sub.Outcome.Remaining != left) {
				t.Errorf("round %d, %s, cost %d: %v, %+v, want an error: %v, or %d left", round, name, r.Cost, r.Err, sub.Outcome, fails, left)
			}
		}
	}
}

// TestBundleRepairs changes a limit: records of before are in the same command as new ones.
func TestBundleRepairs(t *testing.T) {
	rules := eachRules(t)
	store := newStore(t, redis(t).client(t), rules, prefixed())
	askEach(store, rules, 10)
	more := eachRules(t)
	for i := range more.Rules() {
		more.Rules()[i].Limits[0].N++
	}
	must.Do(t, store.Update(context.Background(), more, func() {}))
	for i, r := range askEach(store, more, 20) {
		left := more.Rules()[r.Subjects[0].Outcome.Rule].Limits[0].N - r.Cost
		if i/len(more.Rules()) < 10 {
			left -= r.Cost
		}
		if o := r.Subjects[0].Outcome; r.Err != nil || o.Refused || o.Remaining != left {
			t.Errorf("%s under rule %d: %v, %+v, want %d left", r.Subjects[0].Key, o.Rule, r.Err, o, left)
		}
	}
}

// TestBundleCrosses has a client that takes a cluster of one node for a single server: after one error, each subject gets a
// command of its own.
func TestBundleCrosses(t *testing.T) {
	s := &server{redistest.NewCluster(t, 1).Nodes[0]}
	p, client := watched(t, s)
	rules := set(t, limited("bucket", match.MustKey("path"), ratelimit.GCRA, 10))
	store := quiet(t, client, rules, prefixed())
	for round := range 3 {
		before := p.Scripts()
		for _, r := range askEach(store, rules, 10) {
			if left := 10 - r.Cost*uint64(round+1); r.Err != nil || r.Subjects[0].Outcome.Remaining != left {
				t.Errorf("round %d: %v, %+v, want %d left", round, r.Err, r.Subjects[0].Outcome, left)
			}
		}
		if n := p.Scripts() - before; round > 0 && n != 10 {
			t.Errorf("round %d: %d commands, want 10", round, n)
		}
	}
}

// TestBundlesKeepOrder peeks at a key, takes it, and peeks again, in one batch: the last answer includes the take. Redis
// has the scripts: a script that it lacks is sent again, behind the others.
func TestBundlesKeepOrder(t *testing.T) {
	rules := eachRules(t)
	limiter := limiterOf(t, rules, newStore(t, redis(t).client(t), rules, prefixed())).Internal()
	queries := func(key string) (all []batch.Query) {
		for i := range 4 * len(rules.Rules()) {
			all = append(all, batch.Query{Rule: rules.Rules()[i%len(rules.Rules())].Name, Key: []string{key}, Cost: 1, Peek: i/len(rules.Rules())%2 == 0})
		}
		return all
	}
	limiter.TakeAll(queries("other"), nil)
	asked := queries("k")
	for i, d := range limiter.TakeAll(asked, nil) {
		taken := uint64(i/len(rules.Rules())/2 + 1)
		if left := rules.Rules()[i%len(rules.Rules())].Limits[0].N - taken; d.Err != nil || d.Remaining != left {
			t.Errorf("query %d under %s, peek %t: %+v, want %d left", i, asked[i].Rule, asked[i].Peek, d, left)
		}
	}
}
