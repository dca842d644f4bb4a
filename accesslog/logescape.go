package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// unescapePath makes the path of ev what the client sent, where the server that
// wrote the line has escaped it: nginx writes a backslash as \x5C, Apache as \\.
// Without this a condition on path would hold for a live request and not for its
// line. The object stays as the log has it. The first n bytes of the scratch are in use.
func (p *Parser) unescapePath(ev *match.Event, n int) {
	raw := ev.Get(match.Path)
	if bytes.IndexByte(raw, '\\') < 0 {
		return
	}
	p.scratch = appendLogUnescaped(p.scratch[:n], raw)
	ev.Set(match.Path, p.scratch[n:len(p.scratch):len(p.scratch)])
}

// appendLogUnescaped appends s with \xHH, \\ and \" replaced by the byte that
// they stand for. Other backslashes stay: a server that does not escape wrote
// them, or they stand for control bytes, which no path has.
func appendLogUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		switch rest := s[i:]; {
		case rest[0] != '\\' || len(rest) < 2:
			dst = append(dst, rest[0])
		case rest[1] == '\\' || rest[1] == '"':
			dst = append(dst, rest[1])
			i++
		case len(rest) >= len(`\xHH`) && rest[1] == 'x' && hexValue(rest[2:4]) >= 0:
			dst = append(dst, byte(hexValue(rest[2:4])))
			i += len(`xHH`)
		default:
			dst = append(dst, rest[0])
		}
	}
	return dst
}
