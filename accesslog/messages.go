package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// Messages of programs about a client that failed or was refused: a head with the time,
// and in syslog the program, and a text that the table of messages describes.

var messageFields = []string{"client", "user", "program", "reason", "object", "proto", "spt"}

// headed reads a line of syslog, or of a log that a program writes itself: a time and a message. In
// some formats the time may stand anywhere. Messages without fields are skipped.
func (p *Parser) headed(line []byte, ev *match.Event) bool {
	for len(line) > 0 && line[len(line)-1] == ' ' {
		line = line[:len(line)-1]
	}
	h, ok := p.readHead(line)
	if !ok && p.kind.order != noOrder {
		h, ok = p.findHead(line)
	}
	if !ok || len(h.text) == 0 {
		return false
	}
	p.skipped = true
	if !p.setMessage(&h, ev) {
		return false
	}
	p.skipped, p.yearless, p.zoneless = false, h.yearless, h.local
	ev.Time = utc(h.sec, h.nsec)
	return true
}

// setMessage sets the fields that a text without its time has in ev.
func (p *Parser) setMessage(h *head, ev *match.Event) bool {
	if p.kind.order != noOrder {
		return p.plainMessage(h, ev)
	}
	return p.message(h, ev)
}

// message sets the fields of ev to what a message is about.
func (p *Parser) message(h *head, ev *match.Event) bool {
	v, text, ok := p.sameTag(h)
	if !ok {
		var program []byte
		program, text = cutTag(h)
		if v = p.table.programs[string(program)]; v == nil {
			return p.table.setUnknown(h, program, text, ev)
		}
		p.keepTag(v, h.text[:len(h.text)-len(text)])
	}
	p.known = !v.packets
	if inner, n, ok := cutRepeated(text); ok {
		text, p.repeats = inner, n-1
	}
	switch {
	case v.packets && readBlocked(text, ev):
	case v.set(text, ev), p.table.general.set(text, ev), setNested(v, text, ev):
		ev.SetNamed("program", v.name)
	default:
		p.repeats = 0
		return false
	}
	return true
}

// sameTag is cutTag for a text with the tag of an earlier line, as most, but for the number of the
// process. It also returns the messages of the program.
func (p *Parser) sameTag(h *head) (v *vocabulary, text []byte, ok bool) {
	if len(p.tag) == 0 || h.program != nil || !h.tagged || !bytes.HasPrefix(h.text, p.tag) {
		return nil, nil, false
	}
	digits, rest := leadingDigits(h.text[len(p.tag):])
	const end = "]: "
	if len(digits) == 0 || len(rest) <= len(end) || string(rest[:len(end)]) != end || rest[len(end)] == ' ' || rest[len(end)] == '[' {
		return nil, nil, false
	}
	return p.tagged, rest[len(end):], true
}

// keepTag keeps a tag such as "HOST PROGRAM[7]: " up to the bracket.
func (p *Parser) keepTag(v *vocabulary, tag []byte) {
	tag, ok := bytes.CutSuffix(tag, []byte("]: "))
	for len(tag) > 0 && isDigit(tag[len(tag)-1]) {
		tag = tag[:len(tag)-1]
	}
	if bracket := bytes.IndexByte(tag, '['); ok && bracket >= 0 && bracket == len(tag)-1 {
		p.tagged, p.tag = v, append(p.tag[:0], tag...)
	}
}

// maxRepeats bounds how many events a line stands for.
const maxRepeats = 100_000

// cutRepeated cuts "message repeated 3 times: [ TEXT]", which rsyslog writes.
func cutRepeated(text []byte) (inner []byte, n int, ok bool) {
	if len(text) == 0 || text[0] != 'm' { // as most
		return nil, 0, false
	}
	if text, ok = bytes.CutPrefix(text, []byte("message repeated ")); !ok {
		return nil, 0, false
	}
	digits, rest := leadingDigits(text)
	inner, ok = bytes.CutPrefix(rest, []byte(" times: [ "))
	if !ok || len(digits) == 0 || len(digits) > 6 {
		return nil, 0, false
	}
	n, _ = digitsValue(digits)
	inner, ok = bytes.CutSuffix(inner, []byte("]"))
	return inner, n, ok && 1 <= n && n <= maxRepeats
}

