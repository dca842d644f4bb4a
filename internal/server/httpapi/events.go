package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/events"
)

const (
	streamWrite  = 2 * time.Second // within which a subscriber must read what it is sent
	streamBuffer = 32 << 10        // of the kernel, for a subscriber that does not read
	streamBatch  = 8 << 10         // of events that are sent at once
)

// appendEvent appends one event of a stream. data has no line break.
func appendEvent(dst []byte, name api.EventType, data []byte) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, name...)
	dst = append(dst, "\ndata: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...)
}

// A stream is one subscriber of the events.
type stream struct {
	c       *call
	control *http.ResponseController
	cookie  string     // of the session that authorizes it; "" if a token does
	totals  api.Totals // of the last event rates
	out     []byte
	dropped bool // it is counted as dropped
}

// subscribe answers with events until the subscriber disconnects, does not read them in
// time, or is no longer authorized, or the server shuts down. Nothing waits for it.
func subscribe(c *call) error {
	sub := c.s.Engine.Subscribe()
	defer sub.Close()
	totals := c.s.Engine.Totals()
	return c.stream(func(st *stream) {
		st.totals = totals
		if st.run(sub.Wait, sub.Done(), func() bool { return st.take(sub) }, st.rates) && sub.Slow() {
			c.s.Cut.Add(1)
			st.dropped = true
			st.out = appendEvent(st.out, "resync", []byte("{}"))
			st.flush()
		}
	})
}

// stream answers with a stream, if there are not too many of them: what serve sends
// until it returns.
func (c *call) stream(serve func(*stream)) error {
	s := c.s
	if s.Subscribers.Add(1) > int64(s.MaxSubscribers) {
		s.Subscribers.Add(-1)
		return errStreams
	}
	defer s.Subscribers.Add(-1)

	if conn, ok := c.r.Context().Value(connKey{}).(*limitedConn); ok {
		conn.streams()
	}
	st := stream{c: c, control: http.NewResponseController(c.w)}
	if c.token() == "" {
		st.cookie = strings.Clone(c.cookie())
	}
	clear(c.r.Header)                                               // a stream lasts
	if err := st.control.SetReadDeadline(time.Time{}); err != nil { // that of a request ends in 5 s
		return err
	}
	h := c.w.Header()
	h["Content-Type"] = streamType
	h["X-Accel-Buffering"] = []string{"no"} // of nginx, which would buffer the events
	c.begun(http.StatusOK)
	st.out = append(st.out, ": lately\n\n"...)
	if st.flush() && c.r.Method != http.MethodHead {
		serve(&st)
	}
	return nil
}

// run sends what take and tick append: take when wait's channel has something, and tick every
// second. It reports whether ended was closed, and else returns when take or sending fails,
// the subscriber has disconnected or is no longer authorized, or the server shuts down.
func (st *stream) run(wait func() <-chan struct{}, ended <-chan struct{}, take func() bool, tick func()) bool {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for st.flush() {
		select {
		case <-st.c.r.Context().Done():
			return false
		case <-st.c.s.drained.Done():
			return false
		case <-ended:
			return true
		case <-second.C:
			if !st.authorized() {
				return false
			}
			tick()
		case <-wait():
			if !take() {
				return false
			}
		}
	}
	return false
}

// rates appends the decisions of the last second.
func (st *stream) rates() {
	now := st.c.s.Engine.Totals()
	difference := now.Minus(st.totals)
	st.totals = now
	ev := api.Event{Type: api.RatesTick, Time: time.Now().UTC(), All: &difference, Totals: &now}
	text, _ := json.Marshal(&ev) // numbers and a time have no errors
	st.out = appendEvent(st.out, ev.Type, text)
}

// take appends the events that wait, up to streamBatch bytes.
func (st *stream) take(sub *events.Subscription) bool {
	for len(st.out) < streamBatch {
		ev, ok := sub.Next()
		if !ok {
			break
		}
		st.out = appendEvent(st.out, ev.Type, ev.JSON)
	}
	return true
}

// flush sends what is in st.out. It reports false if the subscriber has disconnected or
// has not read it in time: net/http then closes the connection.
func (st *stream) flush() bool {
	st.control.SetWriteDeadline(time.Now().Add(streamWrite)) // without it, the server's own applies
	_, err := st.c.w.Write(st.out)
	if err == nil {
		err = st.control.Flush()
	}
	st.out = st.out[:0]
	if errors.Is(err, os.ErrDeadlineExceeded) {
		st.c.s.Cut.Add(1)
		if !st.dropped {
			st.c.s.Engine.CountDropped()
		}
	}
	return err == nil
}
