package match

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

var withPort = regexp.MustCompile(`^(?:\[([^\]]*)\]|([0-9.]{7,}))(?::(?:[0-9]{1,5}|_[!#$%&'*+.^_~|\x600-9A-Za-z-]+))?$`)

// parseReference is parseAddr by netip alone, but for zone and mapping.
func parseReference(text string) (netip.Addr, error) {
	if m := withPort.FindStringSubmatch(text); m != nil {
		text = m[1] + m[2]
	}
	if _, zone, ok := strings.Cut(text, "%"); ok && !isToken(zone) {
		return netip.Addr{}, errors.New("odd zone")
	}
	return netip.ParseAddr(text)
}

// foldReference is Fold.Append as its documentation has it, by netip alone.
func foldReference(f Fold, client string) string {
	a, err := parseReference(client)
	if f.Off || err != nil {
		return client
	}
	a = a.WithZone("").Unmap()
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
		{Fold{}, "0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"},
		{Fold{}, "0000:0000:0000:0000:0000:ffff:c000:0201", "192.0.2.1"},
		{Fold{}, "::ffff:192.0.2.1%eth0", "192.0.2.1"},
		{Fold{}, "::ffff:1.2.3.4", "1.2.3.4"}, // as short as an IPv4 address can be
		{Fold{}, "::192.0.2.1", "::/64"},      // compatible, not mapped
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
		{Fold{}, "192.0.2.256", "192.0.2.256"},
		{Fold{}, "192.0.2", "192.0.2"},
		{Fold{}, "192.0.2.1.5", "192.0.2.1.5"},
		{Fold{}, "192.0.2.1%eth0", "192.0.2.1%eth0"},
		{Fold{}, "[2001:db8::1]", "2001:db8::/64"},
		{Fold{}, "[2001:db8::1]:443", "2001:db8::/64"},
		{Fold{}, "[fe80::1%eth0]:443", "fe80::/64"},
		{Fold{}, "[::ffff:192.0.2.1]:5556", "192.0.2.1"},
		{Fold{}, "192.0.2.1:5556", "192.0.2.1"},
		{Fold{}, "0.0.0.0:1", "0.0.0.0"},
		{Fold{IPv4: 24}, "192.0.2.1:65535", "192.0.2.0/24"},
		{Fold{IPv6: 128}, "2001:db8::1:443", "2001:db8::1:443"}, // no port without brackets
		{Fold{}, "192.0.2.1:", "192.0.2.1:"},                    // no address from here on
		{Fold{}, "192.0.2.1:_hidden", "192.0.2.1"},
		{Fold{}, "192.0.2.1:_", "192.0.2.1:_"},
		{Fold{}, "192.0.2.1:http", "192.0.2.1:http"},
		{Fold{}, "192.0.2.1:123456", "192.0.2.1:123456"},
		{Fold{}, "[2001:db8::1", "[2001:db8::1"},
		{Fold{}, "[2001:db8::1]443", "[2001:db8::1]443"},
		{Fold{}, "[]:443", "[]:443"},
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

// TestParseAddrNearMisses changes, drops and doubles bytes of addresses: what
// is an address then is one for netip, too.
func TestParseAddrNearMisses(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	const bytesOfAddresses = "0123456789abcfF:::..%g"
	for range 50_000 {
		texts := notations(rng, randomAddr(rng))
		b := []byte(texts[rng.IntN(len(texts))])
		for range 1 + rng.IntN(2) {
			i, c := rng.IntN(len(b)), bytesOfAddresses[rng.IntN(len(bytesOfAddresses))]
			switch rng.IntN(3) {
			case 0:
				b[i] = c
			case 1:
				b = append(b[:i], b[i+1:]...)
			default:
				b = append(b[:i], append([]byte{c}, b[i:]...)...)
			}
		}
		checkParseAddr(t, string(b))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkParseAddr(t *testing.T, s string) {
	t.Helper()
	got, ok := parseAddr([]byte(s))
	want, err := parseReference(s)
	if ok != (err == nil) || ok && got != want.WithZone("").Unmap() {
		t.Errorf("parseAddr(%q) = %v, %t; want %v, %v", s, got, ok, want, err)
	}
}

func TestParseAddr(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"192.0.2.1:8080", "192.0.2.1"},
		{"192.0.2.1:_hidden", "192.0.2.1"}, // an obfuscated port hides no address
		{"2001:db8::1", "2001:db8::1"},
		{"2001:DB8:0::1", "2001:db8::1"},
		{"[2001:db8::1]", "2001:db8::1"},
		{"[2001:db8::1]:443", "2001:db8::1"},
		{"[192.0.2.1]:443", "192.0.2.1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
		{"::FFFF:C000:0201", "192.0.2.1"},
		{"[::ffff:192.0.2.1]:443", "192.0.2.1"},
		{"fe80::1%eth0", "fe80::1"},
		{"[fe80::1%25eth0]:80", "fe80::1"},
		{"::ffff:192.0.2.1%eth0", "192.0.2.1"},
		{"::", "::"},

		{"", ""},
		{"unknown", ""},
		{"_hidden", ""},
		{"localhost", ""},
		{"example.com:80", ""},
		{"192.0.2.1:", ""},
		{"192.0.2.1:80x", ""},
		{"192.0.2.1:123456", ""},
		{"192.0.2.1:_", ""},
		{"192.0.2.1 ", ""},
		{"192.0.2.1;", ""},
		{"192.0.2.1%eth0", ""},
		{"192.0.2.01", ""},
		{"192.0.2", ""},
		{"192.0.2.256", ""},
		{"0xC0000201", ""},
		{"3221225985", ""},
		{"[2001:db8::1", ""},
		{"[2001:db8::1]443", ""},
		{"[2001:db8::1]:", ""},
		{"[]", ""},
		{"[]:80", ""},
		{"2001:db8::1%", ""},
		{"2001:db8::1::", ""},
		{"10.0.0.1, 192.0.2.1", ""},
		{strings.Repeat("1", 1000), ""},
		{"192.0.2.1\x00", ""},
		{"１９２.0.2.1", ""}, // full-width digits
	} {
		addr, ok := ParseAddr(c.text)
		got := ""
		if ok {
			got = addr.String()
		}
		if got != c.want {
			t.Errorf("ParseAddr(%q) = %q; want %q", c.text, got, c.want)
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

func FuzzFold(f *testing.F) {
	for _, s := range []string{"192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1%eth0", "1:2:3:4:5:6:7::", "1:2:3:4:5:6:1.2.3.4", "::1.2.3.4", "1::2::3", "www.example.com", ""} {
		f.Add([]byte(s), uint8(24), uint8(56))
	}
	f.Fuzz(func(t *testing.T, client []byte, v4, v6 uint8) {
		kept := bytes.Clone(client)
		checkParseAddr(t, string(client))
		checkFold(t, Fold{IPv4: int(v4 % 33), IPv6: int(v6 % 129)}, string(client))
		if !bytes.Equal(client, kept) {
			t.Errorf("the client %q was changed to %q", kept, client)
		}
	})
}
