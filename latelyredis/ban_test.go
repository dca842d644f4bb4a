package latelyredis_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// banning returns a rule that bans on the hit after a number of hits.
func banning(name string, key match.Key, after uint64) ratelimit.Rule {
	return ratelimit.Rule{Name: name, Key: key, Ban: &ratelimit.Ban{After: after, Span: time.Minute, For: time.Hour, Factor: 2}}
}

// pair returns two stores of the same rules and prefix.
func pair(t testing.TB, rules *ratelimit.Set) (a, b *latelyredis.Store) {
	t.Helper()
	client, config := redis(t).client(t), prefixed()
	return quiet(t, client, rules, config), quiet(t, client, rules, config)
}

// listed returns the bans that a store lists after it has read the newest changes.
func listed(t testing.TB, s *latelyredis.Store) (all []ratelimit.BanRecord) {
	t.Helper()
	must.Do(t, s.Sync(t.Context()))
	return known(t, s)
}

// known returns the bans that a store lists, without a round trip.
func known(t testing.TB, s *latelyredis.Store) (all []ratelimit.BanRecord) {
	t.Helper()
	for b, err := range limiterOf(t, s.Bans().Set, s).Bans().All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// ask has the store decide about one event.
func ask(t testing.TB, s *latelyredis.Store, rules *ratelimit.Set, subjects ...latelyredis.Subject) []latelyredis.Subject {
	t.Helper()
	r := one(rules, subjects...)
	if s.Decide(t.Context(), []*latelyredis.Request{r}); r.Err != nil {
		t.Fatal(r.Err)
	}
	return subjects
}

// ban bans a key by hand for an hour, or until a time.
func ban(t testing.TB, s *latelyredis.Store, rule, key string, until ...time.Time) {
	t.Helper()
	b := ratelimit.BanRecord{Rule: rule, Key: []string{key}, Until: time.Now().Add(time.Hour), Reason: "abuse", Source: "resp"}
	if len(until) > 0 {
		b.Until = until[0]
	}
	must.Do(t, s.Ban(t.Context(), b))
}

// unban ends a ban that holds.
func unban(t testing.TB, s *latelyredis.Store, rule, key string) {
	t.Helper()
	if held, err := s.Unban(t.Context(), rule, []byte(key)); !held || err != nil {
		t.Fatalf("Unban reports %v, %v, want a ban that held", held, err)
	}
}

// deleteList deletes the list of bans.
func deleteList(t testing.TB, client rueidis.Client, c latelyredis.Config) {
	t.Helper()
	for key := range strings.FieldsSeq(strings.Trim(do(t, client, "KEYS", c.Prefix+"{bans}:*"), "[]")) {
		do(t, client, "DEL", key)
	}
}

// TestBansAreShared begins a ban on one node: it holds on the other, which lists it with the
// same times, and ends it for both.
func TestBansAreShared(t *testing.T) {
	rules := set(t, banning("flood", match.MustKey("path"), 1))
	a, b := pair(t, rules)
	ask(t, a, rules, about(0, "k"))
	began := ask(t, b, rules, about(0, "k"))[0].Outcome
	if !began.Started {
		t.Fatalf("%+v, want that the second hit, on another node, begins the ban", began)
	}
	if o := ask(t, a, rules, about(0, "k"))[0].Outcome; !o.Banned || o.Started || !o.BannedUntil.Equal(began.BannedUntil) {
		t.Errorf("%+v, want banned until %v", o, began.BannedUntil)
	}
	for _, s := range []*latelyredis.Store{a, b} {
		got := listed(t, s)
		if len(got) != 1 || !slices.Equal(got[0].Key, []string{"k"}) || got[0].Count != 1 || got[0].Source != "rule" ||
			got[0].Reason != "more than 1 hit in 1m" || got[0].Until.Sub(began.BannedUntil).Abs() > time.Minute {
			t.Errorf("%+v is listed, want the ban of k until about %v", got, began.BannedUntil)
		}
	}
	unban(t, a, "flood", "k")
	if o := ask(t, b, rules, about(0, "k"))[0].Outcome; o.Refused {
		t.Errorf("%+v after the ban was ended on another node", o)
	}
	if got := listed(t, a); len(got) != 0 {
		t.Errorf("%+v is listed after the ban was ended", got)
	}
}

// TestLostListing deletes the list of bans: the next node that sees the ban adds it again,
// and one that was added by hand as well.
func TestLostListing(t *testing.T) {
	rules := set(t, limited("limits", match.MustKey("path"), ratelimit.Sliding, 10), banning("flood", match.MustKey("path"), 0))
	client, config := redis(t).client(t), prefixed()
	store := func() *latelyredis.Store { return quiet(t, client, rules, config) }
	first := store()
	ask(t, first, rules, about(1, "by rule"))
	ban(t, first, "limits", "by hand")
	if n := len(listed(t, store())); n != 2 {
		t.Fatalf("%d bans are listed, want 2", n)
	}
	deleteList(t, client, config)
	second := store()
	if o := ask(t, second, rules, about(0, "by hand"))[0].Outcome; !o.Banned {
		t.Errorf("%+v, want banned by hand", o)
	}
	ask(t, second, rules, about(1, "by rule"))
	if n := len(listed(t, store())); n != 2 {
		t.Errorf("%d bans are listed after a node saw both, want 2", n)
	}
}

// TestReasonOfBanByHand has another node find a ban by hand in its record, and list it, before the node that has banned
// lists it: all have the reason and the source afterwards.
func TestReasonOfBanByHand(t *testing.T) {
	rules := set(t, limited("limits", match.MustKey("path"), ratelimit.Sliding, 10))
	client, config := redis(t).client(t), prefixed()
	store := func() *latelyredis.Store { return quiet(t, client, rules, config) }
	first, second := store(), store()
	until := time.Now().Add(time.Hour)
	byHand := func() { ban(t, first, "limits", "bob", until) }
	byHand()
	deleteList(t, client, config) // as before first has listed it
	if o := ask(t, second, rules, about(0, "bob"))[0].Outcome; !o.Banned {
		t.Fatalf("%+v, want banned", o)
	}
	byHand() // lists it
	for _, s := range []*latelyredis.Store{first, second, store()} {
		if got := listed(t, s); len(got) != 1 || got[0].Reason != "abuse" || got[0].Source != "resp" {
			t.Errorf("%+v is listed, want one ban with its reason and its source", got)
		}
	}
}

// TestBannedElsewhere has an active ban of one subject: the ban of another subject has not counted the event.
func TestBannedElsewhere(t *testing.T) {
	rules := set(t, banning("by path", match.MustKey("path"), 0), banning("by host", match.MustKey("host"), 2))
	store, _ := pair(t, rules)
	ask(t, store, rules, about(0, "/"))
	for range 5 {
		both := ask(t, store, rules, about(0, "/"), about(1, "h"))
		if o := both[1].Outcome; !both[0].Outcome.Banned || !o.Skipped || o.Refused {
			t.Fatalf("%+v, want the path banned and the host skipped", both)
		}
	}
	if o := ask(t, store, rules, about(1, "h"))[0].Outcome; o.Refused || o.Remaining != 1 {
		t.Errorf("%+v, want allowed with 1 left of 2: an event refused by a ban is not a hit", o)
	}
	ask(t, store, rules, about(1, "h"))
	if o := ask(t, store, rules, about(0, "/"), about(1, "h"))[1].Outcome; !o.Skipped || o.Started {
		t.Errorf("%+v, want the host skipped: what a ban refused begins no ban", o)
	}
	if o := ask(t, store, rules, about(0, "/other"), about(1, "h")); !o[0].Outcome.Started || !o[1].Outcome.Started {
		t.Errorf("%+v, want both bans begun: neither held before", o)
	}
}

// TestBanExpiry has a ban end and be remembered: no key of the list or record stays.
func TestBanExpiry(t *testing.T) {
	r := banning("short", match.MustKey("path"), 0)
	r.Ban.For, r.Ban.Remember = 50*time.Millisecond, 50*time.Millisecond
	rules := set(t, r)
	client, config := redis(t).client(t), prefixed()
	store := quiet(t, client, rules, config)
	ask(t, store, rules, about(0, "k"))
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		keys := do(t, client, "KEYS", config.Prefix+"*")
		if keys == "["+config.Prefix+"{bans}:changes]" {
			break
		}
		if keys == "[]" {
			return // the ban was over before it was listed
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s are there long after the ban", keys)
		}
	}
	if lives := do(t, client, "PTTL", config.Prefix+"{bans}:changes"); strings.HasPrefix(lives, "-") {
		t.Errorf("the changes live for %s ms", lives)
	}
}

