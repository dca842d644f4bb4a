package ratelimit_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func TestSetErrorsNameTheRule(t *testing.T) {
	good, bad, unmatched := goodRule(t), goodRule(t), goodRule(t)
	bad.Name, bad.Limits = "bad", []ratelimit.Limit{{N: 1}}
	unmatched.Name, unmatched.When = "unmatched", match.When{Method: []string{""}}
	none := ratelimit.SetConfig{}
	wantParts(t, "bad", newSetError(none, good, bad), `rule 2 ("bad")`, "span: 0s")
	wantParts(t, "unmatched", newSetError(none, good, unmatched), `rule 2 ("unmatched")`, "method: empty")
	wantParts(t, "twice", newSetError(none, good, good), "rule 2", `name: "r" is taken by an earlier rule`)

	many := make([]ratelimit.Rule, ratelimit.MaxRules+1)
	for i := range many {
		many[i] = good
		many[i].Name = fmt.Sprint("r", i)
	}
	wantParts(t, "many", newSetError(none, many...), "rules: 1025", "at most 1024")
	if err := newSetError(none, many[1:]...); err != nil {
		t.Errorf("1024 rules: %v", err)
	}
}

func TestMemoryErrors(t *testing.T) {
	set := mustSet(t, goodRule(t))
	for name, c := range map[string]struct {
		config ratelimit.Config
		want   string
	}{
		"resolution":          {ratelimit.Config{Resolution: -1}, "resolution: -1ns: must be 0 (nanoseconds) to 87600h"},
		"resolution too wide": {ratelimit.Config{Resolution: limit.MaxSpan + 1}, "resolution: 87600h0m0.000000001s: must be 0"},
		"small budget":        {ratelimit.Config{Budget: 1000}, `rule 1 ("r"): budget 1000: an empty table takes`},
		"bans":                {ratelimit.Config{Bans: -1}, "bans: -1: must be 0 (1048576) to"},
	} {
		_, err := ratelimit.NewMemory(set, c.config)
		wantParts(t, name, err, c.want)
	}
	_, err := ratelimit.New(ratelimit.Rule{Name: "r"})
	wantParts(t, "New", err, `rule 1 ("r")`, "key: missing")
}

// TestSetSources checks the declared fields.
func TestSetSources(t *testing.T) {
	for name, c := range map[string]struct {
		sources []match.Source
		want    string
	}{
		"no name":    {[]match.Source{{Header: "X-A"}}, `Fields: field "": empty: must be a name`},
		"two places": {[]match.Source{{Field: "a", Cookie: "a", Bearer: true, Query: "a"}}, `Fields: field "a": cookie, bearer, query: must be one of them`},
		"twice":      {[]match.Source{{Field: "a"}, {Field: "b"}, {Field: "a", Header: "X-A"}}, `Fields: field "a" twice: must be given once`},
		"well known": {[]match.Source{{Field: "client", Header: "X-A"}}, `Fields: field "client": must be another name`},
		"derived":    {[]match.Source{{Field: "country"}}, `Fields: field "country": must be another name`},
		"header":     {[]match.Source{{Field: "a", Header: "X A"}}, `header: "X A": must be the name of a header`},
	} {
		_, err := ratelimit.NewSet(ratelimit.SetConfig{Fields: c.sources}, goodRule(t))
		wantParts(t, name, err, c.want)
	}
	sources := []match.Source{{Field: "user", Header: "X-Auth-Request-User", Trusted: true}, {Field: "tenant"}}
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: sources}, goodRule(t)))(t)
	if got := s.Internal().Sources(); len(got) != 2 || got[0] != sources[0] || !intake.FromRequest(&got[0]) || intake.FromRequest(&got[1]) {
		t.Errorf("the sources are %+v", got)
	}
}

