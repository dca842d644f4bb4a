package latelygrpc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// trustedNet is where the proxies of these tests are.
var trustedNet = netip.MustParsePrefix("10.0.0.0/8")

// clientOf returns the client that i sees in a call from remote with metadata.
func clientOf(t testing.TB, i *Interceptor, remote net.Addr, values ...string) string {
	ctx := t.Context()
	if remote != nil {
		ctx = peer.NewContext(ctx, &peer.Peer{Addr: remote})
	}
	return clientIn(metadata.NewIncomingContext(ctx, metadata.MD{forwardedFor: values}), i)
}

// clientIn returns the client as i's rules see it, and as a Call gives it.
func clientIn(ctx context.Context, i *Interceptor) string {
	c := &Call{ctx: ctx, identity: i.identity}
	i.rules.Plan().Fields.Fill(&c.judged.Event, c)
	client := string(c.judged.Event.Get(match.Client))
	if client != c.Client() {
		panic(client + " is not " + c.Client())
	}
	return client
}

func tcp(addr string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 4711))
}

// otherAddr is what a grpc.Server under net/http has as the peer.
type otherAddr string

func (otherAddr) Network() string  { return "tcp" }
func (a otherAddr) String() string { return string(a) }

func TestClient(t *testing.T) {
	trusting := Config{TrustedProxies: []netip.Prefix{trustedNet, netip.MustParsePrefix("::ffff:172.16.0.0/108")}}
	unix := &net.UnixAddr{Name: "@", Net: "unix"}
	for _, tt := range []struct {
		name   string
		c      Config
		peer   net.Addr
		values []string
		want   string
	}{
		{"nobody is trusted", Config{}, tcp("10.0.0.1"), []string{"203.0.113.9"}, "10.0.0.1"},
		{"this peer is not", trusting, tcp("192.0.2.1"), []string{"203.0.113.9"}, "192.0.2.1"},
		{"the last one counts", trusting, tcp("10.0.0.1"), []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		{"of all values", trusting, tcp("10.0.0.1"), []string{"198.51.100.1", "203.0.113.9"}, "203.0.113.9"},
		{"proxies are skipped", trusting, tcp("10.0.0.1"), []string{"203.0.113.9, 10.0.0.2", "10.0.0.3,172.16.5.5"}, "203.0.113.9"},
		{"all are proxies", trusting, tcp("10.0.0.1"), []string{"10.0.0.2"}, "proxy:10.0.0.2"},
		{"all of many are proxies", trusting, tcp("10.0.0.1"), []string{"10.0.0.4, 10.0.0.3", "10.0.0.2"}, "proxy:10.0.0.4"},
		{"no header", trusting, tcp("10.0.0.1"), nil, "proxy:10.0.0.1"},
		{"junk", trusting, tcp("10.0.0.1"), []string{"203.0.113.9, unknown"}, "proxy:10.0.0.1"},
		{"junk behind a proxy", trusting, tcp("10.0.0.1"), []string{"203.0.113.9, _x, 10.0.0.7"}, "proxy:10.0.0.7"},
		{"an empty entry", trusting, tcp("10.0.0.1"), []string{"203.0.113.9,"}, "proxy:10.0.0.1"},
		{"ports and brackets", trusting, tcp("10.0.0.1"), []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		{"brackets", trusting, tcp("10.0.0.1"), []string{"[2001:DB8::1]"}, "2001:db8::1"},
		{"a port", trusting, tcp("10.0.0.1"), []string{"203.0.113.9:80"}, "203.0.113.9"},
		{"no port", trusting, tcp("10.0.0.1"), []string{"203.0.113.9:http"}, "proxy:10.0.0.1"},
		{"junk behind brackets", trusting, tcp("10.0.0.1"), []string{"[2001:db8::1]x"}, "proxy:10.0.0.1"},
		{"an open bracket", trusting, tcp("10.0.0.1"), []string{"[2001:db8::1"}, "proxy:10.0.0.1"},
		{"a zone", trusting, tcp("10.0.0.1"), []string{"fe80::1%eth0"}, "fe80::1"},
		{"an empty zone", trusting, tcp("10.0.0.1"), []string{"fe80::1%"}, "proxy:10.0.0.1"},
		{"mapped in the header", trusting, tcp("10.0.0.1"), []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"mapped in hex", trusting, tcp("10.0.0.1"), []string{"::ffff:cb00:7109"}, "203.0.113.9"},
		{"a mapped peer", trusting, tcp("::ffff:10.0.0.1"), []string{"203.0.113.9"}, "203.0.113.9"},
		{"translated", Config{}, tcp("64:ff9b::cb00:7109"), nil, "203.0.113.9"},
		{"translated, but private", Config{}, tcp("64:ff9b::a00:1"), nil, "64:ff9b::a00:1"},
		{"under net/http", trusting, otherAddr("10.0.0.1:99"), []string{"203.0.113.9"}, "203.0.113.9"},
		{"a unix socket", trusting, unix, []string{"203.0.113.9"}, "unix"},
		{"a trusted unix socket", Config{TrustUnix: true}, unix, []string{"203.0.113.9"}, "203.0.113.9"},
		{"a silent unix socket", Config{TrustUnix: true}, unix, nil, "proxy:unix"},
		{"a pipe", Config{TrustUnix: true}, otherAddr("bufconn"), []string{"203.0.113.9"}, "unknown"},
		{"no peer", Config{TrustUnix: true}, nil, []string{"203.0.113.9"}, "unknown"},
		{"one hop", Config{TrustedProxies: []netip.Prefix{trustedNet}, Hops: 1}, tcp("10.0.0.1"), []string{"203.0.113.9, 10.0.0.2"}, "10.0.0.2"},
		{"two hops", Config{TrustedProxies: []netip.Prefix{trustedNet}, Hops: 2}, tcp("10.0.0.1"), []string{"10.0.0.3, 203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"proxies that call themselves", Config{TrustedProxies: []netip.Prefix{trustedNet}, ProxiesAreClients: true}, tcp("10.0.0.1"), nil, "10.0.0.1"},
	} {
		i := newInterceptor(t, tt.c, perClient(t, 1))
		if got := clientOf(t, i, tt.peer, tt.values...); got != tt.want {
			t.Errorf("%s: the client is %q, want %q", tt.name, got, tt.want)
		}
		overHTTP := must.Get(latelyhttp.NewIdentity(latelyhttp.IdentityConfig{
			TrustedProxies: tt.c.TrustedProxies, TrustUnix: tt.c.TrustUnix, Hops: tt.c.Hops, ProxiesAreClients: tt.c.ProxiesAreClients,
		}))(t)
		if got := overHTTP.ClientOf(tt.peer, tt.values).String(); got != tt.want {
			t.Errorf("%s: over HTTP the client is %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A call that came through trusted proxies alone is not exempt where they are on the allow list: its sender is unknown.
func TestProxiesWithoutClientAreNotAllowed(t *testing.T) {
	key := must.Get(match.NewKey(match.Fold{}, "client"))(t)
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{trustedNet}},
		ratelimit.Rule{Name: "none", Key: key, Limits: []ratelimit.Limit{{N: 0, Span: time.Minute}}}))(t)
	l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	i := must.Get(New(l, Config{TrustedProxies: []netip.Prefix{trustedNet}}))(t)
	conn := dialFrom(t, tcp("10.0.0.1"), i)
	for _, forwarded := range []string{"10.0.0.2", "10.9.9.9, 10.0.0.2", "unknown, 10.0.0.2", "junk"} {
		if r := say(t, conn, forwardedFor, forwarded); r.code() != codes.ResourceExhausted {
			t.Errorf("x-forwarded-for %q: %v; want a refusal", forwarded, r.status)
		}
	}
}

func TestIdentityStats(t *testing.T) {
	i := newInterceptor(t, Config{TrustedProxies: []netip.Prefix{trustedNet}}, perClient(t, 1))
	for range 3 {
		clientOf(t, i, tcp("10.0.0.1"))
	}
	clientOf(t, i, tcp("10.0.0.1"), "?")
	clientOf(t, i, nil)
	clientOf(t, i, tcp("192.0.2.1"))
	if got, want := i.IdentityStats(), (latelyhttp.IdentityStats{NoHeader: 3, BadHeader: 1, Unknown: 1}); got != want {
		t.Errorf("the stats are %+v, want %+v", got, want)
	}
}

// slowClient returns the caller by the definition: all values are one list; going from its end, the first that is not a
// trusted proxy is the client.
func slowClient(peer netip.Addr, values []string) string {
	if !trustedNet.Contains(peer) {
		return peer.String()
	}
	if len(values) == 0 {
		return "proxy:" + peer.String()
	}
	chain := []string{peer.String()}
	list := strings.Split(strings.Join(values, ","), ",")
	slices.Reverse(list)
	for _, entry := range list {
		addr, err := netip.ParseAddr(strings.TrimSpace(entry))
		if err != nil {
			return "proxy:" + chain[len(chain)-1]
		}
		chain = append(chain, addr.String())
		if !trustedNet.Contains(addr) {
			return addr.String()
		}
	}
	return "proxy:" + chain[len(chain)-1] // the first proxy does not name its client
}

// Whatever a client writes into x-forwarded-for, the client is the address that
// the trusted proxies saw.
func TestClientHeadersAreNotTrusted(t *testing.T) {
	seed := randtest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	i := newInterceptor(t, Config{TrustedProxies: []netip.Prefix{trustedNet}}, perClient(t, 1))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	for n := range 20_000 {
		// What the client sends, in any number of values.
		var values []string
		for range random.IntN(4) {
			values = append(values, pick("203.0.113.1", "10.9.9.9", "junk", "", "203.0.113.2, 10.0.0.1", ",,", "\"", "for=10.0.0.1", "10.0.0.1, 10.0.0.2"))
		}
		client := fmt.Sprintf("192.0.2.%d", random.IntN(256))
		// Each proxy appends whom it saw, to the last value or as one more.
		seen, proxies := client, random.IntN(4)
		for p := range proxies {
			if len(values) > 0 && random.IntN(2) == 0 {
				values[len(values)-1] += pick(",", ", ") + seen
			} else {
				values = append(values, seen)
			}
			seen = fmt.Sprintf("10.0.%d.%d", p, random.IntN(256))
		}
		got := clientOf(t, i, tcp(seen), values...)
		if got != client {
			t.Fatalf("%d: %d proxies, %q: the client is %q, want %q", n, proxies, values, got, client)
		}
		// And with any peer it is as defined.
		stranger := pick("10.0.0.1", "203.0.113.7", "10.255.0.1")
		if got, want := clientOf(t, i, tcp(stranger), values...), slowClient(netip.MustParseAddr(stranger), values); got != want {
			t.Fatalf("%d: %s with %q: the client is %q, want %q", n, stranger, values, got, want)
		}
	}
}

// All addresses in one /64 are one client, all in the next another. An
// IPv4-mapped address is the IPv4 one on the wire, too.
func TestFolding(t *testing.T) {
	i := newInterceptor(t, Config{}, perClient(t, 1))
	for n, tt := range []struct {
		remote string
		want   codes.Code
	}{
		{"2001:db8:0:1::1", codes.OK},
		{"2001:db8:0:1:ffff::2", codes.ResourceExhausted},
		{"2001:db8:0:2::1", codes.OK},
		{"192.0.2.1", codes.OK},
		{"::ffff:192.0.2.1", codes.ResourceExhausted},
		{"::ffff:192.0.2.2", codes.OK},
	} {
		if r := say(t, dialFrom(t, tcp(tt.remote), i)); r.code() != tt.want {
			t.Errorf("%d, from %s: %v, want %v", n, tt.remote, r.status, tt.want)
		}
	}
}

func FuzzClient(f *testing.F) {
	for _, v := range []string{"", "203.0.113.9", "junk, 10.0.0.1", "[::1]:80,", "fe80::1%eth0", "::ffff:10.0.0.1", "1.2.3.4:65536", "\x00"} {
		f.Add(v)
	}
	i := newInterceptor(f, Config{TrustedProxies: []netip.Prefix{trustedNet}}, perClient(f, 1))
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: tcp("10.0.0.1")})
	f.Fuzz(func(t *testing.T, value string) {
		text := clientIn(metadata.NewIncomingContext(ctx, metadata.MD{forwardedFor: {value}}), i)
		addr, err := netip.ParseAddr(strings.TrimPrefix(text, "proxy:"))
		if err != nil || addr.Is4In6() || addr.Zone() != "" || addr.String() != strings.TrimPrefix(text, "proxy:") {
			t.Errorf("%q makes the client %q, which is not a canonical address", value, text)
		}
		// The values left of an address outside the proxies' network are never read.
		if got := clientIn(metadata.NewIncomingContext(ctx, metadata.MD{forwardedFor: {value + ", 192.0.2.77"}}), i); got != "192.0.2.77" {
			t.Errorf("%q: the client is %q, want 192.0.2.77", value, got)
		}
	})
}
