package clientaddr

import (
	"net/netip"
	"strings"
)

// ParseNode parses an address as proxies and sockets write it: bare, in
// brackets, with a port behind it, with a zone. It drops port and zone and
// unmaps the address.
func ParseNode(s string) (netip.Addr, bool) {
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
		if !IsToken(zone) || strings.IndexByte(host, ':') < 0 {
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
		return IsToken(s[1:])
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

// Translated returns the IPv4 address that a translator put into a, and any
// other address as it is. The well-known prefix must not carry addresses that
// are not global (RFC 6052, section 3.1): those are no translation.
func Translated(a netip.Addr) netip.Addr {
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

// IsToken reports whether s is a token of RFC 9110.
func IsToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
