package latelyredis

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// joined returns the key of these values.
func joined(t testing.TB, k match.Key, values ...string) []byte {
	t.Helper()
	b := must.Get(k.Join(nil, values...))(t)
	return b
}

func TestKeyNames(t *testing.T) {
	client, both := match.MustKey("client"), match.MustKey("client", "user")
	either := match.MustKey("user | client")
	cases := []struct {
		key    match.Key
		values []string
		rule   string
		want   string
	}{
		{client, []string{"203.0.113.9"}, "per-client", "lately:{client=203.0.113.9}:per-client"},
		{client, []string{"2001:db8::1"}, "per client", "lately:{client=2001:db8::/64}:per%20client"},
		{both, []string{"203.0.113.9", "a,user=b"}, "login", "lately:{client=203.0.113.9,user=a%2Cuser%3Db}:login"},
		{either, []string{"user:ada"}, "r", "lately:{user|client=user:ada}:r"},
		{match.MustKey("path"), []string{"/{x}/\xff\x00"}, "{r}", "lately:{path=/%7Bx%7D/%FF%00}:%7Br%7D"},
		{match.MustKey("path"), []string{"/" + strings.Repeat("x", 200)}, "r", "lately:{path~hRGjfGvrl8wTs3EiHHvU2iv_NP18JjFDSaaZ9FSzn5k}:r"},
	}
	for _, c := range cases {
		n := newNamer(c.key, c.rule)
		got := n.subject("lately:", joined(t, c.key, c.values...)) + n.after
		if got != c.want {
			t.Errorf("%q under %q is in\n%s\nwant\n%s", c.values, c.rule, got, c.want)
		}
	}
}

// FuzzKeyNames looks for two keys with one name, and for a name whose hash tag is not the
// subject.
func FuzzKeyNames(f *testing.F) {
	f.Add("a", "b", "a,user=b", "c")
	f.Add("", "\xff", "%FF", "~")
	f.Add(strings.Repeat("x", 161), "y", strings.Repeat("x", 160), "xy")
	key := match.MustKey("host", "user")
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		n := newNamer(key, "r")
		name := func(v1, v2 string) (string, bool) {
			k, err := key.Join(nil, v1, v2)
			return n.subject("p:", k) + n.after, err == nil
		}
		a, okA := name(a1, a2)
		b, okB := name(b1, b2)
		if okA && okB && a == b && (a1 != b1 || a2 != b2) {
			t.Errorf("%q, %q and %q, %q are both in %q", a1, a2, b1, b2, a)
		}
		if tag := a[strings.IndexByte(a, '{'):]; strings.Count(tag, "{") != 1 || strings.Count(tag, "}") != 1 || len(a) > 250 {
			t.Errorf("%q has not one hash tag, or is too long", a)
		}
	})
}
