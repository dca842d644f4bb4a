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
	if method[space-1] == '\n' {
		method = method[:space-1]
	}
	if end := bytes.IndexByte(target, ' '); end >= 0 {
		ev.Set(match.Protocol, target[bytes.LastIndexByte(target, ' ')+1:])
		target = target[:end]
	}
	ev.Set(match.Method, method)
	ev.SetTarget(target)
}

// methodEnd returns the index of the space behind the method, -1 when there is
// no method and space. One '\n' behind the letters is put up with, because the
// reference reader does, for whom "$" also matches before a last '\n'; only in
// JSON can there be one.
func methodEnd(request []byte) int {
	i := 0
	for i < len(request) && isUpper(request[i]) {
		i++
	}
	if i == 0 {
		return -1
	}
	if i < len(request) && request[i] == '\n' {
		i++
	}
	if i == len(request) || request[i] != ' ' {
		return -1
	}
	return i
}
