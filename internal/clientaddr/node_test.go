package clientaddr

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParseNode(t *testing.T) {
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
		addr, ok := ParseNode(c.text)
		got := ""
		if ok {
			got = addr.String()
		}
		if got != c.want {
			t.Errorf("ParseNode(%q) = %q; want %q", c.text, got, c.want)
		}
	}
}

// RFC 6052: the clients of one translator are as many as their IPv4 addresses,
// but nobody becomes a private address in this way.
func TestTranslated(t *testing.T) {
	for _, c := range []struct{ addr, want string }{
		{"64:ff9b::c633:6407", "198.51.100.7"},
		{"64:ff9b::198.51.100.7", "198.51.100.7"},
		{"64:ff9b::10.0.0.1", "64:ff9b::a00:1"},
		{"64:ff9b::172.16.0.1", "64:ff9b::ac10:1"},
		{"64:ff9b::192.168.0.1", "64:ff9b::c0a8:1"},
		{"64:ff9b::127.0.0.1", "64:ff9b::7f00:1"},
		{"64:ff9b::169.254.169.254", "64:ff9b::a9fe:a9fe"},
		{"64:ff9b::224.0.0.1", "64:ff9b::e000:1"},
		{"64:ff9b::255.255.255.255", "64:ff9b::ffff:ffff"},
		{"64:ff9b::", "64:ff9b::"},
		{"64:ff9b::0.1.2.3", "64:ff9b::1:203"},
		{"64:ff9b:1::198.51.100.7", "64:ff9b:1::c633:6407"}, // local use, RFC 8215: not ours to know
		{"64:ff9b::1:198.51.100.7", "64:ff9b::1:c633:6407"},
		{"2001:db8::198.51.100.7", "2001:db8::c633:6407"},
		{"198.51.100.7", "198.51.100.7"},
	} {
		if got := Translated(netip.MustParseAddr(c.addr)).String(); got != c.want {
			t.Errorf("Translated(%s) = %s; want %s", c.addr, got, c.want)
		}
	}
	if got := Translated(netip.Addr{}); got.IsValid() {
		t.Errorf("no address is translated to %v", got)
	}
}
