package httpfield

import "strings"

// malformedUser is the value of the field "user" for Basic authentication without a
// user, or with a user that servers read differently. All of these count as one user,
// so that unusual encodings do not get fresh counters. It cannot be a real user name,
// which ends at the first ':'.
const malformedUser = "basic:malformed"

// appendUser appends to buf the user name of Basic authentication, if lines, the
// values of the Authorization header, have one. It is within buf; empty if there are
// no credentials of that scheme.
//
// Servers differ in what they accept: several spaces, padding that is missing, too long
// or in the middle, bytes outside the alphabet, the URL-safe alphabet. A user that any
// of them accepts is that user. A server that stops at the first invalid byte and one
// that skips it read the same name, up to the first ':'. If servers that read '-' and
// '_' as digits and servers that skip them disagree, the user is malformedUser.
func appendUser(buf []byte, lines []string) (grown, user []byte) {
	encoded, ok := basicToken(lines)
	if !ok {
		return buf, nil
	}
	from := len(buf)
	buf, named := appendUserName(buf, encoded, true)
	user = buf[from:]
	if named && strings.ContainsAny(encoded, "-_") {
		at := len(buf)
		buf, named = appendUserName(buf, encoded, false)
		named = named && string(buf[at:]) == string(user)
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

// appendUserName decodes base64 up to the first ':', and reports false without a ':'.
// It skips bytes outside the alphabet, and also '-' and '_' unless urlSafe is set.
func appendUserName(dst []byte, encoded string, urlSafe bool) (name []byte, ok bool) {
	const standard, url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_"
	bits, n := uint32(0), 0
	for i := range len(encoded) {
		digit := strings.IndexByte(standard, encoded[i])
		if digit < 0 && urlSafe && strings.IndexByte(url, encoded[i]) >= 0 {
			digit = len(standard) - len(url) + strings.IndexByte(url, encoded[i])
		}
		if digit < 0 {
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
