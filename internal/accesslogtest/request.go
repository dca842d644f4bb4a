package accesslogtest

import "fmt"

// A request is one line of a web server's log. With an empty method, target is
// what stands in place of the whole request line, already escaped.
type request struct {
	client, method, target, referer, agent string
	status, size                           int
}

// A requestWriter renders requests as CLF or JSONNginx.
type requestWriter struct {
	json  bool
	stamp stamp
}

func (w *requestWriter) write(b *batch, at int64, r request) {
	from := len(b.buf)
	layout := "%s - - [%s] \"%s\" %d %d \"%s\" \"%s\""
	if w.json {
		layout = `{"remote_addr":"%s","remote_user":"-","time_local":"%s","request":"%s",` +
			`"status":"%d","body_bytes_sent":"%d","http_referer":"%s","http_user_agent":"%s"}`
	}
	b.buf = fmt.Appendf(b.buf, layout, r.client, w.stamp.at(at), r.line(), r.status, r.size, r.referer, r.agent)
	b.end(at, from, r.client, true)
}

// line returns the request line. Nothing that this package invents needs escaping;
// bytes of 0x80 and above are written as they are, as servers do.
func (r request) line() string {
	if r.method == "" {
		return r.target
	}
	return r.method + " " + r.target + " HTTP/1.1"
}

// handshake returns the first bytes of a TLS handshake as a server's log
// shows them.
func (w *requestWriter) handshake() string {
	if w.json {
		return `\u0016\u0003\u0001\u0002\u0000\u0001\u0000`
	}
	return `\x16\x03\x01\x02\x00\x01\x00`
}
