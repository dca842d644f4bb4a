package keyvalue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

func TestHas(t *testing.T) {
	join := func(k match.Key, values ...string) []byte {
		key := must.Get(k.Join(nil, values...))(t)
		return key
	}
	client, pair, either := newKey(t, match.Fold{}, "client"), newKey(t, match.Fold{}, "client", "path"), newKey(t, match.Fold{}, "user | client")
	for _, c := range []struct {
		k    match.Key
		key  []byte
		v    string
		want bool
	}{
		{client, join(client, "192.0.2.1"), "192.0.2.1", true},
		{client, join(client, "192.0.2.1"), "::ffff:192.0.2.1", true},
		{client, join(client, "2001:db8::1"), "2001:db8::2", true}, // in the same /64
		{client, join(client, "2001:db8::1"), "2001:db8:0:1::2", false},
		{client, join(client, "192.0.2.1"), "192.0.2.11", false},
		{client, join(client, "192.0.2.1"), "", false},
		{pair, join(pair, "192.0.2.1", "/a"), "/a", true},
		{pair, join(pair, "192.0.2.1", "/a"), "[192.0.2.1]:80", true},
		{pair, join(pair, "192.0.2.1", "/a"), "/", false},
		{either, join(either, "user:ada"), "ada", true},
		{either, join(either, "user:ada"), "user:ada", true},
		{either, join(either, "user:192.0.2.1"), "::ffff:192.0.2.1", false}, // a user, whatever the name is
		{either, join(either, "client:192.0.2.1"), "::ffff:192.0.2.1", true},
		{match.Key{}, nil, "", false},
	} {
		if got := keyvalue.Has(c.k, c.key, c.v); got != c.want {
			t.Errorf("%v: %q has %q: %v, want %v", c.k, c.key, c.v, got, c.want)
		}
	}
}

func TestFields(t *testing.T) {
	for _, c := range []struct {
		names  []string
		want   []string
		client int
	}{
		{[]string{"user | client", "path"}, []string{"user", "client", "path"}, 0},
		{[]string{"path", "client"}, []string{"path", "client"}, 1},
		{[]string{"path", "user"}, []string{"path", "user"}, -1},
		{[]string{"clients"}, []string{"clients"}, -1},
	} {
		k := newKey(t, match.Fold{}, c.names...)
		if got := keyvalue.Fields(k); !slices.Equal(got, c.want) {
			t.Errorf("%v has the fields %v, want %v", k, got, c.want)
		}
		if got := keyvalue.ClientIndex(k); got != c.client {
			t.Errorf("%v has the client at %d, want %d", k, got, c.client)
		}
	}
}

// The value follows the name of an alternative, if the key has this alternative.
func TestOf(t *testing.T) {
	k := newKey(t, match.Fold{}, "user | client", "tenant")
	for _, c := range []struct{ value, client, user string }{
		{"client:192.0.2.1", "192.0.2.1", ""},
		{"user:ada", "", "ada"},
		{"user:client:192.0.2.1", "", "client:192.0.2.1"},
	} {
		key := must.Get(k.Join(nil, c.value, "acme"))(t)
		if got := string(keyvalue.Client(k.Fields()[0], []byte(c.value))); got != c.client {
			t.Errorf("the client in %q is %q, want %q", c.value, got, c.client)
		}
		for field, want := range map[string]string{"client": c.client, "user": c.user, "tenant": "acme", "user | client": c.value, "path": ""} {
			if got := string(keyvalue.Of(k, key, field)); got != want {
				t.Errorf("%s in %q is %q, want %q", field, key, got, want)
			}
		}
		if got := keyvalue.All(k, string(key)); !slices.Equal(got, []string{c.value, "acme"}) {
			t.Errorf("%q has the values %q", key, got)
		}
		if n := testing.AllocsPerRun(10, func() { keyvalue.Of(k, key, "user") }); n != 0 {
			t.Errorf("Of allocates %v times", n)
		}
	}
	for _, name := range []string{"path", "clients", "a | b"} {
		if got := keyvalue.Client(name, []byte("client:192.0.2.1")); got != nil {
			t.Errorf("a value of %s has the client %q", name, got)
		}
	}
}

