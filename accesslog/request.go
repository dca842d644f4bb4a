package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// setRequest sets the fields that a request line, METHOD SP TARGET [SP
// PROTOCOL], gives. A line that does not begin with an upper-case method and a
// target, as when a client speaks TLS to a plain port, sets none.
func setRequest(ev *match.Event, request []byte) {
	space := 0
	for space < len(request) && isUpper(request[space]) {
		space++
	}
	method, target := request[:space], request[space:]
	if space == 0 || len(target) < 2 || target[0] != ' ' || target[1] == ' ' {
		return
	}
	target = target[1:]
	if end := bytes.IndexByte(target, ' '); end >= 0 {
		ev.Set(match.Protocol, target[bytes.LastIndexByte(target, ' ')+1:])
		target = target[:end]
	}
	ev.Set(match.Method, method)
	ev.SetTarget(target)
}
