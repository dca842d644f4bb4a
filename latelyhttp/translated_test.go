package latelyhttp

import (
	"net/netip"
	"testing"
)

// RFC 6052: the clients of one translator are distinguished by their IPv4 addresses, but no client becomes a private
// address in this way.
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
		{"64:ff9b:1::198.51.100.7", "64:ff9b:1::c633:6407"}, // local use, RFC 8215: unknown here
		{"64:ff9b::1:198.51.100.7", "64:ff9b::1:c633:6407"},
		{"2001:db8::198.51.100.7", "2001:db8::c633:6407"},
		{"198.51.100.7", "198.51.100.7"},
	} {
		if got := translated(netip.MustParseAddr(c.addr)).String(); got != c.want {
			t.Errorf("translated(%s) = %s; want %s", c.addr, got, c.want)
		}
	}
	if got := translated(netip.Addr{}); got.IsValid() {
		t.Errorf("no address is translated to %v", got)
	}
}
