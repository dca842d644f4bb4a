package latelyhttp

import (
	"net"
	"regexp"
	"strings"
)

// The reference reads headers slowly and by other means than the package: all lines joined, split by regular expressions,
// addresses by net.ParseIP.

// An rfcElement is a forwarded-element as RFC 7239 spells it, with the white
// space that we also take.
const (
	rfcToken  = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
	rfcQuoted = `"(?:[^"\\]|\\[\s\S])*"`
	rfcLoose  = `[^;"]*[^;" \t][^;"]*`
	rfcPair   = `[ \t]*` + rfcToken + `[ \t]*=(?:` + rfcQuoted + `|` + rfcLoose + `)[ \t]*`
)

var (
	rfcElement = regexp.MustCompile(`^[; \t]*` + rfcPair + `(?:;[; \t]*` + rfcPair + `)*[; \t]*$`)
	rfcFor     = regexp.MustCompile(`(?i)^[ \t]*for[ \t]*=`)
	rfcPairs   = regexp.MustCompile(rfcPair)
	rfcZone    = regexp.MustCompile("^" + rfcToken + "$")
	nodeForm   = regexp.MustCompile(`^(?:\[([^\]]*)\](?::(?:\d{1,5}|_[!#$%&'*+.^_` + "`" + `|~0-9A-Za-z-]+))?|([^:\[]*):(?:\d{1,5}|_[!#$%&'*+.^_` + "`" + `|~0-9A-Za-z-]+)|([^:\[]*|[^:\[]*:[^\[]*:[^\[]*))$`)
)

// referenceNode returns the address in a node in its canonical text, or "".
func referenceNode(text string) string {
	m := nodeForm.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	host := m[1] + m[2] + m[3]
	if at := strings.IndexByte(host, '%'); at >= 0 {
		if !strings.Contains(host[:at], ":") || !rfcZone.MatchString(host[at+1:]) {
			return ""
		}
		host = host[:at]
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return ""
	}
	return ip.String() // writes IPv4 for mapped ones
}

// referenceFor returns the node of a forwarded-element, or "".
func referenceFor(element string) string {
	if !rfcElement.MatchString(element) {
		return ""
	}
	node := ""
	for _, pair := range rfcPairs.FindAllString(element, -1) {
		if !rfcFor.MatchString(pair) {
			continue
		}
		if node != "" {
			return ""
		}
		_, node, _ = strings.Cut(pair, "=")
		node = strings.Trim(node, " \t")
		if strings.HasPrefix(node, `"`) {
			node = node[1 : len(node)-1]
		}
		if node == "" {
			return ""
		}
	}
	return node
}

// referenceElements splits a Forwarded line at the commas outside quotes, seen
// from the right, by cutting one byte after the other off its end.
func referenceElements(line string) []string {
	var elements []string
	element, quoted := "", false
	for line != "" {
		before, last := line[:len(line)-1], line[len(line)-1]
		slashes := len(before) - len(strings.TrimRight(before, `\`))
		switch {
		case last == '"' && (!quoted || slashes%2 == 0):
			quoted = !quoted
		case last == ',' && !quoted:
			elements, element, line = append(elements, element), "", before
			continue
		}
		element, line = string(last)+element, before
	}
	return append(elements, element)
}

// referenceChain returns the addresses in a header from right to left, "" for other text.
func referenceChain(lines []string, forwarded bool) (addrs []string) {
	for i := len(lines) - 1; i >= 0; i-- {
		elements := strings.Split(lines[i], ",")
		if forwarded {
			elements = referenceElements(lines[i])
		}
		for j := range elements {
			if forwarded {
				addrs = append(addrs, referenceNode(referenceFor(elements[j])))
			} else {
				addrs = append(addrs, referenceNode(strings.Trim(elements[len(elements)-1-j], " \t")))
			}
		}
	}
	return addrs
}

// referenceClient is the identity behind proxies in 10.0.0.0/8 and fd00::/8,
// without translated addresses.
func referenceClient(peer string, lines []string, forwarded bool, hops int) string {
	trusted := func(text string) bool {
		ip := net.ParseIP(text)
		v4 := ip.To4()
		return v4 != nil && v4[0] == 10 || v4 == nil && ip[0] == 0xfd
	}
	at := referenceNode(peer)
	if !trusted(at) {
		return at
	}
	for i, addr := range referenceChain(lines, forwarded) {
		if addr == "" {
			return "proxy:" + at
		}
		at = addr
		if i+1 == hops || !trusted(at) {
			return at
		}
	}
	return "proxy:" + at
}