// A value that lacks the name of an alternative, or what follows it, is whole.
func TestSplitOfOtherValues(t *testing.T) {
	for _, v := range []string{"", "user", "user:", "users:ada", "ada"} {
		if one, rest := keyvalue.Split("user | client", v); one != "" || rest != "" {
			t.Errorf("%q begins with %q, and %q follows", v, one, rest)
		}
	}
}

func TestKeyEqual(t *testing.T) {
	key := func(fold match.Fold, names ...string) match.Key { return newKey(t, fold, names...) }
	for _, c := range []struct {
		a, b match.Key
		want bool
	}{
		{key(match.Fold{}, "client"), key(match.Fold{IPv4: 32, IPv6: 64}, "client"), true},
		{key(match.Fold{}, "user"), key(match.Fold{IPv4: 8}, "user"), true},
		{key(match.Fold{}, "user"), key(match.Fold{Off: true}, "user"), true},
		{key(match.Fold{}, "path"), key(match.Fold{IPv6: 56}, "path"), true},
		{key(match.Fold{Off: true, IPv4: 8}, "client"), key(match.Fold{Off: true}, "client"), true},
		{key(match.Fold{}, "user|client", "path"), key(match.Fold{}, "user  |client", "path"), true},
		{match.Key{}, match.Key{}, true},

		{key(match.Fold{}, "client"), key(match.Fold{IPv4: 24}, "client"), false},
		{key(match.Fold{}, "client"), key(match.Fold{Off: true}, "client"), false},
		{key(match.Fold{}, "path"), key(match.Fold{Off: true}, "path"), false},
		{key(match.Fold{}, "client", "path"), key(match.Fold{}, "path", "client"), false},
		{key(match.Fold{}, "user|client"), key(match.Fold{}, "client|user"), false},
		{key(match.Fold{}, "client"), key(match.Fold{}, "client", "path"), false},
		{key(match.Fold{}, "a"), key(match.Fold{}, "b"), false},
		{key(match.Fold{}, "a"), match.Key{}, false},
	} {
		if keyvalue.Equal(c.a, c.b) != c.want || keyvalue.Equal(c.b, c.a) != c.want {
			t.Errorf("%v %+v and %v %+v: equal: %t", c.a, c.a.Fold(), c.b, c.b.Fold(), !c.want)
		}
	}
}

// The values in a key make the same key again, and a path in them is not cleaned a second time.
func TestRejoin(t *testing.T) {
	for _, names := range [][]string{{"path"}, {"client"}, {"client", "path"}, {"user | path"}, {"path | client", "user"}, {"path | user", "client"}} {
		for _, value := range []string{"/a/../b", "/a%252Fb", "//x%2525", "2001:db8::1", "ada"} {
			var e match.Event
			for _, field := range []string{"client", "path", "user"} {
				e.SetNamedString(field, value)
			}
			k := newKey(t, match.Fold{}, names...)
			key, _ := k.Append(nil, &e)
			again, err := keyvalue.Rejoin(k, []byte("before"), keyvalue.All(k, string(key))...)
			if err != nil || string(again) != "before"+string(key) {
				t.Errorf("%v of %q: %q, %v; want %q", k, value, again, err, key)
			}
		}
	}
	k := newKey(t, match.Fold{}, "client", "path")
	if key, err := keyvalue.Rejoin(k, nil, "::ffff:192.0.2.1", "/a/../b"); err != nil || !slices.Equal(keyvalue.All(k, string(key)), []string{"192.0.2.1", "/a/../b"}) {
		t.Errorf("%q, %v: a client is folded, and a path stays", key, err)
	}
	if key, err := keyvalue.Rejoin(k, []byte("before"), "192.0.2.1"); err == nil || string(key) != "before" {
		t.Errorf("one value of two: %q, %v", key, err)
	}
}

// MaxFields is the limit of NewKey.
func TestMaxFields(t *testing.T) {
	names := strings.Split("abcdefghi", "")
	if _, err := match.NewKey(match.Fold{}, names[:keyvalue.MaxFields]...); err != nil {
		t.Error(err)
	}
	if _, err := match.NewKey(match.Fold{}, names[:keyvalue.MaxFields+1]...); err == nil {
		t.Error("a key has more fields than MaxFields")
	}
}
