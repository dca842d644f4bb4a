package latelyhttp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/test/randtest"
)

// The matrix S1: clients that write what they like into headers, behind chains
// of proxies that forward it in every way seen. The truth is not read from any
// header but from the simulation: which host connected to which.

// A proxy is one hop of the simulation.
type proxy struct {
	addr    netip.Addr
	trusted bool
	style   proxyStyle
}

// A proxyStyle is how a proxy forwards the header.
type proxyStyle struct {
	ownLine   bool   // adds a line instead of appending to the last one
	notation  string // how it writes its peer's address
	obfuscate string // what it writes instead
	strips    string // "before" or "after" it adds its own: honours Connection tokens
}

// notations writes an address and port in the ways that proxies do.
var notations = map[string]func(netip.Addr) string{
	"plain":  func(a netip.Addr) string { return a.String() },
	"port":   func(a netip.Addr) string { return netip.AddrPortFrom(a, 4711).String() },
	"upper":  func(a netip.Addr) string { return strings.ToUpper(a.String()) },
	"mapped": func(a netip.Addr) string { return mapped(a, "[%s]:4711") },
	"hex":    func(a netip.Addr) string { return mappedHex(a) },
	"zone":   func(a netip.Addr) string { return zoned(a) },
}

func mapped(a netip.Addr, form string) string {
	if a.Is4() {
		return fmt.Sprintf(form, "::ffff:"+a.String())
	}
	return fmt.Sprintf(form, a)
}

func mappedHex(a netip.Addr) string {
	if b := a.As16(); a.Is4() {
		return fmt.Sprintf("0:0:0:0:0:FFFF:%X%02X:%02x%02x", b[12], b[13], b[14], b[15])
	}
	return a.StringExpanded()
}

func zoned(a netip.Addr) string {
	if a.Is4() {
		return a.String()
	}
	return a.String() + "%eth0"
}

// write returns what p appends about its peer.
func (p *proxy) write(peer netip.Addr, forwarded bool) string {
	text := p.style.obfuscate
	if text == "" {
		text = notations[p.style.notation](peer)
	}
	if !forwarded {
		return text
	}
	if strings.ContainsAny(text, ":[%") {
		text = `"` + bracketed(text) + `"`
	}
	return "by=_me;FOR=" + text + `;host="a,b;for=6.6.6.6\"";proto=https`
}

// bracketed puts a bare IPv6 address in brackets, as RFC 7239 requires.
func bracketed(text string) string {
	if text[0] == '[' || strings.Count(text, ":") < 2 {
		return text
	}
	return "[" + text + "]"
}

// forward returns the header lines that p sends on.
func (p *proxy) forward(peer netip.Addr, lines []string, forwarded, strip bool) []string {
	if strip && p.style.strips == "before" {
		lines = nil
	}
	own := p.write(peer, forwarded)
	if n := len(lines); n > 0 && !p.style.ownLine {
		lines = append(slices.Clone(lines[:n-1]), lines[n-1]+", "+own)
	} else {
		lines = append(slices.Clone(lines), own)
	}
	if strip && p.style.strips == "after" {
		lines = nil
	}
	return lines
}

// A scenario is one case: a client, what it claims, and the proxies between it
// and the server, in this order.
type scenario struct {
	client    netip.Addr
	claims    []string
	strip     bool // it sends the header's name as a Connection token
	proxies   []proxy
	forwarded bool
	hops      int
}

// truth returns the client that the server may believe: back up to the last for which a trusted peer vouches for it.
func (s *scenario) truth() string {
	last := len(s.proxies) - 1
	stripped := -1 // the last proxy that left nothing of the header
	for i, p := range s.proxies {
		switch {
		case s.strip && p.style.strips == "after":
			stripped = i
		case s.strip && p.style.strips == "before":
			stripped = i - 1
		}
	}
	for i := last; ; i-- {
		switch {
		case i < 0:
			return s.client.String()
		case !s.proxies[i].trusted && i == last, i < last && (last-i == s.hops || !s.proxies[i].trusted):
			return s.proxies[i].addr.String()
		case i == stripped, s.proxies[i].style.obfuscate != "":
			return "proxy:" + s.proxies[i].addr.String()
		}
	}
}

