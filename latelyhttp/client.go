package latelyhttp

import (
	"net/netip"
	"strings"
)

// A Client is who sent a request, as an [Identity] found it.
type Client struct {
	// Addr is the client's address, unmapped and without zone, or that of the
	// nearest trusted proxy when Source is NoHeader or BadHeader. It is
	// invalid on a Unix socket and when the peer is unknown.
	Addr netip.Addr

	// Source is where Addr comes from.
	Source Source

	plain bool // the text is that of Addr alone
}

// A Source says where a client's address comes from.
type Source uint8

const (
	FromPeer   Source = iota // the connection's peer, which is no trusted proxy
	FromHeader               // the header of a trusted proxy
	NoHeader                 // a trusted proxy, which did not say whom it speaks for
	BadHeader                // a trusted proxy, which wrote something else than an address
	Unknown                  // no address was known at all
	numSources
)

var sourceNames = [numSources]string{"peer", "header", "no header", "bad header", "unknown"}

// String returns the source in a word or two.
func (s Source) String() string {
	if s < numSources {
		return sourceNames[s]
	}
	return "source?"
}

// maxClientText is enough for every text that AppendTo makes.
const maxClientText = len("proxy:") + len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")

// AppendTo appends the client as rules see it, the value of the event field
// "client": an address in its canonical text, "unix" for a peer on a Unix
// socket, "unknown" for one without address, and with "proxy:" in front when a
// trusted proxy did not say whom it speaks for.
func (c Client) AppendTo(dst []byte) []byte {
	if !c.plain && (c.Source == NoHeader || c.Source == BadHeader) {
		dst = append(dst, "proxy:"...)
	}
	switch {
	case c.Addr.IsValid():
		return c.Addr.AppendTo(dst)
	case c.Source == Unknown:
		return append(dst, "unknown"...)
	}
	return append(dst, "unix"...)
}

// String returns what AppendTo appends.
func (c Client) String() string { return string(c.AppendTo(nil)) }

// parseNode parses an address as proxies and sockets write it: bare, in
// brackets, with a port behind it, with a zone. It drops port and zone and
// unmaps the address.
func parseNode(s string) (netip.Addr, bool) {
	if strings.HasPrefix(s, "[") {
		inside, port, ok := strings.Cut(s[1:], "]")
		if !ok || port != "" && (port[0] != ':' || !isPort(port[1:])) {
			return netip.Addr{}, false
		}
		s = inside
	} else if host, port, ok := strings.Cut(s, ":"); ok && strings.IndexByte(port, ':') < 0 {
		if !isPort(port) {
			return netip.Addr{}, false
		}
		s = host
	}
	// The zone goes first: netip keeps those it has seen, and a client could
	// make up any number of them.
	if host, zone, ok := strings.Cut(s, "%"); ok {
		if !isToken(zone) || strings.IndexByte(host, ':') < 0 {
			return netip.Addr{}, false
		}
		s = host
	}
	if !looksLikeAddr(s) {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(s)
	return addr.Unmap(), err == nil
}

// looksLikeAddr keeps most junk from netip.ParseAddr, whose error allocates.
func looksLikeAddr(s string) bool {
	if len(s) < len("::") || len(s) > len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '.' && c != ':' && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

// isPort reports whether s is a port: up to five digits, or a name with an
// underscore in front, as RFC 7239 obfuscates them.
func isPort(s string) bool {
	if len(s) > 1 && s[0] == '_' {
		return isToken(s[1:])
	}
	if len(s) == 0 || len(s) > 5 {
		return false
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// wellKnown is where RFC 6052 puts IPv4 addresses for translators (NAT64).
var wellKnown = netip.MustParsePrefix("64:ff9b::/96")

// translated returns the IPv4 address that a translator put into a, and any
// other address as it is. The well-known prefix must not carry addresses that
// are not global (RFC 6052, section 3.1): those are no translation.
func translated(a netip.Addr) netip.Addr {
	if !a.Is6() || !wellKnown.Contains(a) {
		return a
	}
	b := a.As16()
	v4 := netip.AddrFrom4([4]byte(b[12:]))
	if !v4.IsGlobalUnicast() || v4.IsPrivate() || v4.As4()[0] == 0 {
		return a
	}
	return v4
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
