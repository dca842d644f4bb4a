package match

import (
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/address"
	"github.com/lately-go/lately/internal/test/randtest"
)

// foldReference is Fold.Append as its documentation has it, by the addresses of netip.
func foldReference(f Fold, client string) string {
	a, ok := address.Parse(client)
	if f.Off || !ok {
		return client
	}
	bits := 64
	switch {
	case a.Is4() && f.IPv4 != 0:
		bits = f.IPv4
	case a.Is4():
		bits = 32
	case f.IPv6 != 0:
		bits = f.IPv6
	}
	if bits == a.BitLen() {
		return a.String()
	}
	return netip.PrefixFrom(a, bits).Masked().String()
}

func checkFold(t *testing.T, f Fold, client string) {
	t.Helper()
	got := string(f.Append([]byte("before "), []byte(client)))
	if want := "before " + foldReference(f, client); got != want {
		t.Errorf("%+v.Append(%q) = %q; want %q", f, client, got, want)
	}
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		fold         Fold
		client, want string
	}{
		{Fold{}, "192.0.2.1", "192.0.2.1"},
		{Fold{}, "::ffff:192.0.2.1", "192.0.2.1"},
		{Fold{}, "::FFFF:C000:0201", "192.0.2.1"},
		{Fold{}, "::192.0.2.1", "::/64"}, // compatible, not mapped
		{Fold{}, "2001:db8::1", "2001:db8::/64"},
		{Fold{}, "2001:DB8:0:0:ffff::1", "2001:db8::/64"},
		{Fold{}, "fe80::1%eth0", "fe80::/64"},
		{Fold{}, "fe80::1%", "fe80::1%"}, // no address
		{Fold{}, "::", "::/64"},
		{Fold{IPv6: 56}, "2001:db8:1:2ff::1", "2001:db8:1:200::/56"},
		{Fold{IPv6: 128}, "2001:DB8:0:0::1", "2001:db8::1"},
		{Fold{IPv6: 1}, "ffff::", "8000::/1"},
		{Fold{IPv4: 24}, "192.0.2.1", "192.0.2.0/24"},
		{Fold{IPv4: 24}, "::ffff:192.0.2.1", "192.0.2.0/24"},
		{Fold{IPv4: 1}, "192.0.2.1", "128.0.0.0/1"},
		{Fold{}, "192.0.2.01", "192.0.2.01"}, // no address: a leading zero
		{Fold{}, "[2001:db8::1]", "2001:db8::/64"},
		{Fold{}, "[2001:db8::1]:443", "2001:db8::/64"},
		{Fold{}, "[fe80::1%eth0]:443", "fe80::/64"},
		{Fold{}, "[::ffff:192.0.2.1]:5556", "192.0.2.1"},
		{Fold{}, "192.0.2.1:5556", "192.0.2.1"},
		{Fold{IPv4: 24}, "192.0.2.1:65535", "192.0.2.0/24"},
		{Fold{}, "192.0.2.1:http", "192.0.2.1:http"},
		{Fold{}, "[www.example.com]:443", "[www.example.com]:443"},
		{Fold{}, "key-abcdef:1234", "key-abcdef:1234"},
		{Fold{Off: true}, "192.0.2.1:5556", "192.0.2.1:5556"},
		{Fold{}, "www.example.com", "www.example.com"},
		{Fold{}, "key-1234", "key-1234"},
		{Fold{}, "", ""},
		{Fold{Off: true}, "::ffff:192.0.2.1", "::ffff:192.0.2.1"},
		{Fold{Off: true, IPv4: 24}, "192.0.2.1", "192.0.2.1"},
	} {
		if got := string(c.fold.Append(nil, []byte(c.client))); got != c.want {
			t.Errorf("%+v.Append(%q) = %q; want %q", c.fold, c.client, got, c.want)
		}
		checkFold(t, c.fold, c.client)
	}
}

func TestFoldValidate(t *testing.T) {
	for _, f := range []Fold{{}, {IPv4: 1, IPv6: 1}, {IPv4: 32, IPv6: 128}, {Off: true}} {
		if err := f.validate(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for want, f := range map[string]Fold{
		"ipv4: prefix length 33: must be 1 to 32":   {IPv4: 33},
		"ipv4: prefix length -1: must be 1 to 32":   {IPv4: -1},
		"ipv6: prefix length 129: must be 1 to 128": {IPv6: 129},
		"ipv6: prefix length -1: must be 1 to 128":  {IPv6: -1},
	} {
		if err := f.validate(); err == nil || err.Error() != want {
			t.Errorf("%+v: %v; want %s", f, err, want)
		}
	}
}

// notations writes a in several ways.
func notations(rng *rand.Rand, a netip.Addr) []string {
	s := []string{a.String(), a.StringExpanded(), strings.ToUpper(a.String())}
	if a.Is4() {
		mapped := netip.AddrFrom16(a.As16())
		s = append(s, mapped.String(), mapped.StringExpanded(), "::ffff:"+a.String(), "0:0:0::0:FFFF:"+a.String())
	}
	for _, text := range s {
		if strings.Contains(text, ":") {
			s = append(s, text+"%eth"+string(rune('0'+rng.IntN(10))))
		}
	}
	for _, text := range s {
		if strings.Contains(text, ":") {
			text = "[" + text + "]"
		}
		s = append(s, text+":"+strconv.Itoa(rng.IntN(1<<16)))
	}
	return s
}

// randomAddr returns an address with runs of zeros as frequent as in life.
func randomAddr(rng *rand.Rand) netip.Addr {
	var ip [16]byte
	for i := range ip {
		if rng.IntN(2) == 0 {
			ip[i] = byte(rng.Uint32())
		}
	}
	if rng.IntN(3) == 0 {
		return netip.AddrFrom4([4]byte(ip[:4]))
	}
	return netip.AddrFrom16(ip)
}

// TestFoldRandom folds random addresses in all notations: each as the reference
// has it, and all of one address alike.
func TestFoldRandom(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		f := Fold{IPv4: rng.IntN(33), IPv6: rng.IntN(129)}
		a := randomAddr(rng)
		first := ""
		for i, text := range notations(rng, a) {
			checkFold(t, f, text)
			got := string(f.Append(nil, []byte(text)))
			if i == 0 {
				first = got
			}
			if got != first {
				t.Errorf("%v is %q written %q, and %q otherwise", a, got, text, first)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestFoldDoesNotAllocate includes what is no address, which is as frequent.
func TestFoldDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 256)
	for _, client := range []string{
		"192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "fe80::1%eth0", "www.example.com", "aa:bb:cc:dd:ee:ff", "key", strings.Repeat("x", 200),
	} {
		for _, f := range []Fold{{}, {IPv4: 24, IPv6: 56}, {Off: true}} {
			b := []byte(client)
			if n := testing.AllocsPerRun(100, func() { dst = f.Append(dst[:0], b) }); n != 0 {
				t.Errorf("%+v.Append(%q) allocates %v times", f, client, n)
			}
		}
	}
}
