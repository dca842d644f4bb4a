package latelyhttp

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// prefixes parses prefixes.
func prefixes(texts ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range texts {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

func mustIdentity(t testing.TB, c IdentityConfig) *Identity {
	t.Helper()
	id := must.Get(NewIdentity(c))(t)
	return id
}

// request is a request from that peer with these X-Forwarded-For lines.
func request(peer string, lines ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = peer
	if lines != nil {
		r.Header["X-Forwarded-For"] = lines
	}
	return r
}

func TestIdentity(t *testing.T) {
	private := prefixes("10.0.0.0/8", "fd00::/8")
	for _, c := range []struct {
		name   string
		config IdentityConfig
		peer   string
		lines  []string
		want   string
		origin origin
	}{
		{"nobody is believed by default", IdentityConfig{}, "192.0.2.1:1", []string{"198.51.100.1"}, "192.0.2.1", fromPeer},
		{"an untrusted peer", IdentityConfig{TrustedProxies: private}, "192.0.2.1:1", []string{"198.51.100.1"}, "192.0.2.1", fromPeer},
		{"a proxy", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"192.0.2.1"}, "192.0.2.1", fromHeader},
		{"a spoofed address before it", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"198.51.100.1, 192.0.2.1"}, "192.0.2.1", fromHeader},
		{"the same in a line of its own", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"198.51.100.1", "192.0.2.1"}, "192.0.2.1", fromHeader},
		{"a spoofed proxy before it", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"198.51.100.1, 10.0.0.9, 192.0.2.1"}, "192.0.2.1", fromHeader},
		{"two proxies", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"192.0.2.1, fd00::2"}, "192.0.2.1", fromHeader},
		{"a mapped proxy", IdentityConfig{TrustedProxies: private}, "[::ffff:10.0.0.1]:1", []string{"192.0.2.1, ::ffff:a00:2"}, "192.0.2.1", fromHeader},
		{"a prefix of mapped proxies", IdentityConfig{TrustedProxies: prefixes("::ffff:10.0.0.0/104")}, "10.0.0.1:1", []string{"192.0.2.1"}, "192.0.2.1", fromHeader},
		{"a prefix with host bits", IdentityConfig{TrustedProxies: prefixes("10.1.2.3/8")}, "10.0.0.1:1", []string{"192.0.2.1"}, "192.0.2.1", fromHeader},
		{"a link-local proxy", IdentityConfig{TrustedProxies: prefixes("fe80::/10")}, "[fe80::1%eth0]:1", []string{"192.0.2.1"}, "192.0.2.1", fromHeader},
		{"a translated private proxy is none", IdentityConfig{TrustedProxies: private}, "[64:ff9b::a00:1]:1", []string{"192.0.2.1"}, "64:ff9b::a00:1", fromPeer},
		{"a translated public proxy is none", IdentityConfig{TrustedProxies: prefixes("198.51.100.0/24")}, "[64:ff9b::198.51.100.1]:1", []string{"192.0.2.1"}, "198.51.100.1", fromPeer},
		{"a translated client", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"64:ff9b::c000:201"}, "192.0.2.1", fromHeader},

		{"no header", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", nil, "proxy:10.0.0.1", noHeader},
		{"an empty header", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{""}, "proxy:10.0.0.1", badHeader},
		{"an empty element", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"198.51.100.1, "}, "proxy:10.0.0.1", badHeader},
		{"an empty last line", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"198.51.100.1", ""}, "proxy:10.0.0.1", badHeader},
		{"an unknown client", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"198.51.100.1, unknown"}, "proxy:10.0.0.1", badHeader},
		{"an unknown client of the second proxy", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"_x, 10.0.0.2"}, "proxy:10.0.0.2", badHeader},
		{"only proxies", IdentityConfig{TrustedProxies: private}, "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "proxy:10.0.0.3", noHeader},
		{"proxies may be clients: no header", IdentityConfig{TrustedProxies: private, ProxiesAreClients: true}, "10.0.0.1:1", nil, "10.0.0.1", noHeader},
		{"proxies may be clients: junk", IdentityConfig{TrustedProxies: private, ProxiesAreClients: true}, "10.0.0.1:1", []string{"x"}, "10.0.0.1", badHeader},
		{"proxies may be clients: only proxies", IdentityConfig{TrustedProxies: private, ProxiesAreClients: true}, "10.0.0.1:1", []string{"10.0.0.3"}, "10.0.0.3", noHeader},

		{"one hop, client within the network", IdentityConfig{TrustedProxies: private, Hops: 1}, "10.0.0.1:1", []string{"198.51.100.1, 10.9.9.9"}, "10.9.9.9", fromHeader},
		{"two hops", IdentityConfig{TrustedProxies: private, Hops: 2}, "10.0.0.1:1", []string{"198.51.100.1, 10.9.9.9, 10.0.0.2"}, "10.9.9.9", fromHeader},
		{"two hops, one of them not a proxy", IdentityConfig{TrustedProxies: private, Hops: 2}, "10.0.0.1:1", []string{"198.51.100.1, 192.0.2.1"}, "192.0.2.1", fromHeader},
		{"two hops, one written down", IdentityConfig{TrustedProxies: private, Hops: 2}, "10.0.0.1:1", []string{"10.0.0.2"}, "proxy:10.0.0.2", noHeader},
		{"any peer, one hop", IdentityConfig{TrustedProxies: prefixes("0.0.0.0/0"), Hops: 1}, "203.0.113.1:1", []string{"198.51.100.1, 192.0.2.1"}, "192.0.2.1", fromHeader},

		{"Forwarded", IdentityConfig{TrustedProxies: private, Header: "forwarded"}, "10.0.0.1:1", []string{`for=198.51.100.1, for="[2001:db8::1]:80"`}, "2001:db8::1", fromHeader},
		{"Forwarded by name", IdentityConfig{TrustedProxies: private, Header: "Forwarded"}, "10.0.0.1:1", []string{"for=198.51.100.1, for=_a"}, "proxy:10.0.0.1", badHeader},
		{"another header", IdentityConfig{TrustedProxies: private, Header: "x-real-ip"}, "10.0.0.1:1", []string{"192.0.2.1"}, "192.0.2.1", fromHeader},

		{"an address without a port", IdentityConfig{}, "192.0.2.1", nil, "192.0.2.1", fromPeer},
		{"no peer", IdentityConfig{TrustedProxies: private, TrustUnix: true}, "", []string{"198.51.100.1"}, "unknown", unknown},
		{"a peer that is none", IdentityConfig{TrustedProxies: private, TrustUnix: true}, "@", []string{"198.51.100.1"}, "unknown", unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := mustIdentity(t, c.config)
			r := request(c.peer)
			if c.lines != nil {
				name := id.Header()
				if name == "" {
					name = "X-Forwarded-For"
				}
				r.Header[name] = c.lines
			}
			if got := id.Client(r); got.String() != c.want || got.origin != c.origin {
				t.Errorf("the client is %s (%v); want %s (%v)", got, got.origin, c.want, c.origin)
			}
			want := IdentityStats{}
			switch c.origin {
			case noHeader:
				want.NoHeader = 1
			case badHeader:
				want.BadHeader = 1
			case unknown:
				want.Unknown = 1
			}
			if got := id.Stats(); got != want {
				t.Errorf("it counted %+v; want %+v", got, want)
			}
		})
	}
}