// run sends the request through the proxies and returns what reaches the server.
func (s *scenario) run() (peer netip.Addr, lines []string) {
	peer, lines = s.client, s.claims
	for i := range s.proxies {
		lines = s.proxies[i].forward(peer, lines, s.forwarded, s.strip)
		peer = s.proxies[i].addr
	}
	return peer, lines
}

// victim is the address that clients claim; no one has it.
const victim = "198.51.100.66"

// claims are what clients write into the header.
func claims(forwarded bool) map[string][]string {
	if forwarded {
		return map[string][]string{
			"nothing":          nil,
			"victim":           {"for=" + victim},
			"victim lines":     {"for=" + victim, "for=" + victim + ";proto=http"},
			"proxy":            {"for=" + victim + ", for=10.0.0.99"},
			"open quote":       {`for="` + victim},
			"open quote 2":     {"for=" + victim + `;host="`},
			"escaped quote":    {`for=` + victim + `;host="\`},
			"quoted elements":  {`for=x;host=", for=` + victim + `, "`},
			"junk":             {"\x00\xff;;,,=,=;for"},
			"empty":            {""},
			"commas":           {"for=" + victim + ",,,"},
			"obfuscated":       {"for=_" + victim},
			"other kind":       {victim},
			"translated proxy": {`for="[64:ff9b::10.0.0.99]"`},
		}
	}
	return map[string][]string{
		"nothing":          nil,
		"victim":           {victim},
		"victim lines":     {victim, victim + ":80"},
		"proxy":            {victim + ", 10.0.0.99"},
		"proxies":          {strings.Repeat(victim+", ", 50) + "fd00::99"},
		"open quote":       {`"` + victim},
		"open bracket":     {"[" + victim},
		"junk":             {"\x00\xff;;,,=,=;"},
		"empty":            {""},
		"commas":           {victim + ",,,"},
		"obfuscated":       {"_" + victim + ", unknown"},
		"other kind":       {"for=" + victim},
		"mapped":           {"::ffff:" + victim},
		"translated proxy": {"64:ff9b::10.0.0.99"},
	}
}

// scenarios returns the matrix: chains of up to three proxies, each trusted or
// not, by claims, by header, by style. Styles take turns.
func scenarios(rnd *rand.Rand) []scenario {
	names := []string{"plain", "port", "upper", "mapped", "hex", "zone"}
	var all []scenario
	for _, forwarded := range []bool{false, true} {
		claims := claims(forwarded)
		for _, name := range slices.Sorted(maps.Keys(claims)) {
			for n := range 4 {
				for trust := range 1 << n {
					for kind := range 4 { // plain, obfuscating, stripping before, stripping after
						s := scenario{client: someClient(rnd), claims: claims[name], forwarded: forwarded, strip: kind >= 2}
						for i := range n {
							p := proxy{trusted: trust>>i&1 == 1}
							p.addr = someProxy(rnd, p.trusted)
							p.style = proxyStyle{ownLine: rnd.IntN(2) == 0, notation: names[rnd.IntN(len(names))]}
							if kind == 1 && i == n-1 {
								p.style.obfuscate = []string{"unknown", "_hidden", "_198.51.100.66"}[rnd.IntN(3)]
							}
							if kind >= 2 && i == rnd.IntN(n) {
								p.style.strips = []string{"before", "after"}[kind-2]
							}
							s.proxies = append(s.proxies, p)
						}
						all = append(all, s)
						if n > 0 {
							s.hops = 1 + rnd.IntN(n)
							all = append(all, s)
						}
					}
				}
			}
		}
	}
	return all
}

func someClient(rnd *rand.Rand) netip.Addr {
	if rnd.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + rnd.IntN(250))})
	}
	return netip.MustParseAddr(fmt.Sprintf("2001:db8:%x::%x", 1+rnd.IntN(60000), 1+rnd.IntN(60000)))
}

func someProxy(rnd *rand.Rand, trusted bool) netip.Addr {
	network := map[bool]string{true: "fd00::", false: "2001:db8:beef::"}[trusted]
	if rnd.IntN(2) == 0 {
		return netip.MustParseAddr(fmt.Sprintf("%s%x", network, 1+rnd.IntN(60000)))
	}
	first := map[bool]byte{true: 10, false: 203}[trusted]
	return netip.AddrFrom4([4]byte{first, 0, 113, byte(1 + rnd.IntN(250))})
}