// TestExtended has hits extend a ban: the record has each end, and the list one a second.
func TestExtended(t *testing.T) {
	r := banning("flood", match.MustKey("path"), 0)
	r.Ban.Extend = true
	rules := set(t, r)
	client, config := redis(t).client(t), prefixed()
	now := clockAt(time.Now())
	store := storeAt(t, client, rules, config, now)
	for range 40 { // 4 s
		o := ask(t, store, rules, about(0, "k"))[0].Outcome
		if want := time.UnixMicro(now.Load()).Add(r.Ban.For); !o.BannedUntil.Equal(want) {
			t.Fatalf("banned until %v, want %v", o.BannedUntil, want)
		}
		now.Add(100_000)
	}
	if n := do(t, client, "XLEN", config.Prefix+"{bans}:changes"); n != "4" {
		t.Errorf("the list has changed %s times, want 4", n)
	}
}

// TestConcurrentEndedMeanwhile has a node find a ban, and read its beginning from the list only after another node has
// ended it: no list has it afterwards, and each node that received its beginning receives its end.
func TestConcurrentEndedMeanwhile(t *testing.T) {
	rules := set(t, banning("flood", match.MustKey("path"), 1000))
	config := prefixed()
	store := func(client rueidis.Client, c latelyredis.Config) *latelyredis.Store {
		s := quiet(t, client, rules, c)
		listed(t, s)
		return s
	}
	var began, ended atomic.Int64
	told := config
	told.OnBan = func(ratelimit.BanRecord) { began.Add(1) }
	told.OnUnban = func(string, []string) { ended.Add(1) }
	proxy := redis(t).Watch(t)
	late, other := store(proxy.Client(t), told), store(redis(t).client(t), config)
	ask(t, late, rules, about(0, "before")) // so that the scripts are known
	// sees has the node find the ban, if its script runs within a pause, and publish it after the ban was ended.
	sees := func(pause time.Duration) bool {
		ban(t, other, "flood", "bob")
		seen := proxy.Scripts()
		proxy.Hold(2)
		answered := make(chan bool)
		go func() {
			r := one(rules, about(0, "bob"))
			late.Decide(context.Background(), []*latelyredis.Request{r})
			answered <- r.Err == nil && r.Subjects[0].Outcome.Banned
		}()
		for proxy.Scripts() == seen {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(pause)
		unban(t, other, "flood", "bob")
		proxy.Release()
		return <-answered
	}
	for pause := 50 * time.Millisecond; !sees(pause); pause *= 4 {
		if pause > 30*time.Second {
			t.Fatal("the ban was ended before the decision each time: nothing is late then")
		}
	}
	for name, s := range map[string]*latelyredis.Store{"that was late": late, "that has ended it": other, "that is new": store(redis(t).client(t), config)} {
		if got := listed(t, s); len(got) > 0 {
			t.Errorf("the node %s lists %+v", name, got)
		}
	}
	if began.Load() != ended.Load() {
		t.Errorf("received %d bans that began, and %d that ended", began.Load(), ended.Load())
	}
	// Another ban of the key is another matter.
	ban(t, other, "flood", "bob")
	if got := listed(t, late); len(got) != 1 {
		t.Errorf("%+v listed after the next ban, want one", got)
	}
}
