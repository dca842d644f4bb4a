package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

var squid = Format{text: "squid", kind: &lineKind{parse: (*Parser).squid, fields: []string{
	"client", "object", "method", "path", "query", "host", "status", "size", "user", "duration",
}}}

// squid reads a line of squid's native format, with any number of blanks between:
//
//	TIME MILLISECONDS CLIENT RESULT/STATUS SIZE METHOD URL USER HIERARCHY TYPE
func (p *Parser) squid(line []byte, ev *match.Event) bool {
	var fields [8][]byte
	for i := range fields {
		line = bytes.TrimLeft(line, " ")
		end := bytes.IndexByte(line, ' ')
		if end < 0 {
			return false
		}
		fields[i], line = line[:end], line[end:]
	}
	sec, nsec, ok := readDecimal(fields[0], 0)
	_, status, hasStatus := bytes.Cut(fields[3], []byte("/"))
	if !ok || !hasStatus || len(status) != len("200") || !allDigits(status) || !allDigits(fields[1]) || !allDigits(fields[4]) {
		return false
	}
	ev.Time = utc(sec, nsec)
	ev.Set(match.Client, fields[2])
	ev.Set(match.Status, status)
	ev.Set(match.Size, fields[4])
	setUnlessDash(ev, match.Method, fields[5])
	setURI(ev, fields[6])
	setUnlessDash(ev, match.User, fields[7])
	if v, scratch := appendSeconds(p.scratch[:0], fields[1], 3); v != nil {
		ev.SetNamed("duration", v)
		p.scratch = scratch
	}
	return true
}
