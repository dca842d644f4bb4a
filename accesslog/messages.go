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

// A stamp is a time with a year at the start of a line.
type stamp struct {
	sec, nsec int64
	local     bool // it names no zone
	letterT   bool // between the date and the clock
	tagged    bool // of a form that syslog may have
	end       int  // index after it, and after what divides it from the text
}

// readStamp reads a time of one of the forms of the logs of programs, which may be in
// brackets:
//
//	2018-04-17 06:25:06.25 +0200    also with '/', '.' or ':' in the date, and a 'T' or '-' after it
//	17-Apr-2018 06:25:06.25 +0200   also with '/', and ':' after the date
//	Tue Apr 17 06:25:06.25 2018     also without the day of the week; or the year before the clock
//	1523946306.25
func readStamp(line []byte) (s stamp, ok bool) {
	i := 0
	if len(line) > 0 && line[0] == '[' {
		i = 1
	}
	if len(line) < i+len("1523946306") {
		return s, false
	}
	rest := line[i:]
	var n int
	switch c := rest[0]; {
	case isDigit(c) && isDigit(rest[4]) && rest[8] == '-':
		n, ok = s.readCompact(rest)
	case isDigit(c) && isDigit(rest[4]) && isDigit(rest[8]):
		n, ok = s.readEpoch(rest)
	case isDigit(c) && isDigit(rest[3]):
		n, ok = s.readYearFirst(rest)
	case isDigit(c):
		n, ok = s.readDayFirst(rest)
	case isUpper(c):
		n, ok = s.readNames(rest)
	}
	if !ok {
		return s, false
	}
	s.end = i + n
	if i > 0 {
		if s.end == len(line) || line[s.end] != ']' {
			return s, false
		}
		s.end++
	}
	if s.end < len(line) && line[s.end] == ':' {
		s.end++
	}
	if s.end < len(line) && line[s.end] == ',' { // cells follow
		s.end++
	} else if s.end < len(line) && line[s.end] != ' ' && line[s.end] != '|' && i == 0 {
		return s, false
	}
	for s.end < len(line) && line[s.end] == ' ' {
		s.end++
	}
	return s, true
}

// readEpoch reads seconds since the epoch.
func (s *stamp) readEpoch(line []byte) (n int, ok bool) {
	for n < len(line) && (isDigit(line[n]) || line[n] == '.') {
		n++
	}
	digits, _ := leadingDigits(line)
	s.sec, s.nsec, ok = readDecimal(line[:n], 0)
	return n, ok && len(digits) == len("1523946306")
}

// readCompact reads yyyymmdd-hh:mm:ss.
func (s *stamp) readCompact(line []byte) (n int, ok bool) {
	const form = "yyyymmdd-hh:mm:ss"
	if len(line) < len(form) {
		return 0, false
	}
	year, ok1 := digitsValue(line[:4])
	month, ok2 := digitsValue(line[4:6])
	day, ok3 := digitsValue(line[6:8])
	return s.readClock(line, len("yyyymmdd-"), year, month, day, ok1 && ok2 && ok3)
}

func (s *stamp) readYearFirst(line []byte) (n int, ok bool) {
	const form = "yyyy-mm-dd hh:mm:ss"
	if len(line) < len(form) || line[4] != line[7] || bytes.IndexByte([]byte("-/.:"), line[4]) < 0 || bytes.IndexByte([]byte(" T-:"), line[10]) < 0 {
		return 0, false
	}
	s.letterT, s.tagged = line[10] == 'T', line[4] == '-'
	year, ok1 := digitsValue(line[:4])
	month, ok2 := digitsValue(line[5:7])
	day, ok3 := digitsValue(line[8:10])
	return s.readClock(line, len("yyyy-mm-dd "), year, month, day, ok1 && ok2 && ok3)
}

func (s *stamp) readDayFirst(line []byte) (n int, ok bool) {
	const form = "dd-Mon-yyyy hh:mm:ss"
	if len(line) < len(form) || line[2] != line[6] || line[2] != '-' && line[2] != '/' || line[11] != ' ' && line[11] != ':' {
		return 0, false
	}
	day, ok1 := digitsValue(line[:2])
	year, ok2 := digitsValue(line[7:11])
	return s.readClock(line, len("dd-Mon-yyyy "), year, monthNamed(line[3:]), day, ok1 && ok2)
}

