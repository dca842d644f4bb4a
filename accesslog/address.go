package accesslog

import (
	"bytes"
	"unsafe"

	"github.com/lately-go/lately/match"
)

// clientAddress returns the address of address:port or [address]:port, and anything else,
// such as a name or a key, as it is. An IPv6 address with a port has brackets.
func clientAddress(s []byte) []byte {
	i := len(s) - 1
	for i > 0 && isDigit(s[i]) {
		i--
	}
	if i <= 0 || s[i] != ':' && s[i] != ']' { // most have no port
		return s
	}
	host := withoutPort(s)
	if len(host) == len(s) || !isAddress(host) || len(withoutPort(host)) < len(host) {
		return s
	}
	return host
}

// isAddress reports whether s is an address, without a copy of it.
func isAddress(s []byte) bool {
	_, ok := match.ParseAddr(unsafe.String(unsafe.SliceData(s), len(s)))
	return ok
}

// withoutPort returns the host of host:port, and anything else as it is.
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

// appendSeconds appends a number of units of 10^-scale seconds as a number of seconds, and
// returns it too. It is nil for a value that is no duration, such as a dash or -1.
func appendSeconds(dst, number []byte, scale int) (seconds, all []byte) {
	if len(number) > 0 && number[0] == '+' { // HAProxy, of a request that has not ended
		number = number[1:]
	}
	digits, rest := leadingDigits(number)
	switch {
	case len(digits) == 0:
		return nil, dst
	case scale == 0:
		return number, dst
	case len(rest) > 0 && (rest[0] != '.' || !allDigits(rest[1:])):
		return nil, dst
	}
	n := len(dst)
	if whole := len(digits) - scale; whole > 0 {
		dst = append(append(dst, digits[:whole]...), '.')
		dst = append(dst, digits[whole:]...)
	} else {
		dst = append(append(dst, "0.000000000"[:2-whole]...), digits...)
	}
	if len(rest) > 0 {
		dst = append(dst, rest[1:]...)
	}
	dst = bytes.TrimSuffix(bytes.TrimRight(dst, "0"), []byte("."))
	return dst[n:len(dst):len(dst)], dst
}
