package latelyhttp

import "strings"

// A chain reads the addresses that proxies appended to a header, from the right: last
// line first, and each line from its end. What it returns never depends on the text
// further left, which a client may have written.
type chain struct {
	lines     []string // not yet read
	rest      string   // of the current line
	open      bool     // there is a current line
	forwarded bool     // RFC 7239 instead of a list of addresses
}

// previous returns the next element to the left, which may have a port or be empty. It
// reports false at the beginning of the chain.
func (c *chain) previous() (node string, more bool) {
	if !c.open {
		n := len(c.lines)
		if n == 0 {
			return "", false
		}
		c.rest, c.lines, c.open = c.lines[n-1], c.lines[:n-1], true
	}
	comma := strings.LastIndexByte(c.rest, ',')
	if c.forwarded {
		comma = lastComma(c.rest)
	}
	element := c.rest[comma+1:]
	if comma < 0 {
		c.open = false
	} else {
		c.rest = c.rest[:comma]
	}
	if c.forwarded {
		return forwardedFor(element), true
	}
	return trim(element), true
}

// lastComma returns the index of the last comma outside quotes, or -1. Quotes are
// paired from the right, so that an unpaired one that a client sent does not hide what
// a proxy appended after it.
func lastComma(s string) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case '"':
			if !quoted || !escaped(s, i) {
				quoted = !quoted
			}
		case ',':
			if !quoted {
				return i
			}
		}
	}
	return -1
}

// escaped reports whether an odd number of backslashes stands before s[i].
func escaped(s string, i int) bool {
	n := 0
	for n < i && s[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the "for" parameter of a forwarded-element of RFC 7239, without
// quotes. It returns "" without a "for", for two of them, and if the element is not
// well formed. An escape within the node does not count as well formed: no address
// needs one.
func forwardedFor(element string) string {
	node, found := "", false
	for rest := afterPair(element); rest != ""; {
		name, tail, ok := strings.Cut(rest, "=")
		if !ok || !isToken(trim(name)) {
			return ""
		}
		value, tail, ok := cutValue(tail)
		if !ok {
			return ""
		}
		if strings.EqualFold(trim(name), "for") {
			if found {
				return ""
			}
			node, found = value, true
		}
		if tail = trim(tail); tail != "" && tail[0] != ';' {
			return ""
		}
		rest = afterPair(tail)
	}
	return node
}

// afterPair skips the semicolons, with white space, between two pairs.
func afterPair(s string) string { return strings.TrimLeft(s, "; \t") }

// cutValue cuts a parameter's value from the front of s: a quoted string,
// without its quotes, or what comes before the next ';'.
func cutValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		n := strings.IndexByte(s, ';')
		if n < 0 {
			n = len(s)
		}
		value = trim(s[:n])
		return value, s[n:], value != "" && strings.IndexByte(value, '"') < 0
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[1:i], s[i+1:], true
		}
	}
	return "", "", false
}

// trim removes the white space that HTTP allows around the elements of a list.
func trim(s string) string { return strings.Trim(s, " \t") }

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	const bytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	return s != "" && strings.Trim(s, bytes) == ""
}
