package access_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
)

func TestPeerOf(t *testing.T) {
	for _, x := range []struct {
		addr net.Addr
		want netip.Addr
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, netip.MustParseAddr("192.0.2.1")}, // in 16 bytes
		{&net.TCPAddr{IP: net.IP{192, 0, 2, 1}, Port: 80}, netip.MustParseAddr("192.0.2.1")},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, netip.MustParseAddr("fe80::1")},
		{&net.TCPAddr{}, netip.Addr{}},
		{&net.UnixAddr{Name: "/run/lately.sock", Net: "unix"}, netip.Addr{}},
		{nil, netip.Addr{}},
	} {
		if got := access.AddrOf(x.addr); got != x.want {
			t.Errorf("%v is %v, want %v", x.addr, got, x.want)
		}
	}
}
