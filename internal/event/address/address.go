// Package address parses the addresses of clients, in the forms that logs and requests have, and keeps sets of them.
package address

import (
	"fmt"
	"net/netip"
	"strings"
	"unsafe"
)

// Parse parses an address in the forms of proxies, sockets and logs: plain, in
// brackets, with a port or a zone. It unmaps the address and drops port and
// zone.
//
// It accepts the addresses of [netip.ParseAddr] whose zone is a token. It does not allocate
// for other text, unlike netip.ParseAddr: host names are as frequent as addresses in some
// logs.
func Parse(s string) (netip.Addr, bool) {
	if ip, rest, ok := parseIPv4(s); ok && (rest == "" || rest[0] == ':' && isPort(rest[1:])) { // as most
		return netip.AddrFrom4(ip), true
	}
	s = withoutBrackets(s)
	if ip, rest, ok := parseIPv4(s); ok {
		return netip.AddrFrom4(ip), rest == ""
	}
	s, zone, hasZone := strings.Cut(s, "%")
	ip, ok := parseIPv6(s)
	if !ok || hasZone && !isToken(zone) {
		return netip.Addr{}, false
	}
	return netip.AddrFrom16(ip).Unmap(), true
}

// AppendNetwork appends to dst, as text, the network of bits4 or bits6 bits that has the address in
// client, or the address if the network has no other. It appends what is not an address unchanged,
// and allocates only to grow dst.
func AppendNetwork(dst, client []byte, bits4, bits6 int) []byte {
	text := unsafe.String(unsafe.SliceData(client), len(client)) // only read
	if bits4 == 32 {
		if _, rest, ok := parseIPv4(text); ok && rest == "" {
			return append(dst, client...) // it has no other text
		}
	}
	a, ok := Parse(text)
	if !ok {
		return append(dst, client...)
	}
	bits := bits6
	if a.Is4() {
		bits = bits4
	}
	if bits == a.BitLen() {
		return a.AppendTo(dst)
	}
	p, _ := a.Prefix(bits) // no error: callers have checked bits
	return p.AppendTo(dst)
}

// ParsePrefix parses an address or a CIDR prefix. An address is the prefix
// that holds just it, and an IPv4-mapped one is the IPv4 one. Bits beyond the
// prefix length must be zero.
func ParsePrefix(s string) (netip.Prefix, error) {
	const must = "must be an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24"
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q: %s", s, must)
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q: %s", s, must)
	}
	if p.Addr().Is4In6() && p.Bits() < 96 {
		return netip.Prefix{}, fmt.Errorf("%q: spans IPv4 and IPv6: must be the IPv4 prefix", s)
	}
	p = unmap(p)
	if p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("%q: bits beyond the prefix length: did you mean %s?", s, p.Masked())
	}
	return p, nil
}

// unmap returns the IPv4 prefix that a prefix of mapped addresses stands for,
// since clients are looked up unmapped, and any other prefix unchanged.
func unmap(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// withoutBrackets returns what is in the brackets of s, without the port behind them.
func withoutBrackets(s string) string {
	if inside, ok := strings.CutPrefix(s, "["); ok {
		host, port, ok := strings.Cut(inside, "]")
		if ok && (port == "" || port[0] == ':' && isPort(port[1:])) {
			return host
		}
	}
	return s
}

// isPort reports whether s is a port: up to five digits, or a name with an
// underscore in front, as RFC 7239 obfuscates them.
func isPort(s string) bool {
	if name, ok := strings.CutPrefix(s, "_"); ok {
		return isToken(name)
	}
	for i := range len(s) {
		if c := s[i]; c < '0' || c > '9' {
			return false
		}
	}
	return s != "" && len(s) <= len("65535")
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	const bytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	return s != "" && strings.Trim(s, bytes) == ""
}

// parseIPv4 parses four numbers up to 255 without leading zeros. It returns the text behind them.
func parseIPv4(s string) (ip [4]byte, rest string, ok bool) {
	part, digits, n, i := 0, 0, uint(0), 0
	for ; i < len(s); i++ {
		d := uint(s[i]) - '0'
		if d > 9 {
			if s[i] != '.' || digits == 0 || part == 3 {
				break
			}
			ip[part&3] = byte(n) // &3 only saves a check
			part, digits, n = part+1, 0, 0
			continue
		}
		if digits > 0 && n == 0 {
			return ip, s, false
		}
		if n = n*10 + d; n > 255 {
			return ip, s, false
		}
		digits++
	}
	if part < 3 || digits == 0 {
		return ip, s, false
	}
	ip[3] = byte(n)
	return ip, s[i:], true
}

// parseIPv6 parses groups of hex digits, the last two of which may be written
// as an IPv4 address, with one "::" for one or more groups of zeros.
func parseIPv6(s string) (ip [16]byte, ok bool) {
	n, gap := 0, -1 // bytes of ip so far, and where in them "::" stands
	if len(s) >= 2 && s[0] == ':' && s[1] == ':' {
		gap, s = 0, s[2:]
	}
	for len(s) > 0 {
		v, digits := hexGroup(s)
		if digits == 0 || n == len(ip) {
			return ip, false
		}
		if digits < len(s) && s[digits] == '.' {
			tail, rest, ok := parseIPv4(s)
			if !ok || rest != "" || n > len(ip)-len(tail) {
				return ip, false
			}
			n += copy(ip[n:], tail[:])
			break
		}
		ip[n], ip[n+1] = byte(v>>8), byte(v)
		n += 2
		if s = s[digits:]; len(s) == 0 {
			break
		}
		if s[0] != ':' || len(s) == 1 { // a single ':' at the end
			return ip, false
		}
		if s = s[1:]; s[0] == ':' {
			if gap >= 0 {
				return ip, false
			}
			gap, s = n, s[1:]
		}
	}
	if gap < 0 || n == len(ip) {
		return ip, gap < 0 && n == len(ip)
	}
	at := gap + len(ip) - n
	copy(ip[at:], ip[gap:n])
	clear(ip[gap:at])
	return ip, true
}

// hexGroup parses up to four hex digits.
func hexGroup(s string) (v uint, digits int) {
	for digits < len(s) && digits < 4 {
		d := unhex(s[digits])
		if d == 255 {
			break
		}
		v = v<<4 | uint(d)
		digits++
	}
	return v, digits
}

// unhex returns the value of a hex digit, or 255.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
