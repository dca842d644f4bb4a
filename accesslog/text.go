package accesslog

import (
	"bytes"
	"time"

	"github.com/lately-go/lately/match"
)

// Logs that no other format reads: lines with a time anywhere and one address where a client
// stands. Lines that name no client, or several addresses that could be one, are skipped.

var textFields = append(messageFields[:len(messageFields):len(messageFields)], "message")

// The formats differ in how they read dates of three numbers. Detection finds out by the lines.
var (
	plainText    = plainFormat("text", anyOrder)
	plainTextDMY = plainFormat("text-dmy", dayFirst)
	plainTextMDY = plainFormat("text-mdy", monthFirst)
)

func plainFormat(name string, order dateOrder) Format {
	return Format{text: name, kind: &lineKind{parse: (*Parser).headed, fields: textFields, messages: true, order: order}}
}

// plainMessage sets the fields of ev: to those of the table of messages, or to the client of the text.
func (p *Parser) plainMessage(h *head, ev *match.Event) bool {
	program, text := h.program, h.text
	if tag, inner := cutTag(h); h.program != nil {
		program = tag
	} else if isTag := len(tag) > 0 && bytes.Contains(text[:len(text)-len(inner)], []byte(": ")); isTag && h.tagged && (h.yearless || h.letterT && !bytes.HasPrefix(text, tag)) {
		program, text = tag, inner
	} else if h.yearless && h.tagged { // the name of the host
		_, text, _ = bytes.Cut(text, []byte(" "))
	}
	known := p.message(h, ev)
	p.known = false
	if !known {
		client := findClient(text)
		if client == nil {
			return false
		}
		ev.Set(match.Client, client)
		if len(program) > 0 {
			ev.SetNamed("program", program)
		}
	}
	ev.SetNamed("message", text)
	return true
}

// EitherOrder reports whether a log of the format text that begins with sample has only dates
// such as 04/05/2018, in which day and month can be exchanged. The formats text-dmy and text-mdy
// fix the order; nearest is the one whose last time is nearer to now, as in a log that is being
// written.
func (f Format) EitherOrder(sample []byte, now time.Time) (nearest Format, either bool) {
	if f.kind != plainText.kind {
		return f, false
	}
	days, months := newGuess(plainTextDMY), newGuess(plainTextMDY)
	for line := range bytes.Lines(sample) {
		line = bytes.TrimRight(line, "\r\n")
		if byDay, byMonth := days.take(line), months.take(line); byDay != byMonth {
			return f, false
		}
		either = either || !days.ev.Time.Equal(months.ev.Time)
	}
	switch {
	case !either:
		return f, false
	case now.Sub(days.ev.Time).Abs() < now.Sub(months.ev.Time).Abs():
		return plainTextDMY, true
	}
	return plainTextMDY, true
}

// findHead reads the first time in a line. If only brackets are before it, the text is what follows
// it, and otherwise the line.
func (p *Parser) findHead(line []byte) (h head, ok bool) {
	for i := 0; i+len("1523946306") <= len(line); i++ {
		c := line[i]
		if !isDigit(c) && !isUpper(c) || i > 0 && isWordByte(line[i-1]) && !endsColor(line[:i]) {
			continue
		}
		s := stamp{order: p.kind.order}
		n, found := 0, false
		if i == 0 || !isDigit(line[i+2]) || !isDigit(line[i+4]) || !isDigit(line[i+8]) || isTimeKey(line[:i]) { // elsewhere, so many digits are no time
			n, found = s.read(line[i:])
		}
		if found && (i+n == len(line) || !isWordByte(line[i+n])) {
			h = p.headOf(s, line[i+n:])
		} else if !p.readYearless(&h, line[i:], 0) {
			continue
		}
		h.tagged = false
		if i > 1 {
			h.text = line
		}
		h.text = bytes.TrimLeft(h.text, " ]")
		return h, true
	}
	return h, false
}

// endsColor reports whether a text ends with a color of a terminal, such as ESC [39m.
func endsColor(text []byte) bool {
	text, ok := bytes.CutSuffix(text, []byte("m"))
	return ok && bytes.HasSuffix(bytes.TrimRight(text, "0123456789;"), []byte("["))
}

// isTimeKey reports whether a text ends with a key of JSON for a time.
func isTimeKey(text []byte) bool {
	return bytes.HasSuffix(text, []byte(`"ts":`)) || bytes.HasSuffix(text, []byte(`"time":`)) || bytes.HasSuffix(text, []byte(`"timestamp":`))
}

// isWordByte reports whether c may be inside a word, a number or a name.
func isWordByte(c byte) bool { return isDigit(c) || isLower(c|' ') || c == '_' }
