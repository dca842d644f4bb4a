package accesslogtest

import "strconv"

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
	if w.json {
		b.buf = w.appendJSON(b.buf, at, r)
	} else {
		b.buf = w.appendCLF(b.buf, at, r)
	}
	b.end(at, from, r.client, true)
}

func (w *requestWriter) appendCLF(dst []byte, at int64, r request) []byte {
	dst = append(dst, r.client...)
	dst = append(dst, " - - ["...)
	dst = append(dst, w.stamp.at(at)...)
	dst = append(dst, `] "`...)
	dst = r.appendLine(dst)
	dst = append(dst, `" `...)
	dst = strconv.AppendInt(dst, int64(r.status), 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(r.size), 10)
	dst = append(dst, ` "`...)
	dst = append(dst, r.referer...)
	dst = append(dst, `" "`...)
	dst = append(dst, r.agent...)
	return append(dst, '"')
}

func (w *requestWriter) appendJSON(dst []byte, at int64, r request) []byte {
	dst = append(dst, `{"remote_addr":"`...)
	dst = append(dst, r.client...)
	dst = append(dst, `","remote_user":"-","time_local":"`...)
	dst = append(dst, w.stamp.at(at)...)
	dst = append(dst, `","request":"`...)
	dst = r.appendLine(dst)
	dst = append(dst, `","status":"`...)
	dst = strconv.AppendInt(dst, int64(r.status), 10)
	dst = append(dst, `","body_bytes_sent":"`...)
	dst = strconv.AppendInt(dst, int64(r.size), 10)
	dst = append(dst, `","http_referer":"`...)
	dst = append(dst, r.referer...)
	dst = append(dst, `","http_user_agent":"`...)
	dst = append(dst, r.agent...)
	return append(dst, `"}`...)
}

// appendLine appends the request line. Nothing that this package invents needs
// escaping; bytes of 0x80 and above are written as they are, as servers do.
func (r request) appendLine(dst []byte) []byte {
	if r.method == "" {
		return append(dst, r.target...)
	}
	dst = append(dst, r.method...)
	dst = append(dst, ' ')
	dst = append(dst, r.target...)
	return append(dst, " HTTP/1.1"...)
}

// handshake returns the first bytes of a TLS handshake as a server's log
// shows them.
func (w *requestWriter) handshake() string {
	if w.json {
		return `\u0016\u0003\u0001\u0002\u0000\u0001\u0000`
	}
	return `\x16\x03\x01\x02\x00\x01\x00`
}
