package accesslog

import "bytes"

// findClient returns the one address in a text that stands where a client stands, nil if there
// is none, or several that could be one. Addresses of servers do not count, nor those in URLs and
// behind '@'. A text in double quotes is chosen by a client: an address counts if it is all of it.
func findClient(text []byte) (client []byte) {
	marked, pair, quotes := false, 0, quotes{client: -1} // pair is the index behind an address with a port
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\'' && quotes.isQuote(text, i):
			quotes.take(text, i)
			i++
			continue
		case i > 0 && partOfName(text[i-1]) || !isHexDigit(c) && c != ':':
			i++
			continue
		}
		n, end := addressAt(text[i:])
		address, from, port := text[i:i+n], i, end > n
		i += max(end, 1)
		if n == 0 || quotes.client >= 0 && (from != quotes.client+1 || !quotes.ends(text[i:])) {
			continue
		}
		role := roleOf(text[:from])
		switch {
		case role == roleNone && pair > 0 && from == pair+1 && port: // the other end of a connection
			role = roleServer
		case role == roleNone && port && isOutgoing(text[:from]):
			role = roleServer
		case role == roleNone && (port || isDone(text[i:])):
			role = roleClient
		}
		if pair = 0; port {
			pair = i
		}
		switch {
		case role == roleServer:
		case client != nil && !bytes.Equal(client, address):
			return nil
		default:
			client, marked = address, marked || role == roleClient
		}
	}
	if !marked {
		return nil
	}
	return client
}

func isHexDigit(c byte) bool { return isDigit(c) || (c|' ')-'a' < 6 }

// partOfName reports whether an address cannot follow c.
func partOfName(c byte) bool { return isWordByte(c) || c == '.' || c == '-' || c == '@' }

// isOutgoing reports whether a text before an address says that this machine connects to it.
func isOutgoing(before []byte) bool {
	for _, verb := range []string{"dial ", "connect to ", "connecting to ", "connected to ", "connection to ", "cannot connect ", "could not connect "} {
		if bytes.Contains(before, []byte(verb)) {
			return true
		}
	}
	return false
}

// quotes are the quotes that a place in a text is between.
type quotes struct {
	message bool // the value of a key of messages, as in JSON and logfmt: a text of a program
	client  int  // the place of the quote before a text of a client, -1 outside of one
	mark    byte // that quote
}

// isQuote reports whether the single quote at i begins or ends a text of a client, and is no apostrophe.
func (q *quotes) isQuote(text []byte, i int) bool {
	if q.client >= 0 {
		return q.mark == '\'' && (i+1 == len(text) || !isWordByte(text[i+1]))
	}
	return i == 0 || !isWordByte(text[i-1])
}

// take passes the quote at i. A quote in a message is behind a backslash.
func (q *quotes) take(text []byte, i int) {
	escaped := i > 0 && text[i-1] == '\\'
	switch {
	case q.message && !escaped && text[i] == '"':
		q.message, q.client = false, -1
	case q.client >= 0 && q.mark != text[i]:
	case q.client >= 0:
		q.client = -1
	case !escaped && text[i] == '"' && isMessageKey(text[:i]):
		q.message = true
	default:
		q.client, q.mark = i, text[i]
	}
}

// isMessageKey reports whether a text ends with a key of messages, and what divides it from its value.
func isMessageKey(text []byte) bool {
	key := bytes.TrimRight(text, "=: ")
	if len(key) == len(bytes.TrimRight(text, " ")) {
		return false
	}
	key = lastWord(bytes.TrimSuffix(key, []byte{'"'}))
	return string(key) == "msg" || string(key) == "message" || string(key) == "log"
}

// deeds are words behind an address that say what a client did, or what was done about it.
var deeds = map[string]bool{
	"authentication": true, "failed": true, "tried": true, "attempted": true, "exceeded": true, "rejected": true, "refused": true, "denied": true, "blocked": true, "banned": true,
}

// isDone reports whether the text behind an address states a deed.
func isDone(rest []byte) bool {
	rest, ok := bytes.CutPrefix(rest, []byte(" "))
	word, _, _ := bytes.Cut(rest, []byte(" "))
	return ok && deeds[string(word)]
}

