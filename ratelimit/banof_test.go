package ratelimit_test

import (
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// banOfRules are two rules on the client, whose bans must not be confused, and one on two fields.
func banOfRules(t testing.TB) []ratelimit.Rule {
	client := foldedKey(t, "client")
	hour := []ratelimit.Limit{per(1, time.Hour)}
	return []ratelimit.Rule{
		{Name: "one", Key: client, Limits: hour},
		{Name: "other", Key: client, Limits: hour},
		{Name: "pair", Key: foldedKey(t, "client", "user"), Limits: hour},
	}
}

// TestBanOf looks up the ban of many keys under each rule, in a Memory and in a store of another type: the answer is that
// of the list, before and after bans end and are unbanned.
func TestBanOf(t *testing.T) {
	for name, wrap := range map[string]func(*ratelimit.Memory) ratelimit.Store{
		"memory": func(m *ratelimit.Memory) ratelimit.Store { return m },
		"other":  func(m *ratelimit.Memory) ratelimit.Store { return slowStore{m} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := mustSet(t, banOfRules(t)...)
				m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{}))(t)
				testBanOf(t, ratelimit.Over(set, wrap(m)))
			})
		})
	}
}

func testBanOf(t *testing.T, l *ratelimit.Limiter) {
	rnd := randtest.New(t)
	var asked [][]string
	for i := range 60 {
		client := fmt.Sprintf("2001:db8:0:%x::/64", i+1)
		for _, key := range [][]string{{"one", client}, {"other", client}, {"pair", client, fmt.Sprint("user ", i)}} {
			asked = append(asked, key)
			if rnd.IntN(2) == 0 {
				continue
			}
			b := ratelimit.BanRecord{Rule: key[0], Key: key[1:], Until: l.Now().Add(time.Duration(1+rnd.IntN(3)) * time.Minute), Reason: fmt.Sprint("ban ", i)}
			must.Do(t, l.Bans().Add(b))
		}
	}
	had := len(listed(t, l))
	for had > 0 {
		list := listed(t, l)
		for _, key := range asked {
			got, held, err := l.Bans().Get(key[0], key[1:]...)
			i := slices.IndexFunc(list, func(b ratelimit.BanRecord) bool { return b.Rule == key[0] && slices.Equal(b.Key, key[1:]) })
			if err != nil || held != (i >= 0) || held && !sameBan(got, list[i]) {
				t.Fatalf("%q: %+v, %v, %v; the list has it at %d", key, got, held, err, i)
			}
		}
		if had = len(list); had > 0 {
			if held, err := l.Bans().Remove(list[0].Rule, list[0].Key...); !held || err != nil {
				t.Fatalf("unban: %v, %v", held, err)
			}
			time.Sleep(20 * time.Second)
		}
	}
}

func TestBanOfKeys(t *testing.T) {
	strict := limitRule(t, "strict", per(0, time.Hour))
	strict.Ban = &ratelimit.Ban{Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour}
	l := banLimiter(t, ratelimit.Config{}, append(banOfRules(t), strict)...)
	must.Do(t, l.Bans().Add(ratelimit.BanRecord{Rule: "one", Key: []string{"2001:db8::7"}, Until: l.Now().Add(time.Hour)}))
	if b, held, err := l.Bans().Get("one", "2001:DB8::ffff"); !held || err != nil || b.Key[0] != "2001:db8::/64" || b.Source != "manual" {
		t.Errorf("another address of the customer: %+v, %v, %v", b, held, err)
	}

	long := strings.Repeat("k", 1025)
	for _, key := range []string{"short", long} {
		if _, held, err := l.Bans().Get("strict", key); held || err != nil {
			t.Errorf("a key of %d bytes is banned before the event: %v", len(key), err)
		}
		if d := mustRule(l, "strict").Take(key); d.BannedUntil.IsZero() {
			t.Fatalf("%+v", d)
		}
		b, held, err := l.Bans().Get("strict", key)
		if !held || err != nil || b.Rule != "strict" || b.Source != "rule" || b.Count != 1 || b.Reason != "more than 0 refusals in 1m" {
			t.Errorf("a key of %d bytes, banned by the rule: %+v, %v, %v", len(key), b, held, err)
		}
		if key == long {
			continue // is listed as what stands for it
		}
		if !slices.Equal(b.Key, []string{key}) {
			t.Errorf("the ban of %q is of %q", key, b.Key)
		}
	}

	var noRule *ratelimit.RuleError
	if _, held, err := l.Bans().Get("pear", "192.0.2.1"); held || !errors.As(err, &noRule) {
		t.Errorf("a rule that there is not: %v, %v", held, err)
	}
	for _, key := range [][]string{nil, {"192.0.2.1"}, {"192.0.2.1", "ada", "x"}, {"192.0.2.1", ""}} {
		if _, held, err := l.Bans().Get("pair", key...); held || err == nil {
			t.Errorf("%q: %v, %v", key, held, err)
		}
	}
}

func ExampleBanList_Get() {
	key, err := match.NewKey(match.Fold{}, "client")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name: "per-client", Key: key, Limits: []ratelimit.Limit{{N: 60, Span: time.Minute}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := limiter.Bans().Add(ratelimit.BanRecord{Rule: "per-client", Key: []string{"2001:db8::7"}, Until: limiter.Now().Add(time.Hour)}); err != nil {
		log.Fatal(err)
	}
	for _, client := range []string{"2001:db8::8", "192.0.2.1"} {
		ban, held, err := limiter.Bans().Get("per-client", client)
		fmt.Println(ban.Key, held, err)
	}
	// Output:
	// [2001:db8::/64] true <nil>
	// [] false <nil>
}
