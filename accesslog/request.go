package accesslog

import (
	"bytes"
	"unsafe"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/match"
)

// setRequest sets the fields that a request line, METHOD SP TARGET [SP
// PROTOCOL], gives. A line that does not begin with an upper-case method and a
// target, as when a client speaks TLS to a plain port, sets none.
func setRequest(ev *match.Event, request []byte) {
	space := 0
	for space < len(request) && isUpper(request[space]) {
		space++
	}
	method, target := request[:space], request[space:]
	if space == 0 || len(target) < 2 || target[0] != ' ' || target[1] == ' ' {
		return
	}
	target = target[1:]
	if end := bytes.IndexByte(target, ' '); end >= 0 {
		ev.Set(match.Protocol, target[bytes.LastIndexByte(target, ' ')+1:])
		target = target[:end]
	}
	ev.Set(match.Method, method)
	ev.SetTarget(text(target))
}

// setURLRequest is setRequest for servers that write the target as a URL. Its path is
// the object, and its host without the port is the host.
func setURLRequest(ev *match.Event, request []byte) {
	setRequest(ev, request)
	if rest, ok := cutScheme(ev.Get(match.Object)); ok {
		setAuthority(ev, rest)
	}
}

// cutScheme returns what follows the scheme of a URL.
func cutScheme(target []byte) (rest []byte, ok bool) {
	scheme, rest, ok := bytes.Cut(target, []byte("://"))
	return rest, ok && bytes.IndexByte(scheme, '/') < 0
}

// setURI sets the fields that host/target gives, or a target alone.
func setURI(ev *match.Event, uri []byte) {
	ev.SetTarget(text(uri))
	path := ev.Get(match.Path)
	if rest, ok := cutScheme(path); ok {
		setAuthority(ev, rest)
	} else if len(path) > 0 && path[0] != '/' {
		setAuthority(ev, path)
	}
}

// setAuthority sets Host, and Object and Path to what follows it in uri.
func setAuthority(ev *match.Event, uri []byte) {
	slash := bytes.IndexByte(uri, '/')
	if slash < 0 {
		slash = len(uri)
	}
	ev.Set(match.Host, withoutPort(uri[:slash]))
	ev.Set(match.Object, uri[slash:])
	ev.Set(match.Path, uri[slash:])
}

// unescapePath makes the path of ev what the client sent, where the server that
// wrote the line has escaped it: nginx writes a backslash as \x5C, Apache as \\.
// Without this a condition on path would hold for a live request and not for its
// line. The object stays as the log has it. The first n bytes of the scratch are in use.
func (p *Parser) unescapePath(ev *match.Event, n int) {
	raw := ev.Get(match.Path)
	if bytes.IndexByte(raw, '\\') < 0 {
		return
	}
	p.scratch = appendLogUnescaped(p.scratch[:n], raw)
	ev.Set(match.Path, p.scratch[n:len(p.scratch):len(p.scratch)])
}

// appendLogUnescaped appends s with \xHH, \\ and \" replaced by the byte that
// they stand for. Other backslashes stay: a server that does not escape wrote
// them, or they stand for control bytes, which no path has.
func appendLogUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		switch rest := s[i:]; {
		case rest[0] != '\\' || len(rest) < 2:
			dst = append(dst, rest[0])
		case rest[1] == '\\' || rest[1] == '"':
			dst = append(dst, rest[1])
			i++
		case len(rest) >= len(`\xHH`) && rest[1] == 'x' && hexValue(rest[2:4]) >= 0:
			dst = append(dst, byte(hexValue(rest[2:4])))
			i += len(`xHH`)
		default:
			dst = append(dst, rest[0])
		}
	}
	return dst
}

// clientAddress returns the address of address:port or [address]:port, and anything else,
// such as a name or a key, as it is. An IPv6 address with a port has brackets, unless it is an
// IPv4 address of a socket for both, ::ffff:a.b.c.d:port, as HAProxy writes it.
func clientAddress(s []byte) []byte {
	i := len(s) - 1
	for i > 0 && isDigit(s[i]) {
		i--
	}
	if i <= 0 || s[i] != ':' && s[i] != ']' { // most have no port
		return s
	}
	host := withoutPort(s)
	if mapped, ok := bytes.CutPrefix(s, []byte("::ffff:")); ok && bytes.IndexByte(mapped, '.') > 0 {
		host = withoutPort(mapped)
	}
	if len(host) == len(s) || !isAddress(host) || len(withoutPort(host)) < len(host) {
		return s
	}
	return host
}

// setPeer sets the client to the address in front of a port. IPv6 may have no brackets.
func setPeer(ev *match.Event, peer []byte) {
	host := clientAddress(peer)
	if i := bytes.LastIndexByte(peer, ':'); i > 0 && len(host) == len(peer) && isAddress(peer[:i]) {
		host = peer[:i]
	}
	ev.Set(match.Client, host)
}

// peerAddress is clientAddress, also for an IPv6 address without brackets and a port of five
// digits, which is no part of an address.
func peerAddress(s []byte) []byte {
	address := clientAddress(s)
	port := len(s) - len(":65535")
	if port > 0 && s[port] == ':' && len(address) == len(s) && allDigits(s[port+1:]) && isAddress(s[:port]) {
		return s[:port]
	}
	return address
}

// isAddress reports whether s is an address, without a copy of it.
func isAddress(s []byte) bool {
	_, ok := address.Parse(text(s))
	return ok
}

// text returns b as a string without a copy, which holds as long as b is not changed.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// withoutPort returns the host of host:port, and other text unchanged.
func withoutPort(s []byte) []byte {
	if inside, ok := bytes.CutPrefix(s, []byte("[")); ok {
		host, port, ok := bytes.Cut(inside, []byte("]"))
		if ok && len(host) > 0 && (len(port) == 0 || port[0] == ':' && allDigits(port[1:])) {
			return host
		}
		return s
	}
	if host, port, ok := bytes.Cut(s, []byte(":")); ok && allDigits(port) {
		return host
	}
	return s
}

func allDigits(s []byte) bool {
	digits, rest := leadingDigits(s)
	return len(digits) > 0 && len(rest) == 0
}

// setForwarded sets the client from an X-Forwarded-For to which the server appended
// the address that it saw. What is before it is the field x_forwarded_for.
func setForwarded(ev *match.Event, list []byte) {
	last := bytes.LastIndexByte(list, ',')
	if client := bytes.Trim(list[last+1:], " \t"); len(client) > 0 {
		ev.Set(match.Client, clientAddress(client))
	}
	if last > 0 {
		ev.SetNamed("x_forwarded_for", list[:last])
	}
}
