package latelyredis_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
)

// documentedUser makes the user of docs/redis.md on servers.
func documentedUser(t testing.TB, servers ...*redistest.Server) {
	t.Helper()
	page := must.Get(os.ReadFile("../docs/redis.md"))(t)
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "ACL ") {
			for _, s := range servers {
				s.Do(t, strings.Fields(line)...)
			}
		}
	}
}

// asDocumented has a client be that user.
func asDocumented(o *rueidis.ClientOption) { o.Username, o.Password = "lately", "password" }

// TestDocumentedACL creates the user in docs/redis.md, and uses the store with it: the
// user has all rights that the store needs, and no others.
func TestDocumentedACL(t *testing.T) {
	s := own(t)
	documentedUser(t, s.Server)
	client := s.client(t, asDocumented)
	rules := anyRules(t)
	store := newStore(t, client, rules, latelyredis.Config{})
	ctx := context.Background()
	r := take(ctx, store, rules, "k")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if err := store.Settle(ctx, &latelyredis.Settlement{Set: rules, At: r.Now, Charged: 1, Subjects: r.Subjects}); err != nil {
		t.Error(err)
	}
	if r := take(ctx, store, rules, "k"); r.Err != nil || r.Subjects[0].Outcome.Remaining != 9 {
		t.Errorf("%v, %+v, want 9 left: the first was given back", r.Err, r.Subjects[0].Outcome)
	}
	for i := range r.Subjects {
		a := latelyredis.Adjustment{Change: latelyredis.Reset, Set: rules, Rule: r.Subjects[i].Outcome.Rule, Key: r.Subjects[i].Key}
		if err := store.Adjust(ctx, &a); err != nil {
			t.Error(err)
		}
	}
	ban(t, store, "a", "k")
	if err := store.Check(ctx); err != nil {
		t.Error(err)
	}
	if n := len(listed(t, store)); n != 1 {
		t.Errorf("%d bans are listed, want 1", n)
	}
	unban(t, store, "a", "k")
	if err := client.Do(ctx, client.B().Get().Key("another").Build()).Error(); err == nil {
		t.Error("the user can read other keys")
	}
}