// Only one header is read: whatever the proxies do not maintain is the client's.
func TestIdentityReadsOneHeader(t *testing.T) {
	for _, header := range []string{"", "Forwarded", "X-Real-Ip"} {
		id := mustIdentity(t, IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8"), Header: header})
		r := request("10.0.0.1:1")
		for _, other := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "True-Client-Ip", "Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "X_Forwarded_For"} {
			if other != id.Header() {
				r.Header[other] = []string{"198.51.100.1", "for=198.51.100.1"}
			}
		}
		if got := id.Client(r); got.String() != "proxy:10.0.0.1" {
			t.Errorf("%s: the client is %s", id.Header(), got)
		}
	}
}

func TestIdentityOnUnixSockets(t *testing.T) {
	unix := &net.UnixAddr{Net: "unix"}
	for _, c := range []struct {
		config IdentityConfig
		lines  []string
		want   string
	}{
		{IdentityConfig{}, []string{"198.51.100.1"}, "unix"},
		{IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")}, []string{"198.51.100.1"}, "unix"},
		{IdentityConfig{TrustUnix: true}, []string{"198.51.100.1, 192.0.2.1"}, "192.0.2.1"},
		{IdentityConfig{TrustUnix: true}, []string{"unix:"}, "proxy:unix"}, // what nginx writes for one before it
		{IdentityConfig{TrustUnix: true}, nil, "proxy:unix"},
		{IdentityConfig{TrustUnix: true, ProxiesAreClients: true}, nil, "unix"},
		{IdentityConfig{TrustUnix: true, TrustedProxies: prefixes("10.0.0.0/8")}, []string{"192.0.2.1, 10.0.0.1"}, "192.0.2.1"},
	} {
		id := mustIdentity(t, c.config)
		if got := id.ClientOf(unix, c.lines).String(); got != c.want {
			t.Errorf("%+v, %q: ClientOf returns %s; want %s", c.config, c.lines, got, c.want)
		}
		r := request("@", c.lines...)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(unix)))
		if got := id.Client(r).String(); got != c.want {
			t.Errorf("%+v, %q: Client returns %s; want %s", c.config, c.lines, got, c.want)
		}
	}
}