// An answerer returns the client.
type answerer func(s *scenario, peer netip.Addr, lines []string) string

// answer is the identity under test.
func answer(t testing.TB) answerer {
	return func(s *scenario, peer netip.Addr, lines []string) string {
		c := IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8", "fd00::/8"), Hops: s.hops}
		if s.forwarded {
			c.Header = "Forwarded"
		}
		id := mustIdentity(t, c)
		r := &http.Request{RemoteAddr: netip.AddrPortFrom(peer, 1234).String(), Header: http.Header{}}
		if lines != nil {
			r.Header[id.Header()] = lines
		}
		got := id.Client(r).String()
		if of := id.ClientOf(net.TCPAddrFromAddrPort(netip.AddrPortFrom(peer, 1234)), lines).String(); of != got {
			t.Errorf("Client returns %s, ClientOf %s", got, of)
		}
		return got
	}
}

// controls are ways to read headers that have had advisories of their own.
func controls(t testing.TB) map[string]answerer {
	entries := func(s *scenario, lines []string) (all []string) {
		for element := range strings.SplitSeq(strings.Join(lines, ","), ",") {
			if s.forwarded {
				_, element, _ = strings.Cut(element, "for=")
				element, _, _ = strings.Cut(element, ";")
				element = strings.Trim(element, `"`)
			}
			if addr, ok := address.Parse(strings.TrimSpace(element)); ok {
				all = append(all, addr.String())
			}
		}
		return all
	}
	trusted := prefixes("10.0.0.0/8", "fd00::/8")
	trusts := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return map[string]answerer{
		"leftmost": func(s *scenario, peer netip.Addr, lines []string) string {
			if all := entries(s, lines); len(all) > 0 && trusts(peer) {
				return all[0]
			}
			return peer.String()
		},
		"any peer": func(s *scenario, peer netip.Addr, lines []string) string {
			if all := entries(s, lines); len(all) > 0 {
				return all[len(all)-1]
			}
			return peer.String()
		},
		"junk is skipped": func(s *scenario, peer netip.Addr, lines []string) string {
			all := entries(s, lines)
			for i := len(all) - 1; i >= 0 && trusts(peer); i-- {
				peer = netip.MustParseAddr(all[i])
			}
			return peer.String()
		},
		"first line": func(s *scenario, peer netip.Addr, lines []string) string {
			all := entries(s, lines[:min(len(lines), 1)])
			for i := len(all) - 1; i >= 0 && trusts(peer); i-- {
				peer = netip.MustParseAddr(all[i])
			}
			return peer.String()
		},
	}
}

// judge counts how often a wrong client is named, and how often the victim.
func judge(all []scenario, a answerer, wrong func(s *scenario, got, want string)) (mistakes, spoofs int) {
	for i := range all {
		s := &all[i]
		peer, lines := s.run()
		want, got := s.truth(), a(s, peer, lines)
		if got == want {
			continue
		}
		mistakes++
		if strings.Contains(got, victim) {
			spoofs++
		}
		if wrong != nil {
			wrong(s, got, want)
		}
	}
	return mistakes, spoofs
}

func TestIdentityMatrix(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 5
	if longTests() {
		rounds = 1000
	}
	cases := 0
	for range rounds {
		all := scenarios(rnd)
		cases += len(all)
		judge(all, answer(t), func(s *scenario, got, want string) {
			peer, lines := s.run()
			t.Errorf("the client is %s; want %s\n  peer %v, header %q\n  %+v", got, want, peer, lines, *s)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d cases, 0 spoofs", cases)
}

// The matrix must find each of the known faults.
func TestIdentityMatrixFindsBrokenReaders(t *testing.T) {
	all := scenarios(randtest.New(t))
	for name, a := range controls(t) {
		mistakes, spoofs := judge(all, a, nil)
		t.Logf("%s: %d of %d cases wrong, %d spoofs", name, mistakes, len(all), spoofs)
		if spoofs == 0 {
			t.Errorf("%s: the matrix finds no spoof", name)
		}
	}
}
