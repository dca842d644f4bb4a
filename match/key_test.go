package match

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

func newKey(t *testing.T, fold Fold, names ...string) Key {
	t.Helper()
	k := must.Get(NewKey(fold, names...))(t)
	return k
}

func TestNewKeyErrors(t *testing.T) {
	nine := strings.Split("a b c d e f g h i", " ")
	for want, names := range map[string][]string{
		"key: no field: must be a field or a list of fields": nil,
		"key: 9 fields: must be at most 8":                   nine,
		"key: empty name: must be the name of a field":       {"client", ""},
		`key: field "path" twice: must be given once`:        {"path", "client", "path"},
	} {
		if _, err := NewKey(Fold{}, names...); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", names, err, want)
		}
	}
	if _, err := NewKey(Fold{}, nine[:8]...); err != nil {
		t.Errorf("eight fields: %v", err)
	}
	if _, err := NewKey(Fold{IPv4: 33}, "client"); err == nil {
		t.Errorf("a bad fold is taken")
	}
}

// parts returns what Parts yields.
func parts(k Key, key []byte) []string {
	var all []string
	for p := range k.Parts(key) {
		all = append(all, string(p))
	}
	return all
}

func TestKey(t *testing.T) {
	var e Event
	e.SetString(Client, "::ffff:192.0.2.1")
	e.SetString(Path, "/a/../b")
	e.SetString(Object, "/a/../b")
	e.SetNamedString("tenant", "t")
	for _, c := range []struct {
		fold  Fold
		names []string
		want  []string
	}{
		{Fold{}, []string{"client"}, []string{"192.0.2.1"}},
		{Fold{Off: true}, []string{"client"}, []string{"::ffff:192.0.2.1"}},
		{Fold{}, []string{"path"}, []string{"/b"}},
		{Fold{Off: true}, []string{"path"}, []string{"/a/../b"}},
		{Fold{}, []string{"object"}, []string{"/a/../b"}},
		{Fold{IPv4: 24}, []string{"tenant", "client", "path"}, []string{"t", "192.0.2.0/24", "/b"}},
		{Fold{}, []string{"user"}, nil},
		{Fold{}, []string{"client", "user"}, nil},
		{Fold{}, []string{"other"}, nil},
	} {
		k := newKey(t, c.fold, c.names...)
		got, ok := k.Append([]byte("before"), &e)
		rest, before := strings.CutPrefix(string(got), "before")
		if !before || ok != (c.want != nil) || !ok && rest != "" {
			t.Errorf("%v: Append returns %q, %t", c.names, got, ok)
			continue
		}
		if ok && !slices.Equal(parts(k, []byte(rest)), c.want) {
			t.Errorf("%v: the parts are %q; want %q", c.names, parts(k, []byte(rest)), c.want)
		}
		if k.String() != strings.Join(c.names, ",") || !slices.Equal(k.Fields(), c.names) {
			t.Errorf("%v: String is %q, Fields %q", c.names, k.String(), k.Fields())
		}
	}
	var zero Key
	if got, ok := zero.Append(nil, &e); ok || len(got) != 0 || len(zero.Fields()) != 0 {
		t.Errorf("the zero Key takes %q, %t", got, ok)
	}
}

// TestKeyUnambiguous makes keys of random values that are easy to mistake for
// each other: two keys are the same when, and only when, all values are, and
// the parts are the values.
func TestKeyUnambiguous(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	k := newKey(t, Fold{}, "a", "b", "c")
	seen := make(map[string]string)
	for range 100_000 {
		var e Event
		values := make([]string, 3)
		for i := range values {
			b := make([]byte, 1+rng.IntN(3))
			if rng.IntN(50) == 0 {
				b = make([]byte, 126+rng.IntN(5)) // the length takes one byte, or two
			}
			for j := range b {
				b[j] = byte(rng.IntN(4)) // lengths look like values
			}
			values[i] = string(b)
			e.SetNamed(string(rune('a'+i)), b)
		}
		got, ok := k.Append(nil, &e)
		if !ok || !slices.Equal(parts(k, got), values) {
			t.Fatalf("seed %d: %q becomes %q, %t, with the parts %q", seed, values, got, ok, parts(k, got))
		}
		text := fmt.Sprintf("%q", values)
		if before, taken := seen[string(got)]; taken && before != text {
			t.Fatalf("seed %d: %s and %s have the same key", seed, before, text)
		}
		seen[string(got)] = text
	}
}

// TestPartsOfForeignBytes takes apart what no key made, and stops early.
func TestPartsOfForeignBytes(t *testing.T) {
	k := newKey(t, Fold{}, "a", "b")
	for _, b := range []string{"", "\x05ab", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x01", "\x80"} {
		if got := parts(k, []byte(b)); len(got) != 0 {
			t.Errorf("the parts of %q are %q", b, got)
		}
	}
	for p := range k.Parts([]byte("\x01a\x01b")) {
		if string(p) != "a" {
			t.Errorf("the first part is %q", p)
		}
		break
	}
}

func TestKeyDoesNotAllocate(t *testing.T) {
	var e Event
	e.SetString(Client, "2001:db8::1")
	e.SetString(Path, "/a/../b")
	e.SetNamedString("tenant", "t")
	dst := make([]byte, 0, 256)
	for _, names := range [][]string{{"client"}, {"path"}, {"client", "path", "tenant"}, {"client", "user"}} {
		k := newKey(t, Fold{}, names...)
		dst, _ = k.Append(dst[:0], &e) // grows the event's scratch
		if n := testing.AllocsPerRun(100, func() { dst, _ = k.Append(dst[:0], &e) }); n != 0 {
			t.Errorf("Append of %v allocates %v times", names, n)
		}
	}
}

// MustKey folds clients by default, and panics for names that NewKey rejects.
func TestMustKey(t *testing.T) {
	want := must.Get(NewKey(Fold{}, "client", "path"))(t)
	if got := MustKey("client", "path"); got.Fold() != want.Fold() || got.String() != want.String() {
		t.Error("MustKey is not NewKey with the default fold")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic without a field")
		}
	}()
	MustKey()
}
