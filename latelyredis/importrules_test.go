package latelyredis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestImportChangedRules imports counts of rules that have another limit, another algorithm, another key or
// do not exist in the store.
func TestImportChangedRules(t *testing.T) {
	named := func(name, key string, a ratelimit.Algorithm, n uint64) ratelimit.Rule {
		return ratelimit.Rule{Name: name, Key: match.MustKey(key), Algorithm: a, Limits: []ratelimit.Limit{{N: n, Span: time.Hour}}}
	}
	was := set(t, named("more", "path", ratelimit.Sliding, 10), named("other", "path", ratelimit.Fixed, 10), named("key", "path", ratelimit.Fixed, 10), named("gone", "path", ratelimit.Fixed, 10))
	is := set(t, named("other", "path", ratelimit.Exact, 10), named("key", "user", ratelimit.Fixed, 10), named("more", "path", ratelimit.Sliding, 500))
	memory, err := ratelimit.NewLimiter(was, ratelimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range was.Len() {
		r, err := memory.Rule(was.Rule(i).Name)
		if err != nil {
			t.Fatal(err)
		}
		r.TakeN(time.Now(), 4, "k")
	}
	redis, err := ratelimit.NewLimiter(is, ratelimit.Config{Store: newStore(t, redis(t).client(t), is, prefixed()), StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"first", "first", "second"} { // the last is added to records
		done := copyAll(t, memory, redis, id)
		if done.Unknown != 2 || done.Keys+done.Kept != 2 {
			t.Errorf("import %d: %+v, want two keys, and two without a rule", i, done)
		}
	}
	for name, want := range map[string]uint64{"more": 500 - 8, "other": 10 - 8, "key": 10} {
		r, err := redis.Rule(name)
		if err != nil {
			t.Fatal(err)
		}
		if d := r.PeekN(time.Now(), 0, "k"); d.Remaining != want || d.Err != nil {
			t.Errorf("%s: %+v, want %d left", name, d, want)
		}
	}
}

// TestImportLosesAnswers loses answers while keys are imported, as when a connection breaks or the program
// ends, and imports again until that succeeds: each key has what was counted, once.
func TestImportLosesAnswers(t *testing.T) {
	const keys = 3000
	rules := set(t, limited("r", match.MustKey("path"), ratelimit.Sliding, 10))
	rules.Rule(0).Limits[0].Span = time.Hour
	memory, err := ratelimit.NewLimiter(rules, ratelimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := latelyredis.NewQuiet(redis(t).client(t), rules, prefixed())
	if err != nil {
		t.Fatal(err)
	}
	redis, err := ratelimit.NewLimiter(rules, ratelimit.Config{Store: store, StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		rule(t, memory).TakeN(time.Now(), 3, fmt.Sprint(i))
		if i%3 == 0 { // there are two in Redis
			if d := rule(t, redis).TakeN(time.Now(), 2, fmt.Sprint(i)); !d.Allowed || d.Err != nil {
				t.Fatalf("%+v", d)
			}
		}
	}
	store.LoseAnswers(true)
	failed := 0
	for ok := false; !ok; {
		ok = true
		for done, err := range memory.CopyTo(context.Background(), redis, "id") {
			if err != nil {
				failed, ok = failed+1, false
			} else if done.Keys+done.Kept > keys {
				t.Fatalf("%+v of %d", done, keys)
			}
		}
		if failed == 5 {
			store.LoseAnswers(false)
		}
	}
	if failed < 2 {
		t.Errorf("%d imports have failed, want more", failed)
	}
	for i := range keys {
		want := uint64(10 - 3)
		if i%3 == 0 {
			want -= 2
		}
		if d := rule(t, redis).PeekN(time.Now(), 0, fmt.Sprint(i)); d.Remaining != want || d.Err != nil {
			t.Fatalf("key %d: %+v, want %d left", i, d, want)
		}
	}
}