// A head is what stands in front of a message.
type head struct {
	sec, nsec int64
	local     bool   // the time names no zone
	yearless  bool   // nor a year
	tagged    bool   // a tag of syslog must follow, maybe after a host
	letterT   bool   // the time is as in RFC 3339
	program   []byte // of RFC 5424; otherwise text has it
	text      []byte
}

// readHead reads the time that a line begins with.
func (p *Parser) readHead(line []byte) (h head, ok bool) {
	if len(line) == 0 {
		return h, false
	}
	switch c := line[0]; {
	case c == '<':
		if line, ok = cutPriority(line); !ok {
			return h, false
		}
		if rest, ok := bytes.CutPrefix(line, []byte("1 ")); ok {
			return readRFC5424(rest)
		}
		return p.readHead(line)
	case isUpper(c):
		if p.readYearless(&h, line, ' ') {
			return h, true
		}
	case bytes.HasPrefix(line, []byte("type=")):
		return readAudit(line)
	case c == '[' && len(line) > 2 && isUpper(line[1]):
		if p.readYearless(&h, line[1:], ']') || isUpper(line[2]) && p.readYearless(&h, line[bytes.IndexByte(line, ' ')+1:], ']') { // behind a zone, that of this machine
			h.tagged, h.text = false, trimBlanks(h.text)
			return h, true
		}
	case len(line) > len("mm-dd") && line[2] == '-' && line[5] == ' ':
		if stamp, ok := readMonthDay(line); ok {
			p.years.minute = sysMinute{}
			seconds, ok := p.years.time(stamp)
			p.setYearless(&h, seconds, line[stamp.end:])
			h.tagged = false
			return h, ok
		}
	}
	return p.readStamped(line)
}

// readYearless reads the head of RFC 3164: "Mon dd hh:mm:ss", and the byte behind it.
func (p *Parser) readYearless(h *head, line []byte, until byte) bool {
	seconds, end, ok := p.years.read(line, until)
	if !ok {
		return false
	}
	p.setYearless(h, seconds, line[end:])
	return true
}

// setYearless sets h to a time that p.years has given.
func (p *Parser) setYearless(h *head, seconds int64, text []byte) {
	if p.years.year != 0 {
		seconds = p.zone.seconds(seconds)
	}
	h.sec, h.local, h.yearless, h.tagged, h.text = seconds, true, true, true, text
}

// readAudit reads "type=EVENT msg=audit(SECONDS:NUMBER): " of the audit daemon of Linux.
func readAudit(line []byte) (h head, ok bool) {
	_, rest, _ := bytes.Cut(line, []byte(" msg=audit("))
	stamp, rest, _ := bytes.Cut(rest, []byte(":"))
	_, h.text, ok = bytes.Cut(rest, []byte("): "))
	if ok {
		h.sec, h.nsec, ok = readDecimal(stamp, 0)
	}
	return h, ok
}

// readStamped reads a time with a year.
func (p *Parser) readStamped(line []byte) (h head, ok bool) {
	s, ok := readStamp(line)
	if !ok {
		return h, false
	}
	h = p.headOf(s, line[s.end:])
	h.tagged, h.letterT = s.tagged, s.letterT
	return h, true
}

// headOf returns the head with a time that stands before text.
func (p *Parser) headOf(s stamp, text []byte) head {
	h := head{sec: s.sec, nsec: s.nsec, local: s.local, text: text}
	if s.local {
		h.sec = p.zone.seconds(h.sec)
	}
	return h
}

// cutPriority cuts the priority of syslog, such as <190>, off a line.
func cutPriority(line []byte) (rest []byte, ok bool) {
	digits, rest := leadingDigits(line[1:])
	rest, ok = bytes.CutPrefix(rest, []byte(">"))
	return rest, ok && 1 <= len(digits) && len(digits) <= 3
}

