package address

import (
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

// parseReference is Parse by netip alone, but for zone and mapping.
func parseReference(text string) (netip.Addr, error) {
	if m := withPort.FindStringSubmatch(text); m != nil {
		text = m[1] + m[2]
	}
	if _, zone, ok := strings.Cut(text, "%"); ok && !isToken(zone) {
		return netip.Addr{}, errors.New("odd zone")
	}
	return netip.ParseAddr(text)
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

// TestParseNearMisses changes, drops and doubles bytes of addresses: netip must parse the result if Parse does.
func TestParseNearMisses(t *testing.T) {
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
		checkParse(t, string(b))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkParse(t *testing.T, s string) {
	t.Helper()
	got, ok := Parse(s)
	want, err := parseReference(s)
	if ok != (err == nil) || ok && got != want.WithZone("").Unmap() {
		t.Errorf("Parse(%q) = %v, %t; want %v, %v", s, got, ok, want, err)
	}
}

func TestParse(t *testing.T) {
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
		{"::ffff:1.2.3.4", "1.2.3.4"}, // as short as an IPv4 address can be
		{"0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"},
		{"0000:0000:0000:0000:0000:ffff:c000:0201", "192.0.2.1"},
		{"::192.0.2.1", "::c000:201"}, // compatible, not mapped

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
		{"192.0.2.1.5", ""},
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
		addr, ok := Parse(c.text)
		got := ""
		if ok {
			got = addr.String()
		}
		if got != c.want {
			t.Errorf("Parse(%q) = %q; want %q", c.text, got, c.want)
		}
	}
}

// networkReference is AppendNetwork by netip alone.
func networkReference(client string, bits4, bits6 int) string {
	a, err := parseReference(client)
	if err != nil {
		return client
	}
	a = a.WithZone("").Unmap()
	bits := bits6
	if a.Is4() {
		bits = bits4
	}
	if bits == a.BitLen() {
		return a.String()
	}
	return netip.PrefixFrom(a, bits).Masked().String()
}

// TestAppendNetwork has random addresses in all notations: the network equals the
// reference's, and is the same for all notations of one address.
func TestAppendNetwork(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		bits4, bits6 := 1+rng.IntN(32), 1+rng.IntN(128)
		a := randomAddr(rng)
		first := networkReference(a.String(), bits4, bits6)
		for _, text := range append(notations(rng, a), "host."+a.String()) {
			want := networkReference(text, bits4, bits6)
			got := string(AppendNetwork([]byte("before "), []byte(text), bits4, bits6))
			if got != "before "+want || want != first && want != text {
				t.Fatalf("seed %d: %d %d: the network of %q is %q, want %q; that of %v is %q", seed, bits4, bits6, text, got, want, a, first)
			}
		}
	}
}

// TestAppendNetworkDoesNotAllocate includes other texts, which are as frequent.
func TestAppendNetworkDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 256)
	for _, client := range []string{
		"192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "fe80::1%eth0", "www.example.com", "aa:bb:cc:dd:ee:ff", "key", strings.Repeat("x", 200),
	} {
		for _, bits := range [][2]int{{32, 64}, {24, 56}} {
			b := []byte(client)
			if n := testing.AllocsPerRun(100, func() { dst = AppendNetwork(dst[:0], b, bits[0], bits[1]) }); n != 0 {
				t.Errorf("%v: %q allocates %v times", bits, client, n)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"192.0.2.1:80", "::ffff:192.0.2.1", "[2001:db8::1%eth0]:_x", "1:2:3:4:5:6:7::", "1:2:3:4:5:6:1.2.3.4", "::1.2.3.4", "1::2::3", "www.example.com", ""} {
		f.Add(s)
	}
	f.Fuzz(checkParse)
}

func TestParsePrefix(t *testing.T) {
	for s, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "192.0.2.0/24": "192.0.2.0/24", "0.0.0.0/0": "0.0.0.0/0",
		"::ffff:192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.0/120": "192.0.2.0/24", "::ffff:0:0/96": "0.0.0.0/0",
		"2001:DB8::/32": "2001:db8::/32", "::1": "::1/128", "::/0": "::/0",
	} {
		if got, err := ParsePrefix(s); err != nil || got.String() != want {
			t.Errorf("ParsePrefix(%q) = %v, %v; want %s", s, got, err, want)
		}
	}
	const must = "must be an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24"
	for s, want := range map[string]string{
		"":                     `"": ` + must,
		"example.com":          `"example.com": ` + must,
		"fe80::1%eth0":         `"fe80::1%eth0": ` + must,
		"192.0.2.0/33":         `"192.0.2.0/33": ` + must,
		"192.0.2.0/":           `"192.0.2.0/": ` + must,
		"192.0.2.1/24":         `"192.0.2.1/24": bits beyond the prefix length: did you mean 192.0.2.0/24?`,
		"2001:db8::1/32":       `"2001:db8::1/32": bits beyond the prefix length: did you mean 2001:db8::/32?`,
		"::ffff:192.0.2.1/120": `"::ffff:192.0.2.1/120": bits beyond the prefix length: did you mean 192.0.2.0/24?`,
		"::ffff:192.0.2.0/95":  `"::ffff:192.0.2.0/95": spans IPv4 and IPv6: must be the IPv4 prefix`,
	} {
		if got, err := ParsePrefix(s); err == nil || err.Error() != want {
			t.Errorf("ParsePrefix(%q) = %v, %v; want %s", s, got, err, want)
		}
	}
}