type strangeAddr string

func (a strangeAddr) Network() string { return "strange" }
func (a strangeAddr) String() string  { return string(a) }

func TestClientOf(t *testing.T) {
	id := mustIdentity(t, IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")})
	for _, c := range []struct {
		peer net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, "192.0.2.1"}, // net.IPv4 is mapped
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, "198.51.100.1"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, "fe80::1"},
		{&net.TCPAddr{}, "unknown"},
		{&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, "192.0.2.1"}, // QUIC
		{strangeAddr("10.0.0.1:80"), "198.51.100.1"},
		{strangeAddr("pipe"), "unknown"},
		{nil, "unknown"},
	} {
		if got := id.ClientOf(c.peer, []string{"198.51.100.1"}).String(); got != c.want {
			t.Errorf("%v: %s; want %s", c.peer, got, c.want)
		}
	}
}

func TestIdentityConfigErrors(t *testing.T) {
	for _, c := range []struct {
		config IdentityConfig
		want   string
	}{
		{IdentityConfig{Hops: -1}, "Hops: -1: must be 0"},
		{IdentityConfig{TrustedProxies: []netip.Prefix{{}}}, "TrustedProxies: invalid prefix: must be"},
		{IdentityConfig{TrustedProxies: prefixes("0.0.0.0/0")}, "TrustedProxies: 0.0.0.0/0: trusts every address that a client claims: must be"},
		{IdentityConfig{TrustedProxies: prefixes("::/0")}, "TrustedProxies: ::/0: trusts"},
		{IdentityConfig{TrustedProxies: prefixes("::ffff:0.0.0.0/95"), Hops: 1}, "spans IPv4 and IPv6"},
		{IdentityConfig{TrustedProxies: prefixes("::ffff:0.0.0.0/96")}, "TrustedProxies: ::ffff:0.0.0.0/96: trusts every"},
		{IdentityConfig{Header: "X Forwarded For"}, `Header: "X Forwarded For": must be`},
		{IdentityConfig{Header: "Forwarded\r\n"}, "must be the name of a header"},
		{IdentityConfig{Fold: match.Fold{IPv6: 129}}, "Fold: ipv6: prefix length 129: must be"},
	} {
		if _, err := NewIdentity(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want an error with %q", c.config, err, c.want)
		}
	}
}

