package match

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// A key with alternatives counts an event by the first field that it has, with the name of the field, so that values of two
// fields are never one key.
func TestKeyWithAlternatives(t *testing.T) {
	k := newKey(t, Fold{}, "user|client", "path")
	if got := k.Fields(); !slices.Equal(got, []string{"user | client", "path"}) {
		t.Errorf("the fields are %q", got)
	}
	for _, c := range []struct {
		user, client string
		want         string // the first value; "" when there is no key
	}{
		{"ada", "192.0.2.1", "user:ada"},
		{"", "192.0.2.1", "client:192.0.2.1"},
		{"", "2001:db8::1", "client:2001:db8::/64"},
		{"192.0.2.1", "", "user:192.0.2.1"},
		{"client:192.0.2.1", "192.0.2.1", "user:client:192.0.2.1"},
		{"", "", ""},
	} {
		var e Event
		e.SetString(User, c.user)
		e.SetString(Client, c.client)
		e.SetString(Path, "/a/../b")
		key, ok := k.Append(nil, &e)
		if ok != (c.want != "") {
			t.Errorf("%+v: there is a key: %t", c, ok)
			continue
		}
		if !ok {
			continue
		}
		var values []string
		for v := range k.Parts(key) {
			values = append(values, string(v))
		}
		if !slices.Equal(values, []string{c.want, "/b"}) {
			t.Errorf("%+v: the key is %q; want %q and /b", c, values, c.want)
		}
	}
	if got, err := k.Join(nil, "client:2001:db8::9", "/x//y"); err != nil || !strings.Contains(string(got), "client:2001:db8::/64") || !strings.Contains(string(got), "/x/y") {
		t.Errorf("Join gives %q, %v", got, err)
	}
	for _, wrong := range []string{"ada", "host:x", "user:", ":ada"} {
		if _, err := k.Join(nil, wrong, "/"); err == nil || !strings.Contains(err.Error(), "must be user:VALUE or client:VALUE") {
			t.Errorf("Join of %q: %v", wrong, err)
		}
	}
	for _, wrong := range [][]string{{"user|"}, {"|"}, {"user|user"}, {"user|client", "user | client"}, {strings.Repeat("a|", 8) + "b"}, {"a|b|c|d|e|f|g|h|i"}} {
		if _, err := NewKey(Fold{}, wrong...); err == nil {
			t.Errorf("NewKey of %q is accepted", wrong)
		}
	}
}

// No two events with different values, or values of different fields, have one key.
func TestAlternativesDoNotCollide(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	words := []string{"", "a", "user:a", "client:a", "user", "client", ":", "a:", "192.0.2.1", "client:192.0.2.1"}
	k := newKey(t, Fold{}, "user | client")
	of := map[string][2]string{}
	for range 2000 {
		user, client := words[rnd.IntN(len(words))], words[rnd.IntN(len(words))]
		var e Event
		e.SetString(User, user)
		e.SetString(Client, client)
		key, ok := k.Append(nil, &e)
		if !ok {
			continue
		}
		who := [2]string{"user", user}
		if user == "" {
			who = [2]string{"client", client}
		}
		if before, seen := of[string(key)]; seen && before != who {
			t.Fatalf("seed %d: %q and %q have one key, %q", seed, before, who, key)
		}
		of[string(key)] = who
	}
}

func TestAlternativesDoNotAllocate(t *testing.T) {
	k := newKey(t, Fold{}, "user | client", "host")
	var e Event
	e.SetString(Client, "192.0.2.1")
	e.SetString(Host, "a.example")
	dst := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() { dst, _ = k.Append(dst[:0], &e) }); n != 0 {
		t.Errorf("Append allocates %v times", n)
	}
}
