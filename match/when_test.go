package match

import (
	"net/netip"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

func prefixes(texts ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range texts {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

func TestCondition(t *testing.T) {
	var e Event
	e.SetString(Client, "::ffff:192.0.2.1")
	e.SetString(Method, "POST")
	e.SetString(Path, "/a/../login")
	e.SetString(Status, "404")
	e.SetNamedString("tenant", "acme/eu")
	e.SetString(Agent, "Mozilla/5.0 (x) go-http/2.0")
	fields := func(name string, patterns ...string) When { return When{Fields: map[string][]string{name: patterns}} }
	for _, c := range []struct {
		when When
		want bool
	}{
		{When{}, true},
		{When{Method: []string{"POST"}}, true},
		{When{Method: []string{"GET", "POST"}}, true},
		{When{Method: []string{"post"}}, false},
		{When{Path: []string{"/login"}}, true}, // as cleaned
		{When{Path: []string{"/a/**"}}, true},  // as sent, for servers that resolve nothing
		{When{Path: []string{"/a/*"}}, false},
		{When{Path: []string{"/x", "/log*"}}, true},
		{When{Status: []string{"404"}}, true},
		{When{Status: []string{"4xx"}}, true},
		{When{Status: []string{"4XX"}}, true},
		{When{Status: []string{"5xx", "400-403"}}, false},
		{When{Status: []string{"400-404"}}, true},
		{When{Status: []string{"404-404"}}, true},
		{When{Client: prefixes("192.0.2.0/24")}, true},
		{When{Client: prefixes("192.0.2.2/32", "2001:db8::/32")}, false},
		{When{Client: prefixes("::ffff:192.0.2.0/120")}, true},
		{When{Client: prefixes("::/0")}, false}, // the client is an IPv4 address
		{fields("tenant", "acme/*"), true},
		{fields("tenant", "acme"), false},
		{fields("tenant", "x", "**"), true},
		{fields("path", "/a/../login"), true}, // as sent, when named
		{fields("user", "**"), false},         // absent
		{When{Method: []string{"POST"}, Path: []string{"/login"}, Status: []string{"404"}, Client: prefixes("192.0.2.1/32"), Fields: map[string][]string{"tenant": {"acme**"}, "path": {"**"}}}, true},
		{When{Method: []string{"POST"}, Path: []string{"/other"}}, false},
		{When{Path: []string{"(?i)/LOG*"}}, true},
		{When{Path: []string{"(?i)/LOG"}}, false},
		{fields("tenant", "(?i)ACME/**"), true},
		{fields("tenant", "(?i)ACME*"), false}, // '*' stops at '/'
		{fields("agent", "*go*"), true},        // but not in an agent
		{fields("agent", "*GO*"), false},
		{fields("agent", "(?i)*GO*/2*"), true},
		{When{Not: []When{fields("tenant", "acme/*")}}, false},
		{When{Not: []When{{Method: []string{"GET"}}, {Status: []string{"5xx"}}}}, true},
		{When{Not: []When{{Method: []string{"GET"}}, {Status: []string{"4xx"}}}}, false},
		{When{Not: []When{{Method: []string{"POST"}, Status: []string{"5xx"}}}}, true},
		{When{Any: []When{{Method: []string{"GET"}}, {Status: []string{"4xx"}}}}, true},
		{When{Any: []When{{Method: []string{"GET"}}, {Status: []string{"5xx"}}}}, false},
		{When{Method: []string{"POST"}, Any: []When{{Status: []string{"404"}, Not: []When{fields("user", "**")}}}}, true},
		{When{Method: []string{"GET"}, Any: []When{{Status: []string{"404"}}}}, false},
		{When{Not: []When{{Any: []When{{Status: []string{"500"}}, {Status: []string{"404"}}}}}}, false},
		{When{Method: []string{"POST"}, Fields: map[string][]string{"tenant": {"acme**"}, "user": {"**"}}}, false},
	} {
		cond, err := c.when.Compile()
		if err != nil {
			t.Errorf("%+v: %v", c.when, err)
			continue
		}
		if got := cond.Holds(&e); got != c.want {
			t.Errorf("%+v holds: %t; want %t", c.when, got, c.want)
		}
		positive := c.when
		positive.Not = nil
		if got := cond.Holds(new(Event)); got != positive.isZero() {
			t.Errorf("%+v holds for an event without fields: %t", c.when, got)
		}
		if n := testing.AllocsPerRun(100, func() { cond.Holds(&e) }); n != 0 {
			t.Errorf("%+v: Holds allocates %v times", c.when, n)
		}
	}
}

// TestStatusValues checks statuses that logs have and that no rule means.
func TestStatusValues(t *testing.T) {
	all := must.Get(When{Status: []string{"000-599"}}.Compile())(t)
	for status, want := range map[string]bool{"200": true, "000": true, "0": true, "000200": true, "1000": false, "-": false, "": false, "20x": false, "0000200": false} {
		var e Event
		e.SetString(Status, status)
		if got := all.Holds(&e); got != want {
			t.Errorf("status %q holds: %t; want %t", status, got, want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	bad := func(s string) string {
		return `status: "` + s + `": must be a status such as 404, a class such as 5xx or a range such as 500-504, up to 599`
	}
	cases := map[string]When{
		"method: empty: must be a method such as GET":                  {Method: []string{"GET", ""}},
		`path: "": must be a pattern that begins with '/' or '*'`:      {Path: []string{""}},
		`path: "login": must be a pattern that begins with '/' or '*'`: {Path: []string{"/", "login"}},
		"client: invalid prefix: must be an address or a CIDR prefix":  {Client: []netip.Prefix{{}}},
		"field: empty name: must be the name of a field":               {Fields: map[string][]string{"": {"x"}}},
		`field "a": no pattern: must have at least one`:                {Fields: map[string][]string{"a": {}}},
		`path: "(?i)": must be a pattern that begins with '/' or '*'`:  {Path: []string{"(?i)"}},
		"any: empty: must have a field":                                {Any: []When{{}}},
		"not: empty: must have a field":                                {Not: []When{{Method: []string{"GET"}}, {}}},
		"any: not: method: empty: must be a method such as GET":        {Any: []When{{Not: []When{{Method: []string{""}}}}}},
	}
	for _, s := range []string{"", "4", "40", "4040", "xx4", "0xx", "4x", "404-", "-404", "404-403", "404-5000", "6xx", "9XX", "600", "999", "500-600", "4xx-5xx", "+40", "ok"} {
		cases[bad(s)] = When{Status: []string{s}}
	}
	for want, w := range cases {
		if _, err := w.Compile(); err == nil || err.Error() != want {
			t.Errorf("%+v: %v; want %s", w, err, want)
		}
	}
}
