package latelyhttp

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// checkAgainstReference compares the client of a request whose header has these lines, separated by newlines, with the slow
// reference.
func checkAgainstReference(t *testing.T, header, peer, text string, hops int) {
	t.Helper()
	lines := strings.Split(text, "\n")
	id := mustIdentity(t, IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8", "fd00::/8"), Header: header, Hops: hops})
	got := id.Client(&http.Request{RemoteAddr: peer, Header: http.Header{id.Header(): lines}})
	want := referenceClient(peer, lines, header == "Forwarded", hops)
	if addr, err := netip.ParseAddr(want); err == nil {
		want = translated(addr).String() // has a test of its own
	}
	if got.String() != want {
		t.Errorf("%s: %q from %s, %d hops: %s; want %s", header, lines, peer, hops, got, want)
	}
}

// pieces are what random headers are made of.
var pieces = []string{
	"192.0.2.1", "10.0.0.2", "fd00::2", "2001:db8::1", "[2001:db8::1]:443", "192.0.2.1:80", "::ffff:10.0.0.3", "unknown", "_x",
	"fe80::1%eth0", ",", ", ", ",", ";", "=", `"`, `\`, " ", "\t", "\n", "for=", "For=", "by=", "proto=http", `for="[fd00::2]"`, "[", "]", ":", "%", "x", "0",
}

func randomHeader(rnd *rand.Rand) string {
	var b strings.Builder
	for range rnd.IntN(12) {
		b.WriteString(pieces[rnd.IntN(len(pieces))])
	}
	return b.String()
}

func TestIdentityAgainstReference(t *testing.T) {
	rnd := randtest.New(t)
	n := 20_000
	if longTests() {
		n = 2_000_000
	}
	peers := []string{"10.0.0.1:1", "[fd00::1]:1", "192.0.2.9:1", "[::ffff:10.0.0.1]:1"}
	for range n {
		header := []string{"X-Forwarded-For", "Forwarded"}[rnd.IntN(2)]
		checkAgainstReference(t, header, peers[rnd.IntN(len(peers))], randomHeader(rnd), rnd.IntN(4))
		if t.Failed() {
			return
		}
	}
}

func FuzzForwardedFor(f *testing.F) {
	for _, s := range []string{
		"192.0.2.1", "198.51.100.1, 192.0.2.1", "198.51.100.1\n192.0.2.1, 10.0.0.2", "[2001:db8::1]:443", "::ffff:c000:201",
		"192.0.2.1:80,", "unknown, fe80::1%eth0", "\n,\n", `"192.0.2.1", 10.0.0.2`, "64:ff9b::c000:201",
	} {
		f.Add(s, 0)
	}
	f.Fuzz(func(t *testing.T, text string, hops int) {
		checkAgainstReference(t, "X-Forwarded-For", "10.0.0.1:1", text, max(hops, 0)%8)
	})
}

func FuzzForwarded(f *testing.F) {
	for _, s := range []string{
		"for=192.0.2.1", `for="[2001:db8:cafe::17]:4711";proto=http`, "For=192.0.2.1, for=10.0.0.2", `for="_a", for=unknown`,
		`for=198.51.100.1;host=", for=192.0.2.1`, `host="a,\"b\\";for=192.0.2.1`, "for=1.2.3.4;for=5.6.7.8", ";;for=192.0.2.1;", "for=192.0.2.1\nfor=\"10.0.0.2:80\"",
	} {
		f.Add(s, 0)
	}
	f.Fuzz(func(t *testing.T, text string, hops int) {
		checkAgainstReference(t, "Forwarded", "10.0.0.1:1", text, max(hops, 0)%8)
	})
}
