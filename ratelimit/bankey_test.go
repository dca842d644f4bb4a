package ratelimit

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// TestBanKeyIsTheEventsKey takes the key of an event apart, as a list of bans
// has it, and together again: it is the same, whatever the bytes are.
func TestBanKeyIsTheEventsKey(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	values := func(f string) string {
		switch rnd.IntN(8) {
		case 0:
			return "192.0.2.1"
		case 1:
			return "::ffff:192.0.2.77"
		case 2:
			return "2001:db8:1:2:3:4:5:6%eth0"
		case 3:
			return "/a/%2565/../%41//b/"
		case 4:
			return "2001:db8::/64"
		}
		b := make([]byte, 1+rnd.IntN(200))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return string(b)
	}
	names := []string{"client", "path", "user", "object", "x-team", "host"}
	for range 5000 {
		fold := match.Fold{IPv4: rnd.IntN(33), IPv6: rnd.IntN(129), Off: rnd.IntN(4) == 0}
		rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		fields := names[:1+rnd.IntN(4)]
		k := must.Get(match.NewKey(fold, fields...))(t)
		var e match.Event
		for _, f := range fields {
			e.SetNamedString(f, values(f))
		}
		want, ok := k.Append(nil, &e)
		if !ok {
			t.Fatal("the event has no key")
		}
		got, err := banKey(k, banValues(k, want))
		if err != nil || string(got) != string(want) {
			t.Fatalf("fields %v, fold %+v: %q, %v; want %q", fields, fold, got, err, want)
		}
	}
}

func TestBanKeyFoldsTheClient(t *testing.T) {
	k := must.Get(match.NewKey(match.Fold{}, "client", "path"))(t)
	got, err := banKey(k, []string{"2001:DB8:0:1::5", "/a/../%41"})
	if want := []string{"2001:db8:0:1::/64", "/a/../%41"}; err != nil || !slices.Equal(banValues(k, got), want) {
		t.Errorf("%q, %v, want %q", banValues(k, got), err, want)
	}
	for name, c := range map[string]struct {
		values []string
		want   string
	}{
		"one":   {[]string{"a"}, "number of key values: 1: must be 2: client, path"},
		"empty": {[]string{"a", ""}, "key value 2: path: empty: must have a value"},
		"long":  {[]string{"a", strings.Repeat("x", 1024)}, "key: 1028 bytes: must be at most 1024"},
	} {
		if _, err := banKey(k, c.values); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}
