package match

import (
	"bytes"
	"net/netip"
)

// parseAddr parses an address as proxies, sockets and logs write it: bare, in
// brackets, with a port or a zone. It unmaps the address and drops port and zone.
// It takes what [netip.ParseAddr] takes, and unlike that does not allocate for
// other text: host names are as frequent as addresses in some logs.
func parseAddr(b []byte) (netip.Addr, bool) {
	b = withoutPort(b)
	if ip, ok := parseIPv4(b); ok {
		return netip.AddrFrom4(ip), true
	}
	b, zone, hasZone := bytes.Cut(b, []byte{'%'})
	if hasZone && len(zone) == 0 {
		return netip.Addr{}, false
	}
	ip, ok := parseIPv6(b)
	if !ok {
		return netip.Addr{}, false
	}
	return netip.AddrFrom16(ip).Unmap(), true
}

// withoutPort returns the host of host:port, [host]:port or [host], and anything
// else as it is. An IPv6 address with a port has brackets.
func withoutPort(b []byte) []byte {
	if len(b) == 0 || b[0] != '[' {
		if i := bytes.IndexByte(b, ':'); i >= len("0.0.0.0") && isPort(b[i:]) {
			return b[:i]
		}
		return b
	}
	end := bytes.IndexByte(b, ']')
	if end < 0 || end+1 < len(b) && !isPort(b[end+1:]) {
		return b
	}
	return b[1:end]
}

// isPort reports whether b is a colon and one to five digits.
func isPort(b []byte) bool {
	if len(b) < len(":1") || len(b) > len(":65535") || b[0] != ':' {
		return false
	}
	for _, c := range b[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// parseIPv4 parses four numbers up to 255 without leading zeros.
func parseIPv4(b []byte) (ip [4]byte, ok bool) {
	if len(b) > len("255.255.255.255") {
		return ip, false
	}
	part, digits, n := 0, 0, 0
	for _, c := range b {
		switch {
		case c == '.':
			if digits == 0 || part == 3 {
				return ip, false
			}
			ip[part] = byte(n)
			part++
			digits, n = 0, 0
		case '0' <= c && c <= '9':
			if digits > 0 && n == 0 {
				return ip, false
			}
			n = n*10 + int(c-'0')
			digits++
			if n > 255 {
				return ip, false
			}
		default:
			return ip, false
		}
	}
	ip[3] = byte(n)
	return ip, part == 3 && digits > 0
}

// parseIPv6 parses groups of hex digits, the last two of which may be written
// as an IPv4 address, with one "::" for one or more groups of zeros.
func parseIPv6(b []byte) (ip [16]byte, ok bool) {
	n, gap := 0, -1 // bytes of ip so far, and where in them "::" stands
	if len(b) >= 2 && b[0] == ':' && b[1] == ':' {
		gap, b = 0, b[2:]
	}
	for len(b) > 0 {
		v, digits := hexGroup(b)
		if digits == 0 || n == len(ip) {
			return ip, false
		}
		if digits < len(b) && b[digits] == '.' {
			tail, ok := parseIPv4(b)
			if !ok || n > len(ip)-len(tail) {
				return ip, false
			}
			n += copy(ip[n:], tail[:])
			break
		}
		ip[n], ip[n+1] = byte(v>>8), byte(v)
		n += 2
		if b = b[digits:]; len(b) == 0 {
			break
		}
		if b[0] != ':' || len(b) == 1 { // a single ':' at the end
			return ip, false
		}
		if b = b[1:]; b[0] == ':' {
			if gap >= 0 {
				return ip, false
			}
			gap, b = n, b[1:]
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
func hexGroup(b []byte) (v uint, digits int) {
	for digits < len(b) && digits < 4 {
		d := unhex(b[digits])
		if d == 255 {
			break
		}
		v = v<<4 | uint(d)
		digits++
	}
	return v, digits
}
