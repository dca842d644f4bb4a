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
		{Client{Addr: v4, Source: FromPeer, plain: true}, "192.0.2.1"},
		{Client{Addr: v4, Source: FromHeader, plain: true}, "192.0.2.1"},
		{Client{Addr: v4, Source: NoHeader}, "proxy:192.0.2.1"},
		{Client{Addr: v4, Source: BadHeader}, "proxy:192.0.2.1"},
		{Client{Addr: v4, Source: NoHeader, plain: true}, "192.0.2.1"},
		{Client{Source: FromPeer, plain: true}, "unix"},
		{Client{Source: BadHeader}, "proxy:unix"},
		{Client{Source: Unknown}, "unknown"},
		{Client{}, "unix"},
	} {
		if got := c.client.String(); got != c.want {
			t.Errorf("%+v is %q; want %q", c.client, got, c.want)
		}
	}
	longest := Client{Addr: netip.MustParseAddr(strings.TrimSuffix(strings.Repeat("ffff:", 8), ":")), Source: BadHeader}
	if n := len(longest.String()); n != maxClientText {
		t.Errorf("the longest text has %d bytes; maxClientText is %d", n, maxClientText)
	}
}

func TestSourceNames(t *testing.T) {
	seen := map[string]bool{}
	for s := range numSources + 1 {
		if name := s.String(); name == "" || seen[name] {
			t.Errorf("source %d is called %q", s, name)
		} else {
			seen[name] = true
		}
	}
}
