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

// setURLRequest is setRequest for servers that write the target as a URL. Its path is
// the object, and its host without the port is the host.
func setURLRequest(ev *match.Event, request []byte) {
	setRequest(ev, request)
	if rest, ok := cutScheme(ev.Get(match.Object)); ok {
		setAuthority(ev, rest)
	}
}

// cutScheme returns what follows the scheme of a URL.
func cutScheme(target []byte) (rest []byte, ok bool) {
	scheme, rest, ok := bytes.Cut(target, []byte("://"))
	return rest, ok && bytes.IndexByte(scheme, '/') < 0
}

// setURI sets the fields that host/target gives, or a target alone.
func setURI(ev *match.Event, uri []byte) {
	ev.SetTarget(uri)
	path := ev.Get(match.Path)
	if rest, ok := cutScheme(path); ok {
		setAuthority(ev, rest)
	} else if len(path) > 0 && path[0] != '/' {
		setAuthority(ev, path)
	}
}

// setAuthority sets Host, and Object and Path to what follows it in uri.
func setAuthority(ev *match.Event, uri []byte) {
	slash := bytes.IndexByte(uri, '/')
	if slash < 0 {
		slash = len(uri)
	}
	ev.Set(match.Host, withoutPort(uri[:slash]))
	ev.Set(match.Object, uri[slash:])
	ev.Set(match.Path, uri[slash:])
}
