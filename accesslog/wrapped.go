package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// Formats whose lines hold the lines of programs: those of containers, and the journal
// of systemd. They hand the inner line to the parser of another format.

// Indexes of the wants of the two formats.
const (
	dockerLog    = 0
	dockerStream = 1

	journalTime    = 0
	journalMessage = 1
	journalProgram = 2
	journalHost    = 3
	journalProcess = 4
)

var (
	dockerSpec = &spec{wants: []want{
		dockerLog:    {name: "log", path: []string{"log"}},
		dockerStream: {name: "stream", path: []string{"stream"}},
	}}
	journalSpec = &spec{unit: unitUS, wants: []want{
		journalTime:    {name: "time", path: []string{"__REALTIME_TIMESTAMP"}},
		journalMessage: {name: "message", path: []string{"MESSAGE"}},
		journalProgram: {name: "program", path: []string{"SYSLOG_IDENTIFIER"}},
		journalHost:    {name: "host", path: []string{"_HOSTNAME"}},
		journalProcess: {name: "process", path: []string{"_PID"}},
	}}
)

// docker reads a line of a container: an object with log and stream, as Docker's driver
// json-file writes it, or TIME STREAM TAG LINE, as Kubernetes does (CRI). What an inner
// format does not read from standard error is skipped: servers write their messages there.
func (p *Parser) docker(line []byte, ev *match.Event) bool {
	inner, stderr, ok := p.unwrap(line)
	if !ok || p.inner == nil {
		return false
	}
	if p.inner.Parse(inner, ev) || p.inner.kind.messages && p.untimed(line, inner, ev) {
		return true
	}
	p.skipped = p.inner.skipped || stderr
	return false
}

// untimed reads a message without a time of its own: that of the line of the container is used.
func (p *Parser) untimed(line, inner []byte, ev *match.Event) bool {
	stamp := line
	if line[0] == '{' {
		_, stamp, _ = bytes.Cut(line[max(0, bytes.LastIndexByte(line, ',')):], []byte(`"time":"`)) // the last key, as Docker writes it
		stamp, _, _ = bytes.Cut(stamp, []byte(`"`))
	} else {
		stamp, _, _ = bytes.Cut(line, []byte(" "))
	}
	sec, nsec, ok := readISO(stamp)
	h := head{text: bytes.TrimSpace(inner)}
	if !ok || !p.inner.setMessage(&h, ev) {
		return false
	}
	p.inner.yearless, p.inner.zoneless = false, false
	ev.Time = utc(sec, nsec)
	return true
}

// unwrap returns the line that a line of a container holds, or the one behind a prefix.
func (p *Parser) unwrap(line []byte) (inner []byte, stderr, ok bool) {
	if p.kind.cut != nil {
		inner, ok = p.kind.cut(line)
		return inner, false, ok
	}
	if len(line) == 0 || line[0] != '{' {
		return unwrapCRI(line)
	}
	if !p.reader.read(line) {
		return nil, false, false
	}
	log, stream := p.reader.values[dockerLog], p.reader.values[dockerStream]
	if log.kind != jsonString || stream.kind != jsonString {
		return nil, false, false
	}
	inner, p.scratch = p.reader.appendText(p.scratch[:0], log)
	inner = trimReturn(bytes.TrimSuffix(inner, []byte{'\n'}))
	return inner, string(line[stream.from:stream.to]) == "stderr", true
}

// unwrapCRI is unwrap for a line such as `2024-01-02T03:04:05.6Z stdout F LINE`.
func unwrapCRI(line []byte) (inner []byte, stderr, ok bool) {
	if len(line) < len("2024-01-02T03:04:05") || line[4] != '-' || line[10] != 'T' {
		return nil, false, false
	}
	_, rest, _ := bytes.Cut(line, []byte{' '})
	stream, rest, _ := bytes.Cut(rest, []byte{' '})
	tag, inner, ok := bytes.Cut(rest, []byte{' '})
	stderr = string(stream) == "stderr"
	return inner, stderr, ok && (stderr || string(stream) == "stdout") && (string(tag) == "F" || string(tag) == "P")
}

// journald reads an object of journalctl -o json. Without an inner format its events
// are those of the table of messages. Others are skipped.
func (p *Parser) journald(line []byte, ev *match.Event) bool {
	if !p.reader.read(line) {
		return false
	}
	p.scratch = p.scratch[:0]
	for i := range p.values {
		p.values[i], p.scratch = p.reader.appendText(p.scratch, p.reader.values[i])
	}
	sec, nsec, ok := p.time(p.values[journalTime])
	if !ok {
		return false
	}
	message := p.values[journalMessage]
	switch {
	case p.inner != nil && p.inner.patterns != nil:
		return p.journalPatterns(sec, nsec, ev)
	case p.inner != nil && !p.inner.kind.messages:
		ok = p.inner.Parse(message, ev)
		p.skipped = !ok
		return ok
	}
	h := head{program: p.values[journalProgram], text: bytes.TrimRight(message, " ")}
	if p.inner != nil {
		ok = p.inner.setMessage(&h, ev)
	} else {
		ok = p.message(&h, ev)
	}
	p.skipped = !ok
	if ok {
		ev.Time = utc(sec, nsec)
	}
	return ok
}

// journalPatterns reads an entry by patterns, as the line that syslog would have of it, without
// its time: HOST PROGRAM[PROCESS]: MESSAGE. The time is that of the entry.
func (p *Parser) journalPatterns(sec, nsec int64, ev *match.Event) (ok bool) {
	r := p.inner.patterns
	r.entry = append(append(r.entry[:0], p.values[journalHost]...), ' ')
	r.entry = append(r.entry, p.values[journalProgram]...)
	if pid := p.values[journalProcess]; len(pid) > 0 {
		r.entry = append(append(append(r.entry, '['), pid...), ']')
	}
	r.entry = append(append(r.entry, ": "...), p.values[journalMessage]...)
	r.sec, r.nsec, r.dated = sec, nsec, true
	ok = p.inner.Parse(r.entry, ev)
	p.skipped = p.inner.skipped
	return ok
}

// haproxy reads a line of HAProxy's option httplog, behind what syslog puts in front of
// it or alone. Other messages of HAProxy, connections without a request, and lines of
// other programs are skipped.
func (p *Parser) haproxy(line []byte, ev *match.Event) bool {
	message, other := line, false
	if _, after, ok := bytes.Cut(line, []byte(" haproxy[")); ok {
		if digits, rest := leadingDigits(after); len(digits) > 0 && bytes.HasPrefix(rest, []byte("]: ")) {
			message = rest[len("]: "):]
			other = bytes.IndexByte(message, '"') < 0
		}
	} else if _, other = readSysStamp(line); other {
		p.skipped = true
		return false
	}
	if p.text(message, ev) {
		return true
	}
	p.skipped = p.skipped || other
	return false
}
