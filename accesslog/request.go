package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// setRequest sets the fields that a request line, METHOD SP TARGET [SP
// PROTOCOL], gives. A line that does not begin with an upper-case method and a
// target, as when a client speaks TLS to a plain port, gives none.
func setRequest(ev *match.Event, request []byte) {
	space := methodEnd(request)
	if space < 0 {
		return
	}
	method, target := request[:space], request[space+1:]
	if len(target) == 0 || target[0] == ' ' {
		return
	}
	if end := bytes.IndexByte(target, ' '); end >= 0 {
		ev.Set(match.Protocol, target[bytes.LastIndexByte(target, ' ')+1:])
		target = target[:end]
	}
	ev.Set(match.Method, method)
	ev.SetTarget(target)
}

// methodEnd returns the index of the space after the method, -1 if there is no method
// and space.
func methodEnd(request []byte) int {
	i := 0
	for i < len(request) && isUpper(request[i]) {
		i++
	}
	if i == 0 || i == len(request) || request[i] != ' ' {
		return -1
	}
	return i
}