// ends reports whether the quote ends the text that rest follows.
func (q *quotes) ends(rest []byte) bool {
	rest = bytes.TrimLeft(rest, `\`)
	return len(rest) > 0 && rest[0] == q.mark
}

// addressAt returns the length of the address that s begins with, 0 if there is none, and the index
// behind it and its port, or behind what is no address.
func addressAt(s []byte) (n, end int) {
	if n = ipv4Len(s); n > 0 {
		end = portEnd(s, n)
		if end < 0 || string(s[:n]) == "0.0.0.0" {
			return 0, n
		}
		return n, end
	}
	colons, digits, long, double := 0, false, 0, false
	for n < len(s) && (isHexDigit(s[n]) || s[n] == ':' || s[n] == '.') {
		switch {
		case s[n] == ':':
			double = double || n > 0 && s[n-1] == ':'
			colons++
			long = max(long, 0)
		case isDigit(s[n]):
			digits = true
		}
		n++
	}
	if colons < 2 {
		end = 0
		for end < len(s) && isWordByte(s[end]) {
			end++
		}
		return 0, end
	}
	end = n
	address := bytes.TrimRight(s[:n], ".:")
	if n < len(s) && (isWordByte(s[n]) || s[n] == '@') || !digits || !double && !hasLongGroup(address) {
		return 0, end
	}
	if !isAddress(address) {
		address = peerAddress(address)
	}
	if !isAddress(address) || string(address) == "::" {
		return 0, end
	}
	return len(address), max(len(address), portEnd(s, len(address)))
}

// hasLongGroup distinguishes an IPv6 address from the address of a network card.
func hasLongGroup(address []byte) bool {
	for group := range bytes.SplitSeq(address, []byte(":")) {
		if len(group) > 2 {
			return true
		}
	}
	return false
}

// ipv4Len returns the length of the IPv4 address that s begins with, 0 if there is none.
func ipv4Len(s []byte) (n int) {
	for group := range 4 {
		if group > 0 {
			if n == len(s) || s[n] != '.' {
				return 0
			}
			n++
		}
		digits, _ := leadingDigits(s[n:min(len(s), n+3)])
		value, _ := digitsValue(digits)
		if len(digits) == 0 || value > 255 || len(digits) > 1 && digits[0] == '0' {
			return 0
		}
		n += len(digits)
	}
	return n
}

// portEnd returns the index behind the port that follows the address s[:n], n if none does, and -1
// if what follows shows that it is no address of a client: a longer name or number, or a network.
func portEnd(s []byte, n int) int {
	rest := s[n:]
	if len(rest) < 2 || isWordByte(rest[0]) {
		if len(rest) > 0 && isWordByte(rest[0]) {
			return -1
		}
		return n
	}
	if rest[0] == ']' && rest[1] == ':' && len(rest) > 2 && isDigit(rest[2]) {
		n, rest = n+1, rest[1:]
	}
	digits, after := leadingDigits(rest[1:])
	switch rest[0] {
	case ':', '#':
		if len(digits) > 0 {
			return n + 1 + len(digits)
		}
	case '.': // as tcpdump writes a port; otherwise a number of a version, or a name
		switch {
		case len(digits) >= 3 && (len(after) == 0 || !partOfName(after[0])):
			return n + 1 + len(digits)
		case isWordByte(rest[1]):
			return -1
		}
	case '/':
		if len(digits) > 0 && len(digits) < 3 && string(digits) != "32" {
			return -1
		}
	case '-', '@':
		if isWordByte(rest[1]) || rest[0] == '@' {
			return -1
		}
	}
	return n
}

// A role is the meaning of an address by the text before it.
type role uint8

const (
	roleNone role = iota
	roleClient
	roleServer
)

// roles are the words before an address that say what it is. Longer words may have them as a part, as
// in remote_ip, and begin with those of servers, as in localAddress.
var roles = rolesOf(map[role]string{
	roleClient: "from client ip ips ipaddr ipaddress addr address remote peer src source by for host hostname visitor attacker rhost rip raddr saddr " +
		"connection ban banned banning block blocked blocking deny denied reject rejected refused drop dropped van von de",
	roleServer: "to at on server local localhost lip laddr daddr dst dest destination listen listening listener bind bound upstream backend via nameserver " +
		"resolver gateway gw dns version v release route network net netmask mask subnet broadcast interface relay target node origin public external wan own my outgoing outbound",
})

func rolesOf(words map[role]string) map[string]role {
	roles := make(map[string]role)
	for r, list := range words {
		for word := range bytes.FieldsSeq([]byte(list)) {
			roles[string(word)] = r
		}
	}
	return roles
}

// transports are words between an address and the word that gives its role.
var transports = map[string]bool{"tcp": true, "udp": true, "tls": true, "ws": true, "wss": true, "ipv4": true, "ipv6": true, "ip": true, "inet": true, "inet6": true}

// roleOf returns the role of an address behind this text.
func roleOf(before []byte) role {
	rest := bytes.TrimRight(before, " [({<\"'`=:/\\")
	gap := before[len(rest):]
	switch {
	case bytes.Contains(gap, []byte("//")):
		return roleServer
	case len(rest) == 0:
		return roleClient
	case bytes.HasSuffix(rest, []byte("->")), bytes.HasSuffix(rest, []byte("=>")), string(gap) == " " && bytes.HasSuffix(rest, []byte(" >")):
		return roleServer
	case !isWordByte(rest[len(rest)-1]):
		return roleClient
	}
	word := lastWord(rest)
	rest = rest[:len(rest)-len(word)]
	var lower lowerWord
	name := lower.of(word)
	switch {
	case (gap[0] == '/' || gap[0] == ':' || bytes.HasPrefix(gap, []byte(" ["))) && transports[string(name)]:
		return max(roleClient, roleOf(rest))
	case len(gap) == 1 && gap[0] == '/', string(name) == "host" && bytes.HasPrefix(gap, []byte(`: "`)):
		return roleServer
	}
	if string(name) == "from" && (bytes.Contains(rest, []byte("sending ")) || bytes.Contains(rest, []byte("sent "))) { // by this machine
		return roleServer
	}
	if string(name) == "user" || string(name) == "username" { // the name that a client gave
		return roleServer
	}
	r := roleOfWord(name)
	inBrackets := bytes.ContainsAny(gap, "[({<")
	if r == roleServer || r == roleClient && !isNoun(name) {
		return r
	}
	if (r == roleClient || inBrackets) && isOfServer(rest) {
		return roleServer
	}
	if r == roleNone && !inBrackets && !bytes.ContainsAny(gap, "=:\"'`") && !isHostName(word) {
		return roleNone
	}
	return roleClient
}

// isOfServer reports whether the words before a host or an address say that it is a server's, as in
// "server IP address".
func isOfServer(words []byte) bool {
	var lower lowerWord
	words = bytes.TrimRight(words, " =")
	word := lastWord(words)
	if isNoun(lower.of(word)) {
		words = bytes.TrimRight(words[:len(words)-len(word)], " =")
		word = lastWord(words)
	}
	return roleOfWord(lower.of(word)) == roleServer
}

// A lowerWord holds a word in lower case; longer ones are cut.
type lowerWord [24]byte

func (l *lowerWord) of(word []byte) []byte {
	lower := l[:copy(l[:], word)]
	for i, c := range lower {
		if isUpper(c) {
			lower[i] = c | ' '
		}
	}
	return lower
}

// lastWord returns the word that a text ends with, which may be the name of a host.
func lastWord(text []byte) []byte {
	i := len(text)
	for i > 0 && (isWordByte(text[i-1]) || text[i-1] == '.' || text[i-1] == '-') {
		i--
	}
	return text[i:]
}

// isNoun reports whether the word before name may say whose it is.
func isNoun(name []byte) bool {
	switch string(name) {
	case "host", "hostname", "address", "addr", "ip", "ips", "ipaddr", "ipaddress", "connection":
		return true
	}
	return false
}

// roleOfWord returns the role of a word in lower case.
func roleOfWord(word []byte) (r role) {
	for _, prefix := range []string{"local", "server", "dest", "dst", "listen", "upstream"} {
		if len(word) >= len(prefix) && string(word[:len(prefix)]) == prefix {
			return roleServer
		}
	}
	for more := true; more; {
		part := word
		i := bytes.IndexAny(word, "_-")
		if more = i >= 0; more {
			part, word = word[:i], word[i+1:]
		}
		r = max(r, roles[string(part)])
	}
	return r
}