// TestSetIsACopy changes what a Set was made from: the Set must not follow.
func TestSetIsACopy(t *testing.T) {
	rules := []ratelimit.Rule{goodRule(t)}
	allow := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: allow}, rules...))(t)
	rules[0].Limits[0].N = 77
	rules[0].Ban.After = 77
	rules[0].Name = "changed"
	allow[0] = netip.MustParsePrefix("198.51.100.0/24")
	r := s.Rules()[0]
	if len(s.Rules()) != 1 || r.Name != "r" || r.Limits[0].N != 5 || r.Ban.After != 3 {
		t.Errorf("the set's rule has become %+v, %+v", r, r.Ban)
	}
	var e match.Event
	e.SetString(match.Client, "192.0.2.7")
	if !s.Internal().Allowed(&e) {
		t.Error("the allow list has changed")
	}
}

// TestSetRulesAppended appends to the rules of a set twice: neither sees the rule of the other.
func TestSetRulesAppended(t *testing.T) {
	all := make([]ratelimit.Rule, 3)
	for i := range all {
		all[i] = goodRule(t)
		all[i].Name = fmt.Sprint("r", i)
	}
	s := mustSet(t, all...)
	one, two := append(s.Rules(), &ratelimit.Rule{Name: "one"}), append(s.Rules(), &ratelimit.Rule{Name: "two"})
	if one[3].Name != "one" || two[3].Name != "two" || len(s.Rules()) != 3 {
		t.Errorf("%q and %q after %d rules; want one and two after 3", one[3].Name, two[3].Name, len(s.Rules()))
	}
}

func TestSetFields(t *testing.T) {
	a, b := goodRule(t), goodRule(t)
	b.Name, b.Key, b.When = "b", mustKey(t, "user", "tenant"), match.When{Path: []string{"/x"}}
	if got, want := mustSet(t, a, b).Internal().Fields(), []string{"client", "path", "tenant", "user"}; !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}}))(t)
	if got, want := s.Internal().Fields(), []string{"client"}; !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v: the allow list looks at it", got, want)
	}
}

// TestAllowList never limits, bans or counts clients on the list, in any notation.
func TestAllowList(t *testing.T) {
	r := goodRule(t)
	r.Limits[0] = ratelimit.Limit{N: 0, Span: time.Second}
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32"),
	}}, r))(t)
	m := must.Get(ratelimit.NewMemory(s, ratelimit.Config{}))(t)
	l := ratelimit.Over(s, m)
	var e match.Event
	for client, allowed := range map[string]bool{
		"192.0.2.9": true, "::ffff:192.0.2.9": true, "2001:db8:1::1": true,
		"192.0.3.9": false, "2001:db9::1": false, "a name": false,
	} {
		e.SetString(match.Client, client)
		d, outcomes := l.Judge(at(0), &e, 1, nil)
		if d.Allowed != allowed || allowed && (d != ratelimit.Decision{Allowed: true} || len(outcomes) > 0) {
			t.Errorf("%s: %+v, %v", client, d, outcomes)
		}
	}
	if m.Keys(0) != 3 {
		t.Errorf("%d keys counted, want the 3 that are not on the list", m.Keys(0))
	}
}

// A client on the allow list is also allowed where the client is one alternative of a key; a client that only uses such an
// address as its name is not.
func TestAllowListOfAlternatives(t *testing.T) {
	key := must.Get(match.NewKey(match.Fold{}, "path", "user | client"))(t)
	r := goodRule(t)
	r.Key, r.Limits[0] = key, ratelimit.Limit{N: 0, Span: time.Second}
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, r))(t)
	m := must.Get(ratelimit.NewMemory(s, ratelimit.Config{}))(t)
	l := ratelimit.Over(s, m)
	for value, allowed := range map[string]bool{"client:192.0.2.9": true, "client:192.0.3.9": false, "user:192.0.2.9": false, "user:client:192.0.2.9": false} {
		if d := mustRule(l, r.Name).Take("/", value); d.Allowed != allowed {
			t.Errorf("%s: %+v; want allowed %t", value, d, allowed)
		}
	}
}
