package latelyhttp

import "strings"

// malformedUser is the value of the field "user" for a request whose Authorization
// header is one of Basic authentication that names no user, or names different ones
// to different servers. All of these count as one user, so that odd spellings do not
// give fresh counters. No user of Basic authentication is called so, since a user
// name ends at the first ':'.
const malformedUser = "basic:malformed"

// appendUser appends to buf the user name of Basic authentication, if lines, the
// values of the Authorization header, have one. It is within buf; empty if there are
// no credentials of that scheme.
//
// Servers differ in what they accept: several spaces, padding that is missing, too
// long or in the middle, bytes that are not of the alphabet, the URL-safe alphabet.
// What any of them accepts is read as that user. Those that stop at the first odd
// byte have read a part of what those that skip it read, so both find one name
// before the first ':'. Those that take '-' and '_' for digits and those that skip
// them may differ: then the user is malformedUser.
func appendUser(buf []byte, lines []string) (grown, user []byte) {
	encoded, ok := basicToken(lines)
	if !ok {
		return buf, nil
	}
	from := len(buf)
	buf, named := appendUserName(buf, encoded, true)
	user = buf[from:]
	if named && strings.ContainsAny(encoded, "-_") {
		var other []byte
		at := len(buf)
		buf, named = appendUserName(buf, encoded, false)
		other = buf[at:]
		named = named && string(other) == string(user)
	}
	if !named || len(user) == 0 || len(lines) > 1 {
		at := len(buf)
		buf = append(buf, malformedUser...)
		user = buf[at:]
	}
	return buf, user
}

// basicToken returns what follows the scheme Basic in the first line, and whether
// any of lines has that scheme: of several lines, servers take one or the other.
func basicToken(lines []string) (token string, ok bool) {
	const scheme = "Basic"
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimLeft(lines[i], " \t")
		if len(line) >= len(scheme) && strings.EqualFold(line[:len(scheme)], scheme) {
			token, ok = line[len(scheme):], true
		}
	}
	if ok && token != "" && token[0] != ' ' && token[0] != '\t' {
		token = "" // another scheme, or no separator
	}
	return token, ok
}

// appendUserName appends what encoded has before the first ':', in base64. Bytes
// that are not of the alphabet are skipped, and so are '-' and '_' unless they are
// taken for '+' and '/'. It reports false if there is no ':'.
func appendUserName(dst []byte, encoded string, urlSafe bool) (name []byte, ok bool) {
	bits, n := uint32(0), 0
	for i := range len(encoded) {
		digit := base64Digit(encoded[i], urlSafe)
		if digit > 63 {
			continue
		}
		bits = bits<<6 | uint32(digit)
		if n += 6; n < 8 {
			continue
		}
		n -= 8
		c := byte(bits >> n)
		if c == ':' {
			return dst, true
		}
		dst = append(dst, c)
	}
	return dst, false
}

// base64Digit returns the value of a digit of base64, and 255 for other bytes.
func base64Digit(c byte, urlSafe bool) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c - 'A'
	case 'a' <= c && c <= 'z':
		return c - 'a' + 26
	case '0' <= c && c <= '9':
		return c - '0' + 52
	case c == '+' || urlSafe && c == '-':
		return 62
	case c == '/' || urlSafe && c == '_':
		return 63
	}
	return 255
}
