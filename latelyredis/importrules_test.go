package latelyredis_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
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

// testImport imports counts and bans of some hundred keys twice under one id and once under another, with a client of
// a cluster, or one that may do little.
func testImport(t *testing.T, client rueidis.Client, c latelyredis.Config) {
	t.Helper()
	const keys = 300
	rules := anyRules(t)
	for i := range rules.Len() {
		if l := &rules.Rule(i).Limits[0]; l.Per == 0 {
			l.Span = time.Hour
		}
	}
	memory, err := ratelimit.NewLimiter(rules, ratelimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store := newStore(t, client, rules, c)
	redis, err := ratelimit.NewLimiter(rules, ratelimit.Config{Store: store, StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	r, err := memory.Rule("a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		r.TakeN(time.Now(), 3, strconv.Itoa(i))
	}
	if err := memory.Bans().Add(ratelimit.BanRecord{Rule: "b", Key: []string{"k"}, Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []window.Imported{{Keys: keys, Bans: 1}, {Kept: keys, Bans: 1}, {Keys: keys, Bans: 1}} {
		if done := copyAll(t, memory, redis, []string{"first", "first", "second"}[i]); done != want {
			t.Errorf("import %d: %+v, want %+v", i, done, want)
		}
	}
	for i := range keys {
		req := &latelyredis.Request{Set: rules, Peek: true, Subjects: []latelyredis.Subject{about(0, strconv.Itoa(i))}}
		if store.Decide(context.Background(), []*latelyredis.Request{req}); req.Err != nil || req.Subjects[0].Outcome.Remaining != 4 {
			t.Fatalf("key %d: %v, %+v, want 4 left", i, req.Err, req.Subjects[0].Outcome)
		}
	}
	if all := listed(t, store); len(all) != 1 {
		t.Errorf("%d bans are listed, want one", len(all))
	}
	if _, err := store.Unban(context.Background(), "b", []byte("k")); err != nil {
		t.Error(err)
	}
}

// TestImportLongKeys imports keys that memory knows only by digests: they are counted, and left out.
func TestImportLongKeys(t *testing.T) {
	r := banning("r", match.MustKey("path", "user"), 10)
	r.Limits = []ratelimit.Limit{{N: 10, Span: time.Hour}}
	rules := set(t, r)
	memory, err := ratelimit.NewLimiter(rules, ratelimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client, config := redis(t).client(t), prefixed()
	redis, err := ratelimit.NewLimiter(rules, ratelimit.Config{Store: newStore(t, client, rules, config), StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 600)
	for i := range 5 {
		rule(t, memory).TakeN(time.Now(), 3, long, long+strconv.Itoa(i))
		rule(t, memory).TakeN(time.Now(), 3, "/", strconv.Itoa(i))
	}
	for range 11 { // the last begins a ban
		rule(t, memory).TakeN(time.Now(), 1, long, "banned "+long)
	}
	if done, want := copyAll(t, memory, redis, "id"), (window.Imported{Keys: 5, Long: 7}); done.Keys != want.Keys || done.Bans != 0 || done.Long != want.Long {
		t.Errorf("%+v, want %+v", done, want)
	}
	if d := rule(t, redis).PeekN(time.Now(), 0, "/", "3"); d.Remaining != 7 || d.Err != nil {
		t.Errorf("%+v, want 7 left", d)
	}
	if n := do(t, client, "KEYS", config.Prefix+"*path~*"); n != "[]" {
		t.Errorf("%s are in Redis, want no long keys", n)
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
