package latelyredis_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// anyRules are rules of one key, with three windows.
func anyRules(t testing.TB) *ratelimit.Set {
	path := match.MustKey("path")
	return set(t, limited("a", path, ratelimit.Sliding, 10), limited("b", path, ratelimit.GCRA, 10), limited("c", path, ratelimit.Calendar, 10))
}

func open(t testing.TB, c rueidis.Client, rules *ratelimit.Set) *latelyredis.Store {
	t.Helper()
	return newStore(t, c, rules, prefixed())
}

// take takes 1 under all rules.
func take(ctx context.Context, s *latelyredis.Store, rules *ratelimit.Set, key string) *latelyredis.Request {
	r := &latelyredis.Request{Set: rules, Cost: 1}
	for i := range rules.Rules() {
		r.Subjects = append(r.Subjects, about(i, key))
	}
	s.Decide(ctx, []*latelyredis.Request{r})
	return r
}

// TestServerErrors has a server answer each of these errors: they reach the caller with their code and what to do, and
// nothing is counted.
func TestServerErrors(t *testing.T) {
	cases := []struct {
		code   string
		set    [][]string // commands that make the server answer so
		back   [][]string
		advice string
	}{
		{"READONLY", [][]string{{"REPLICAOF", "127.0.0.1", "1"}}, [][]string{{"REPLICAOF", "NO", "ONE"}}, "connect to the primary"},
		{
			"MASTERDOWN",
			[][]string{{"CONFIG", "SET", "replica-serve-stale-data", "no"}, {"REPLICAOF", "127.0.0.1", "1"}},
			[][]string{{"REPLICAOF", "NO", "ONE"}},
			"without its primary",
		},
		{"OOM", [][]string{{"CONFIG", "SET", "maxmemory", "1"}}, [][]string{{"CONFIG", "SET", "maxmemory", "0"}}, "raise maxmemory"},
		{"NOPERM", [][]string{{"ACL", "SETUSER", "default", "-set"}}, [][]string{{"ACL", "SETUSER", "default", "+set"}}, "ACL user"},
		{"WRONGTYPE", [][]string{{"RPUSH", "lately:{path=k}:b", "x"}}, [][]string{{"DEL", "lately:{path=k}:b"}}, "a prefix of its own"},
		{"NOREPLICAS", [][]string{{"CONFIG", "SET", "min-replicas-to-write", "3"}}, [][]string{{"CONFIG", "SET", "min-replicas-to-write", "0"}}, "min-replicas"},
	}
	s := own(t)
	client, admin := s.client(t), s.client(t)
	rules := anyRules(t)
	store := newStore(t, client, rules, latelyredis.Config{})
	ctx := context.Background()
	if r := take(ctx, store, rules, "before"); r.Err != nil { // sends the scripts
		t.Fatal(r.Err)
	}
	for _, c := range cases {
		for _, command := range c.set {
			do(t, admin, command...)
		}
		wantCode(t, take(ctx, store, rules, "k").Err, c.code, c.advice)
		for _, command := range c.back {
			do(t, admin, command...)
		}
	}
	if r := take(ctx, store, rules, "k"); r.Err != nil || r.Subjects[0].Outcome.Remaining != 9 {
		t.Errorf("after all errors: %v, %d left, want 9: one was decided", r.Err, r.Subjects[0].Outcome.Remaining)
	}
}

// TestDocumentedErrors has the table of failures in docs/redis.md name the errors of servers, and no
// others.
func TestDocumentedErrors(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/redis.md"))(t)
	_, failures, _ := strings.Cut(string(page), "## Failures")
	documented := map[string]bool{"NOSCRIPT": true}
	for line := range strings.Lines(failures) {
		cause, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, code := range regexp.MustCompile("`([A-Z]+)`").FindAllStringSubmatch(cause, -1) {
			documented[code[1]] = true
		}
	}
	for _, code := range latelyredis.Codes() {
		if !documented[code] {
			t.Errorf("the table lacks %s", code)
		}
		delete(documented, code)
	}
	for _, word := range []string{"NOSCRIPT", "FLUSHALL"} { // the store's own, and a command
		delete(documented, word)
	}
	if len(documented) > 0 {
		t.Errorf("the table has %v, which the store does not explain", documented)
	}
}

// TestCheck has a server that evicts keys when its memory is full.
func TestCheck(t *testing.T) {
	client := own(t).client(t)
	store := open(t, client, anyRules(t))
	for _, c := range []struct {
		memory, policy string
		want           bool
	}{{"0", "noeviction", true}, {"0", "allkeys-lru", true}, {"100mb", "noeviction", true}, {"100mb", "volatile-ttl", false}, {"100mb", "allkeys-lru", false}} {
		do(t, client, "CONFIG", "SET", "maxmemory", c.memory, "maxmemory-policy", c.policy)
		err := store.Check(context.Background())
		if (err == nil) != c.want || err != nil && !strings.Contains(err.Error(), c.policy) {
			t.Errorf("maxmemory %s, policy %s: Check returns %v", c.memory, c.policy, err)
		}
	}
}

// TestRejectedRules has rules that Redis does not keep: the error names the rule.
func TestRejectedRules(t *testing.T) {
	path := match.MustKey("path")
	adapts := limited("adapts", path, ratelimit.Sliding, 10)
	adapts.Adapt = &ratelimit.Adapt{Above: 30, Steps: []ratelimit.AdaptStep{{Below: 10, Limit: 20}}}
	many := limited("many", path, ratelimit.Sliding, 10)
	for len(many.Limits) < 256 {
		many.Limits = append(many.Limits, many.Limits[0])
	}
	distinct := limited("distinct", path, ratelimit.Sliding, 10)
	distinct.Ban = &ratelimit.Ban{After: 10, Of: ratelimit.Distinct, Field: "user", Span: time.Minute, For: time.Minute}
	for _, r := range []ratelimit.Rule{adapts, many, distinct} {
		if _, err := latelyredis.NewQuiet(nil, set(t, limited("first", path, ratelimit.Sliding, 1), r), latelyredis.Config{}); err == nil || !strings.Contains(err.Error(), r.Name) {
			t.Errorf("%v, want an error that names the rule %q", err, r.Name)
		}
	}
	if _, err := latelyredis.NewQuiet(nil, anyRules(t), latelyredis.Config{Prefix: "{lately}:"}); err == nil {
		t.Error("a prefix with a hash tag was accepted")
	}
	store := quiet(t, nil, anyRules(t), latelyredis.Config{})
	if err := store.Update(context.Background(), set(t, adapts), func() { t.Error("published was called") }); err == nil {
		t.Error("an update to a rule that adapts was accepted")
	}
}
