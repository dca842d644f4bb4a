package latelyhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/match"
)

// An openAnswer is a request that was allowed, and whose answer is to be counted.
type openAnswer struct {
	m     *Middleware
	plan  *plan
	state *state // of the request, until one of count and end has it
	start time.Time
	ended atomic.Bool
}

// count counts the answer.
func (a *openAnswer) count(status int, size int64) {
	if a.ended.Swap(true) {
		return
	}
	s := a.state
	if p := a.m.rules.Plan(); p != a.plan {
		p.Fill(&s.Request, &s.source) // the rules have changed, and may use other fields
	}
	s.Event.Part = match.Answer
	s.status = strconv.AppendInt(s.status[:0], int64(status), 10)
	s.size = strconv.AppendInt(s.size[:0], size, 10)
	s.duration = strconv.AppendFloat(s.duration[:0], time.Since(a.start).Seconds(), 'f', 3, 64)
	s.Event.Set(match.Status, s.status)
	s.Event.Set(match.Size, s.size)
	s.Event.SetNamed(eventfield.Duration, s.duration)
	a.m.rules.Answer(&s.Request, s.cost)
	a.m.release(s)
}

// end ends a request whose answer was not counted.
func (a *openAnswer) end() {
	if !a.ended.Swap(true) {
		a.m.release(a.state)
	}
}

// A recorder is the writer of a response, which records the status and the bytes of the body.
type recorder struct {
	http.ResponseWriter
	status   int // 0 if none was written
	size     int64
	returned bool // the handler did, and has not panicked
}

// record returns a recorder over w, and the writer for the handler, which can flush and hijack if w can.
func record(w http.ResponseWriter) (*recorder, http.ResponseWriter) {
	r := &recorder{ResponseWriter: w}
	flusher, flushes := w.(http.Flusher)
	hijacker, hijacks := w.(http.Hijacker)
	switch {
	case flushes && hijacks:
		return r, &hijackRecorder{flushRecorder{r, flusher}, hijacker}
	case flushes:
		return r, &flushRecorder{r, flusher}
	}
	return r, r
}

// answer returns the status and the size of the response.
func (r *recorder) answer() (status int, size int64) {
	switch {
	case r.status != 0:
		return r.status, r.size
	case r.returned:
		return http.StatusOK, r.size
	}
	return http.StatusInternalServerError, r.size
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader records the first status that is final.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	n, err := r.ResponseWriter.Write(b)
	r.wrote(int64(n))
	return n, err
}

// ReadFrom lets net/http send a file without copying it.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(r.ResponseWriter, src)
	r.wrote(n)
	return n, err
}

func (r *recorder) wrote(n int64) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.size += n
}

type flushRecorder struct {
	*recorder
	flusher http.Flusher
}

// Flush sends the header, with status 200 if none was written.
func (r *flushRecorder) Flush() {
	r.wrote(0)
	r.flusher.Flush()
}

type hijackRecorder struct {
	flushRecorder
	hijacker http.Hijacker
}

// Hijack takes over the connection: its answer is Switching Protocols, unless another was written.
func (r *hijackRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := r.hijacker.Hijack()
	if err == nil && r.status == 0 {
		r.status = http.StatusSwitchingProtocols
	}
	return conn, buffered, err
}
