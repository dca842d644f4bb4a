package keyvalue_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// shapeNames are the names of fields that are folded, that are not, and that look
// like what stands before a name.
var shapeNames = []string{"client", "path", "user", "a", "ab", "b", "\x01a", "\x01", "\x02", "\x00"}

func newKey(t *testing.T, fold match.Fold, names ...string) match.Key {
	t.Helper()
	k := must.Get(match.NewKey(fold, names...))(t)
	return k
}

// randomKey returns a key of few fields and few folds, so that equal ones are
// frequent, or the zero Key.
func randomKey(t *testing.T, rnd *rand.Rand) match.Key {
	names := make([]string, rnd.IntN(4))
	for i, n := range rnd.Perm(len(shapeNames))[:len(names)] {
		names[i] = shapeNames[n]
	}
	if len(names) == 0 {
		return match.Key{}
	}
	fold := match.Fold{IPv4: []int{0, 32, 24, 1}[rnd.IntN(4)], IPv6: []int{0, 64, 56, 128}[rnd.IntN(4)], Off: rnd.IntN(4) == 0}
	return newKey(t, fold, names...)
}

// TestKeyShape compares random keys: their shapes are the same when, and only when,
// the keys are equal. The control is a shape without the fold, which it finds out.
func TestKeyShape(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	differ := func(shape func(match.Key) []byte) (a, b match.Key, differ bool) {
		byShape := make(map[string]match.Key)
		var keys []match.Key
		for range 3000 {
			k := randomKey(t, rnd)
			s := string(shape(k))
			if o, ok := byShape[s]; ok && !keyvalue.Equal(o, k) {
				return o, k, true
			}
			byShape[s] = k
			keys = append(keys, k)
		}
		for i, k := range keys {
			for _, o := range keys[:min(i, 200)] {
				if keyvalue.Equal(k, o) && !bytes.Equal(shape(k), shape(o)) {
					return k, o, true
				}
			}
		}
		return a, b, false
	}
	if a, b, bad := differ(func(k match.Key) []byte { return keyvalue.AppendShape(nil, k) }); bad {
		t.Errorf("seed %d: %v %+v and %v %+v: equal %v, shapes %q and %q", seed, a, a.Fold(), b, b.Fold(), keyvalue.Equal(a, b), keyvalue.AppendShape(nil, a), keyvalue.AppendShape(nil, b))
	}
	if _, _, bad := differ(func(k match.Key) []byte { return fmt.Append(nil, k.Fields()) }); !bad {
		t.Errorf("seed %d: the test does not see that the fold is missing", seed)
	}
}

// The shape is written to files, so it must not change.
func TestKeyShapeBytes(t *testing.T) {
	for want, k := range map[string]match.Key{
		"\x02\x06client\x01t\x00\x20\x40": newKey(t, match.Fold{}, "client", "t"),
		"\x01\x06client\x00\x18\x38":      newKey(t, match.Fold{IPv4: 24, IPv6: 56}, "client"),
		"\x01\x04path\x01\x00\x00":        newKey(t, match.Fold{Off: true}, "path"),
		"\x01\x04user\x00\x00\x00":        newKey(t, match.Fold{Off: true, IPv4: 8}, "user"),
		"\x00\x00\x00\x00":                {},
	} {
		if got := keyvalue.AppendShape([]byte("before "), k); string(got) != "before "+want {
			t.Errorf("%v: %q, want %q after what was there", k, got, want)
		}
	}
}

func ExampleAppendShape() {
	written, _ := match.NewKey(match.Fold{}, "client")
	read, _ := match.NewKey(match.Fold{IPv6: 64}, "client") // 64 is the default
	other, _ := match.NewKey(match.Fold{IPv6: 56}, "client")
	fmt.Println(bytes.Equal(keyvalue.AppendShape(nil, written), keyvalue.AppendShape(nil, read)))
	fmt.Println(bytes.Equal(keyvalue.AppendShape(nil, written), keyvalue.AppendShape(nil, other)))
	// Output:
	// true
	// false
}