// S2: one address has one key in every notation, and a /64 is one client.
func TestAppendKey(t *testing.T) {
	key := func(c IdentityConfig, peer string) string {
		return string(mustIdentity(t, c).AppendKey([]byte("k="), request(peer)))
	}
	by := func(bits int) IdentityConfig { return IdentityConfig{Fold: match.Fold{IPv6: bits}} }
	for _, c := range []struct {
		config IdentityConfig
		peers  []string
		want   string
	}{
		{by(0), []string{"192.0.2.1:1", "[::ffff:192.0.2.1]:1", "[::FFFF:c000:201]:2", "[0:0:0:0:0:ffff:c000:0201]:3", "[::ffff:192.0.2.1%eth0]:4", "[64:ff9b::192.0.2.1]:5", "[64:ff9b:0:0:0:0:C000:0201]:6"}, "k=192.0.2.1"},
		{by(56), []string{"192.0.2.1:1", "[::ffff:192.0.2.1]:1", "[64:ff9b::c000:201]:1"}, "k=192.0.2.1"}, // no mask of IPv6 is for IPv4
		{by(0), []string{"192.0.2.2:1", "[::ffff:192.0.2.2]:1"}, "k=192.0.2.2"},
		{by(0), []string{"[2001:db8::1]:1", "[2001:DB8:0:0:ffff:ffff:ffff:ffff]:1", "[2001:db8::%eth0]:1"}, "k=2001:db8::/64"},
		{by(0), []string{"[2001:db8:0:1::1]:1"}, "k=2001:db8:0:1::/64"},
		{by(56), []string{"[2001:db8:1:100::1]:1", "[2001:db8:1:1ff::1]:1"}, "k=2001:db8:1:100::/56"},
		{by(48), []string{"[2001:db8:1:100::1]:1", "[2001:db8:1:ffff::1]:1"}, "k=2001:db8:1::/48"},
		{by(128), []string{"[2001:db8::1]:1"}, "k=2001:db8::1"},
		{IdentityConfig{TrustedProxies: prefixes("fd00::/8")}, []string{"[fd00::1]:1"}, "k=proxy:fd00::1"},
	} {
		for _, peer := range c.peers {
			if got := key(c.config, peer); got != c.want {
				t.Errorf("%s by /%d: %s; want %s", peer, c.config.Fold.IPv6, got, c.want)
			}
		}
	}
}

// The key of a request counts it once, also if its client is read, too.
func TestAppendKeyCountsNothing(t *testing.T) {
	id := mustIdentity(t, IdentityConfig{TrustedProxies: prefixes("192.0.2.0/24")})
	bad := request("192.0.2.1:1")
	bad.Header.Set("X-Forwarded-For", "nobody")
	for _, r := range []*http.Request{request("192.0.2.1:1"), bad, request("@")} {
		id.Client(r)
		id.AppendKey(nil, r)
	}
	if got, want := id.Stats(), (IdentityStats{NoHeader: 1, BadHeader: 1, Unknown: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestIdentityDoesNotAllocate(t *testing.T) {
	xff := mustIdentity(t, IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8"), Header: "X-Forwarded-For"})
	forwarded := mustIdentity(t, IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8"), Header: "Forwarded"})
	key := make([]byte, 0, 100)
	for _, c := range []struct {
		id     *Identity
		header string
		lines  []string
	}{
		{xff, "X-Forwarded-For", []string{"198.51.100.1", "2001:db8::1%eth0, 10.0.0.3"}},
		{xff, "X-Forwarded-For", []string{"198.51.100.1, _junk"}},
		{forwarded, "Forwarded", []string{`for=198.51.100.1, for="[2001:db8::1]:80";proto=https;host="example.com"`}},
	} {
		r := request("10.0.0.1:4711")
		r.Header[c.header] = c.lines
		if n := testing.AllocsPerRun(100, func() { key = c.id.AppendKey(key[:0], r) }); n != 0 {
			t.Errorf("%q: %v allocations", c.lines, n)
		}
	}
}
