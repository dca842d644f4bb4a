package latelyredis_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

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
	s, err := latelyredis.New(c, rules, prefixed())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// take asks for one of all rules.
func take(ctx context.Context, s *latelyredis.Store, rules *ratelimit.Set, key string) *latelyredis.Request {
	r := &latelyredis.Request{Set: rules, Cost: 1}
	for i := range rules.Len() {
		r.Subjects = append(r.Subjects, about(i, key))
	}
	s.Decide(ctx, []*latelyredis.Request{r})
	return r
}

// TestServerErrors has a server answer each of these errors: they reach the caller with their
// code and what to do, and nothing is counted.
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
		{"NOREPLICAS", [][]string{{"CONFIG", "SET", "min-replicas-to-write", "3"}}, [][]string{{"CONFIG", "SET", "min-replicas-to-write", "0"}}, "min-replicas"},
	}
	s := own(t)
	client, admin := s.client(t), s.client(t)
	rules := anyRules(t)
	store := open(t, client, rules)
	ctx := context.Background()
	if r := take(ctx, store, rules, "k"); r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, c := range cases {
		for _, command := range c.set {
			do(t, admin, command...)
		}
		r := take(ctx, store, rules, "k")
		var answer *latelyredis.ServerError
		if !errors.As(r.Err, &answer) || answer.Code != c.code || !strings.Contains(r.Err.Error(), c.advice) {
			t.Errorf("%v, want a ServerError with the code %s and what to do", r.Err, c.code)
		}
		for _, command := range c.back {
			do(t, admin, command...)
		}
	}
	if r := take(ctx, store, rules, "k"); r.Err != nil || r.Subjects[0].Outcome.Remaining != 8 {
		t.Errorf("after all errors: %v, %d left, want 8: two were decided", r.Err, r.Subjects[0].Outcome.Remaining)
	}
}

// TestWrongType has a key of another program in the place of a record.
func TestWrongType(t *testing.T) {
	client := redis(t).client(t)
	rules := anyRules(t)
	config := prefixed()
	store, err := latelyredis.New(client, rules, config)
	if err != nil {
		t.Fatal(err)
	}
	do(t, client, "RPUSH", config.Prefix+"{path=k}:b", "x")
	r := take(context.Background(), store, rules, "k")
	var answer *latelyredis.ServerError
	if !errors.As(r.Err, &answer) || answer.Code != "WRONGTYPE" {
		t.Errorf("%v, want a ServerError with the code WRONGTYPE", r.Err)
	}
	do(t, client, "DEL", config.Prefix+"{path=k}:b")
	if r := take(context.Background(), store, rules, "k"); r.Err != nil || r.Subjects[0].Outcome.Remaining != 9 {
		t.Errorf("%v, %+v, want 9 left: what failed has counted nothing", r.Err, r.Subjects[0].Outcome)
	}
}

// TestScriptFlush has the server forget the scripts: they are sent again.
func TestScriptFlush(t *testing.T) {
	s := own(t)
	client := s.client(t)
	rules := anyRules(t)
	store := open(t, client, rules)
	for i := range 5 {
		do(t, client, "SCRIPT", "FLUSH")
		if r := take(context.Background(), store, rules, "k"); r.Err != nil || r.Subjects[0].Outcome.Remaining != uint64(9-i) {
			t.Fatalf("%v, %+v, want %d left", r.Err, r.Subjects[0].Outcome, 9-i)
		}
	}
}

// TestDeadline stops the server: calls return when their context ends, however many there are,
// and the store decides again when the server goes on.
func TestDeadline(t *testing.T) {
	s := own(t)
	client := s.client(t)
	rules := anyRules(t)
	store := open(t, client, rules)
	if r := take(context.Background(), store, rules, "k"); r.Err != nil {
		t.Fatal(r.Err)
	}
	before := runtime.NumGoroutine()
	s.Process().Signal(syscall.SIGSTOP)
	defer s.Process().Signal(syscall.SIGCONT)
	for range 3 {
		var all sync.WaitGroup
		for range 800 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				defer cancel()
				if r := take(ctx, store, rules, "k"); !errors.Is(r.Err, context.DeadlineExceeded) {
					t.Errorf("%v, want that the deadline is exceeded", r.Err)
				}
			})
		}
		all.Wait()
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+20; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, and %d after 2400 calls that were not answered", before, runtime.NumGoroutine())
		}
	}
	s.Process().Signal(syscall.SIGCONT)
	if r := take(context.Background(), store, rules, "another"); r.Err != nil {
		t.Error(r.Err)
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
		if _, err := latelyredis.New(nil, set(t, limited("first", path, ratelimit.Sliding, 1), r), latelyredis.Config{}); err == nil || !strings.Contains(err.Error(), r.Name) {
			t.Errorf("%v, want an error that names the rule %q", err, r.Name)
		}
	}
	if _, err := latelyredis.New(nil, anyRules(t), latelyredis.Config{Prefix: "{lately}:"}); err == nil {
		t.Error("a prefix with a hash tag was accepted")
	}
	store, err := latelyredis.New(nil, anyRules(t), latelyredis.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Update(context.Background(), set(t, adapts), func() { t.Error("published was called") }); err == nil {
		t.Error("an update to a rule that adapts was accepted")
	}
}
