package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// Messages of programs about a client that failed or was refused: a head with the time,
// and in syslog the program, and a text that the table of messages describes.

var messageFields = []string{"client", "user", "program", "reason", "object", "proto", "spt"}

// messages reads a line of syslog, or of a log that a program writes itself. Messages that
// are not in the table are skipped.
func (p *Parser) messages(line []byte, ev *match.Event) bool {
	h, ok := p.readHead(bytes.TrimRight(line, " "))
	if !ok || len(h.text) == 0 {
		return false
	}
	p.skipped = true
	if !p.message(&h, ev) {
		return false
	}
	p.skipped, p.yearless, p.zoneless = false, h.yearless, h.local
	ev.Time = utc(h.sec, h.nsec)
	return true
}

// message sets the fields of ev to what a message is about.
func (p *Parser) message(h *head, ev *match.Event) bool {
	program, text := cutTag(h)
	v := p.vocabulary(program)
	if v == nil {
		return p.table.setUnknown(h, program, text, ev)
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

// vocabulary returns the messages of a program, which is mostly that of the line before.
func (p *Parser) vocabulary(program []byte) *vocabulary {
	if p.last == nil || !bytes.Equal(program, p.lastProgram) {
		v, ok := p.table.programs[string(program)]
		if !ok {
			return nil
		}
		p.last, p.lastProgram = v, append(p.lastProgram[:0], program...)
	}
	return p.last
}

// maxRepeats bounds how many events a line stands for.
const maxRepeats = 100_000

// cutRepeated cuts "message repeated 3 times: [ TEXT]", which rsyslog writes.
func cutRepeated(text []byte) (inner []byte, n int, ok bool) {
	text, ok = bytes.CutPrefix(text, []byte("message repeated "))
	if !ok {
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
		if h, ok = p.readYearless(line, ' '); ok {
			return h, true
		}
	case bytes.HasPrefix(line, []byte("type=")):
		return readAudit(line)
	case c == '[' && len(line) > 1 && isUpper(line[1]):
		if h, ok = p.readYearless(line[1:], ']'); ok {
			h.tagged, h.text = false, bytes.TrimLeft(h.text, " ")
			return h, true
		}
	}
	return p.readStamped(line)
}

// readYearless reads the head of RFC 3164: "Mon dd hh:mm:ss", and the byte behind it.
func (p *Parser) readYearless(line []byte, until byte) (h head, ok bool) {
	stamp, ok := readSysStampUntil(line, until)
	if !ok {
		return h, false
	}
	t, ok := p.years.time(stamp)
	if !ok {
		return h, false
	}
	h = head{sec: t.Unix(), local: true, yearless: true, tagged: true, text: line[stamp.end:]}
	if p.years.year != 0 {
		h.sec = p.zone.seconds(h.sec)
	}
	return h, true
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
	h = head{sec: s.sec, nsec: s.nsec, local: s.local, tagged: s.tagged, text: line[s.end:]}
	if s.local {
		h.sec = p.zone.seconds(h.sec)
	}
	return h, true
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
		return bytes.TrimLeft(s, " "), true
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
	return bytes.TrimLeft(trimMarks(bytes.TrimLeft(s, " ")), " "), ok
}

// cutTag cuts "HOST PROGRAM[7]: " off the text of a head, HOST being optional, and returns
// the program without what follows a '/', as in postfix/smtpd.
func cutTag(h *head) (program, text []byte) {
	if h.program != nil || !h.tagged {
		return beforeSlash(h.program), h.text
	}
	text = h.text
	host := bytes.IndexByte(text, ' ')
	if host > 0 && text[host-1] != ':' && text[host-1] != ']' {
		text = text[host+1:]
	}
	if h.yearless {
		text = bytes.TrimPrefix(text, []byte("["))
	}
	i := 0
	for i < len(text) && text[i] != '[' && text[i] != ']' && text[i] != ':' && text[i] != ' ' && text[i] != '(' {
		i++
	}
	program, text = text[:i], text[i:]
	for len(text) > 0 && text[0] == '(' {
		_, text, _ = bytes.Cut(text, []byte(")"))
	}
	if trimmed := bytes.TrimLeft(text, " "); len(trimmed) > 1 && trimmed[0] == '[' && isDigit(trimmed[1]) {
		if digits, rest := leadingDigits(trimmed[1:]); len(digits) > 0 && len(rest) > 0 && rest[0] == ']' {
			text = rest[1:]
		}
	}
	text = bytes.TrimPrefix(bytes.TrimPrefix(text, []byte("]")), []byte(":"))
	text = bytes.TrimLeft(text, " ")
	if bytes.HasPrefix(text, []byte("[ID ")) { // of Solaris
		_, text, _ = bytes.Cut(text, []byte("] "))
	}
	return beforeSlash(program), text
}

func beforeSlash(program []byte) []byte {
	if i := bytes.IndexByte(program, '/'); i > 0 {
		return program[:i]
	}
	return program
}

// Yearless reports whether the last event's line names no year. Unless [Options] has one, the
// time is in the stand-in calendar of [InYear]. Only formats with [Format.Yearless] have such
// lines, maybe beside lines with a year.
func (p *Parser) Yearless() bool {
	if p.inner != nil {
		return p.inner.Yearless()
	}
	return p.yearless
}

// Zoneless reports whether the last event's line names no zone, for formats with
// [Format.Zoneless].
func (p *Parser) Zoneless() bool {
	if p.inner != nil {
		return p.inner.Zoneless()
	}
	return p.zoneless || p.kind != messageLines && p.format.Zoneless()
}
