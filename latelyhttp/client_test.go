package latelyhttp

import (
	"net/netip"
	"strings"
	"testing"
)

func TestClientText(t *testing.T) {
	v4 := netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		client Client
		want   string
	}{
		{Client{Addr: v4, origin: fromPeer, plain: true}, "192.0.2.1"},
		{Client{Addr: v4, origin: fromHeader, plain: true}, "192.0.2.1"},
		{Client{Addr: v4, origin: noHeader}, "proxy:192.0.2.1"},
		{Client{Addr: v4, origin: badHeader}, "proxy:192.0.2.1"},
		{Client{Addr: v4, origin: noHeader, plain: true}, "192.0.2.1"},
		{Client{origin: fromPeer, plain: true}, "unix"},
		{Client{origin: badHeader}, "proxy:unix"},
		{Client{origin: unknown}, "unknown"},
		{Client{}, "unix"},
	} {
		if got := c.client.String(); got != c.want {
			t.Errorf("%+v is %q; want %q", c.client, got, c.want)
		}
	}
	longest := Client{Addr: netip.MustParseAddr(strings.TrimSuffix(strings.Repeat("ffff:", 8), ":")), origin: badHeader}
	if n := len(longest.String()); n != maxClientText {
		t.Errorf("the longest text has %d bytes; maxClientText is %d", n, maxClientText)
	}
}

func TestProxied(t *testing.T) {
	for o, want := range map[origin]bool{fromPeer: false, fromHeader: true, noHeader: true, badHeader: true, unknown: false} {
		if got := (Client{origin: o}).Proxied(); got != want {
			t.Errorf("origin %d: %v; want %v", o, got, want)
		}
	}
}