func (s *stamp) readNames(line []byte) (n int, ok bool) {
	const form, weekday = "Apr 17 06:25:06 2018", "Tue "
	from := 0
	if len(line) > len(weekday) && line[3] == ' ' && monthNamed(line) == 0 {
		from, line = len(weekday), line[len(weekday):]
	}
	if len(line) < len(form)-1 || line[3] != ' ' {
		return 0, false
	}
	month := monthNamed(line)
	i := 4
	if line[i] == ' ' {
		i++
	}
	digits, rest := leadingDigits(line[i:])
	day, ok := digitsValue(digits)
	i += len(digits) + 1
	if !ok || len(digits) == 0 || len(digits) > 2 || len(rest) < len(" 2018 06:25:06") || rest[0] != ' ' {
		return 0, false
	}
	if year, isYear := digitsValue(rest[1:5]); isYear && rest[5] == ' ' {
		s.tagged = from == 0
		n, ok = s.readClock(line, i+len("2018 "), year, month, day, true)
		return from + n, ok
	}
	end, nsec, ok := clockEnd(line, i)
	if !ok || len(line) < end+len(" 2018") || line[end] != ' ' {
		return 0, false
	}
	year, ok := digitsValue(line[end+1 : end+5])
	_, ok2 := s.readClock(line[:end], i, year, month, day, ok)
	s.nsec = nsec
	return from + end + len(" 2018"), ok && ok2
}

// clockEnd returns the index after hh:mm:ss[.f] at i.
func clockEnd(line []byte, i int) (end int, nsec int64, ok bool) {
	end = i + len("hh:mm:ss")
	if len(line) < end || line[i+2] != ':' || line[i+5] != ':' {
		return 0, 0, false
	}
	if end+1 < len(line) && (line[end] == '.' || line[end] == ',') && isDigit(line[end+1]) {
		unit := int64(100_000_000)
		for end++; end < len(line) && isDigit(line[end]); end++ {
			nsec += int64(line[end]-'0') * unit
			unit /= 10
		}
	}
	return end, nsec, true
}

// readClock reads hh:mm:ss[.f][ZONE] at i, of a date, and returns the index after it.
func (s *stamp) readClock(line []byte, i, year, month, day int, ok bool) (int, bool) {
	end, nsec, ok2 := clockEnd(line, i)
	if !ok || !ok2 || month < 1 || month > 12 {
		return 0, false
	}
	hour, ok1 := digitsValue(bytes.TrimLeft(line[i:i+2], " "))
	minute, ok2 := digitsValue(line[i+3 : i+5])
	second, ok3 := digitsValue(line[i+6 : i+8])
	clock, ok4 := clockSeconds(hour, minute, second)
	date, ok5 := dateSeconds(year, month, day)
	zone, n, named := readZone(line[end:])
	s.sec, s.nsec, s.local = date+clock-zone, nsec, !named
	return end + n, ok1 && ok2 && ok3 && ok4 && ok5
}

// readZone reads a zone, which may follow a blank: Z, UTC, GMT, +0200 or +02:00. It returns
// the seconds that it is ahead of UTC, and its length; named is false if there is none.
func readZone(s []byte) (ahead int64, n int, named bool) {
	zone := bytes.TrimPrefix(s, []byte(" "))
	blank := len(s) - len(zone)
	switch {
	case len(zone) > 0 && zone[0] == 'Z' && blank == 0:
		return 0, 1, true
	case bytes.HasPrefix(zone, []byte("UTC")), bytes.HasPrefix(zone, []byte("GMT")):
		return 0, blank + 3, true
	case len(zone) < len("+0200") || zone[0] != '+' && zone[0] != '-' || !isDigit(zone[1]) || !isDigit(zone[2]):
		return 0, 0, false
	}
	minutes := zone[3:]
	n = blank + len("+0200")
	if minutes[0] == ':' {
		minutes = minutes[1:]
		n++
	}
	if len(minutes) < 2 || !isDigit(minutes[0]) || !isDigit(minutes[1]) {
		return 0, 0, false
	}
	hour, _ := digitsValue(zone[1:3])
	minute, _ := digitsValue(minutes[:2])
	ahead = int64(hour*hourSeconds + minute*minuteSeconds)
	if zone[0] == '-' {
		ahead = -ahead
	}
	return ahead, n, true
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
