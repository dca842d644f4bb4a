package match

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// joined are values for each field that a test key may have: values that are folded or cleaned, plain ones, and bytes that
// stand between values.
var joined = map[string][]string{
	"client": {"203.0.113.9", "::ffff:203.0.113.9", "2001:DB8::1:2", "2001:db8::/64", "an api key", "\t", "\xff\x00"},
	"path":   {"/", "/a/../b", "//a//%6C", "/a%2Fb", "*", "/%25", "no/../slash"},
	"user":   {"root", "a b", "ünï", "\t\t", strings.Repeat("long", 100)},
	"tenant": {"t", "\x01", "-"},
}

// TestJoinIsAppend joins values, and makes the key of an event that has them: the
// keys are the same.
func TestJoinIsAppend(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	folds := []Fold{{}, {Off: true}, {IPv4: 24, IPv6: 48}}
	lists := [][]string{{"client"}, {"path"}, {"user"}, {"client", "user"}, {"user", "path", "client"}, {"tenant", "client", "path", "user"}}
	for range 2000 {
		names := lists[rnd.IntN(len(lists))]
		k := newKey(t, folds[rnd.IntN(len(folds))], names...)
		var e Event
		var values []string
		for _, name := range names {
			v := joined[name][rnd.IntN(len(joined[name]))]
			values = append(values, v)
			e.SetNamedString(name, v)
		}
		want, ok := k.Append([]byte("before"), &e)
		got, err := k.Join([]byte("before"), values...)
		if err != nil || !ok || !bytes.Equal(got, want) {
			t.Fatalf("%v of %v: Join returns %q, %v; Append %q", values, names, got, err, want)
		}
	}
}

func TestJoinErrors(t *testing.T) {
	one, two := newKey(t, Fold{}, "client"), newKey(t, Fold{}, "client", "user")
	for _, c := range []struct {
		k      Key
		values []string
		want   string
	}{
		{one, nil, "number of key values: 0: must be 1: client"},
		{one, []string{"a", "b"}, "number of key values: 2: must be 1: client"},
		{one, []string{""}, "key value 1: client: empty: must have a value"},
		{two, []string{"a"}, "number of key values: 1: must be 2: client, user"},
		{two, []string{"a", ""}, "key value 2: user: empty: must have a value"},
		{Key{}, nil, "key: no field: must be made with NewKey"},
	} {
		got, err := c.k.Join([]byte("x"), c.values...)
		if err == nil || err.Error() != c.want || string(got) != "x" {
			t.Errorf("%q: %q, %v; want %s", c.values, got, err, c.want)
		}
	}
}

func TestJoinDoesNotAllocate(t *testing.T) {
	k := newKey(t, Fold{}, "client", "path")
	dst := make([]byte, 0, 200)
	n := testing.AllocsPerRun(100, func() {
		dst, _ = k.Join(dst[:0], "2001:db8::1", "/a/../b")
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