// readRFC5424 reads "TIME HOST PROGRAM PROCESS ID DATA TEXT".
func readRFC5424(line []byte) (h head, ok bool) {
	stamp, rest, _ := bytes.Cut(line, []byte(" "))
	_, rest, _ = bytes.Cut(rest, []byte(" ")) // host
	h.program, rest, _ = bytes.Cut(rest, []byte(" "))
	_, rest, _ = bytes.Cut(rest, []byte(" ")) // process
	_, rest, ok = bytes.Cut(rest, []byte(" "))
	if !ok {
		return h, false
	}
	if h.text, ok = cutData(rest); !ok {
		return h, false
	}
	h.sec, h.nsec, ok = readLooseISO(stamp)
	return h, ok
}

// cutData cuts the structured data of RFC 5424 off a text: "-", or elements in brackets, in
// which quotes have any text.
func cutData(s []byte) (text []byte, ok bool) {
	if s, ok = bytes.CutPrefix(s, []byte("-")); ok {
		return trimBlanks(s), true
	}
	for len(s) > 0 && s[0] == '[' {
		i, quoted := 1, false
		for ; i < len(s) && (quoted || s[i] != ']'); i++ {
			switch s[i] {
			case '"':
				quoted = !quoted
			case '\\':
				i++
			}
		}
		if i >= len(s) {
			return nil, false
		}
		s, ok = s[i+1:], true
	}
	return trimBlanks(trimMarks(trimBlanks(s))), ok
}

// cutTag cuts "HOST PROGRAM[7]: " off the text of a head, HOST being optional, and returns
// the program without what follows a '/', as in postfix/smtpd.
func cutTag(h *head) (program, text []byte) {
	if h.program != nil || !h.tagged {
		return beforeSlash(h.program), h.text
	}
	text = h.text
	for len(text) > 0 && text[0] == ' ' {
		text = text[1:]
	}
	if len(text) > 0 && text[0] == '<' { // <facility.level>, as syslogd -v of BSD writes it
		_, text, _ = bytes.Cut(text, []byte(" "))
	}
	host := bytes.IndexByte(text, ' ')
	if host > 0 && text[host-1] != ':' && text[host-1] != ']' {
		text = text[host+1:]
	}
	if h.yearless {
		text = trimByte(text, '[')
	}
	i := 0
	for i < len(text) && !endsTag[text[i]] {
		i++
	}
	program, text = text[:i], text[i:]
	for len(text) > 0 && text[0] == '(' {
		_, text, _ = bytes.Cut(text, []byte(")"))
	}
	if process := trimBlanks(text); len(process) > 1 && process[0] == '[' && isDigit(process[1]) {
		if _, rest := leadingDigits(process[1:]); len(rest) > 0 && rest[0] == ']' {
			text = rest[1:]
		}
	}
	text = trimBlanks(trimByte(trimByte(text, ']'), ':'))
	if len(text) > 0 && text[0] == '[' && bytes.HasPrefix(text, []byte("[ID ")) { // of Solaris
		_, text, _ = bytes.Cut(text, []byte("] "))
	}
	return beforeSlash(program), text
}

// endsTag has the bytes that end the name of a program.
var endsTag = [256]bool{'[': true, ']': true, ':': true, ' ': true, '(': true}

// trimBlanks returns s without the blanks that it begins with.
func trimBlanks(s []byte) []byte {
	for len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	return s
}

// trimByte returns s without the byte c, if it begins with it.
func trimByte(s []byte, c byte) []byte {
	if len(s) > 0 && s[0] == c {
		return s[1:]
	}
	return s
}

func beforeSlash(program []byte) []byte {
	if i := bytes.IndexByte(program, '/'); i > 0 {
		return program[:i]
	}
	return program
}

// Yearless reports whether the last event's line lacks the year. Unless [Options] has one,
// the time is then in the stand-in calendar of [InYear]. Only formats with [Format.Yearless]
// have such lines, possibly besides lines with a year; and patterns, which date them by the clock,
// see [ParseFormat].
func (p *Parser) Yearless() bool {
	if p.inner != nil {
		return p.inner.Yearless()
	}
	return p.yearless
}

// Zoneless reports whether the last event's line lacks the zone, for formats
// with [Format.Zoneless].
func (p *Parser) Zoneless() bool {
	if p.inner != nil {
		return p.inner.Zoneless()
	}
	return p.zoneless || !p.format.Yearless() && p.format.Zoneless()
}
