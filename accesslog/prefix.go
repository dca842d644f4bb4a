package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// Prefixes that other programs put in front of the lines of a log. A format with a prefix
// hands the rest of a line to the parser of another format.

// The formats with a prefix.
var (
	syslogPrefix  = prefixFormat("syslog", cutSyslog)
	composePrefix = prefixFormat("compose", cutCompose)
	kubectlPrefix = prefixFormat("kubectl", cutKubectl)
	sternPrefix   = prefixFormat("stern", cutStern)
	grepPrefix    = prefixFormat("grep", cutGrep)

	prefixes = []Format{syslogPrefix, composePrefix, kubectlPrefix, sternPrefix, grepPrefix}
)

func prefixFormat(name string, cut func(line []byte) (inner []byte, ok bool)) Format {
	return Format{text: name, kind: &lineKind{parse: (*Parser).prefixed, cut: cut}}
}

// prefixed reads the line behind a prefix.
func (p *Parser) prefixed(line []byte, ev *match.Event) bool {
	inner, ok := p.kind.cut(line)
	if !ok || p.inner == nil {
		return false
	}
	ok = p.inner.Parse(inner, ev)
	p.skipped = p.inner.skipped
	return ok
}

// cutSyslog cuts what syslog puts in front of a message, "TIME HOST PROGRAM[7]: " or RFC 5424.
func cutSyslog(line []byte) (inner []byte, ok bool) {
	var h head
	if len(line) > 0 && line[0] == '<' {
		if line, ok = cutPriority(line); !ok {
			return nil, false
		}
		if rest, ok := bytes.CutPrefix(line, []byte("1 ")); ok {
			h, ok = readRFC5424(rest)
			return h.text, ok
		}
	}
	if s, ok := readSysStamp(line); ok {
		h.text = line[s.end:]
	} else if s, ok := readStamp(line); ok && s.letterT {
		h.text = line[s.end:]
	} else {
		return nil, false
	}
	h.tagged = true
	program, inner := cutTag(&h)
	tag := bytes.TrimRight(h.text[:len(h.text)-len(inner)], " ")
	return inner, len(program) > 0 && bytes.HasSuffix(tag, []byte(":"))
}

// nameEnd returns the index after the name that s begins with: of a container, a pod or a
// service.
func nameEnd(s []byte) int {
	i := 0
	for i < len(s) && (isDigit(s[i]) || isLower(s[i]|' ') || s[i] == '-' || s[i] == '_' || s[i] == '.') {
		i++
	}
	return i
}

// cutCompose cuts "web-1  | ", the name of a container.
func cutCompose(line []byte) (inner []byte, ok bool) {
	n := nameEnd(line)
	inner, ok = bytes.CutPrefix(bytes.TrimLeft(line[n:], " "), []byte("|"))
	return bytes.TrimPrefix(inner, []byte(" ")), ok && n > 0
}

// cutKubectl cuts "[pod/web-1/nginx] ", as kubectl logs --prefix writes it.
func cutKubectl(line []byte) (inner []byte, ok bool) {
	line, ok = bytes.CutPrefix(line, []byte("[pod/"))
	_, inner, ok2 := bytes.Cut(line, []byte("] "))
	return inner, ok && ok2
}

// cutStern cuts "web-1 nginx ", the names of a pod and a container.
func cutStern(line []byte) (inner []byte, ok bool) {
	for range 2 {
		n := nameEnd(line)
		if n == 0 || n == len(line) || line[n] != ' ' || !isDigit(line[0]) && !isLower(line[0]|' ') {
			return nil, false
		}
		line = line[n+1:]
	}
	return line, true
}

// cutGrep cuts "access.log:" or "access.log:12:".
func cutGrep(line []byte) (inner []byte, ok bool) {
	file, inner, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(file) == 0 || bytes.IndexByte(file, ' ') >= 0 {
		return nil, false
	}
	if digits, rest := leadingDigits(inner); len(digits) > 0 && len(rest) > 0 && rest[0] == ':' {
		inner = rest[1:]
	}
	return inner, true
}
