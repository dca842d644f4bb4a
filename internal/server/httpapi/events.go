package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

const (
	streamWrite = 2 * time.Second // within which a subscriber takes what he is sent
	streamRoom  = 32 << 10        // of what the kernel keeps for one who does not
	streamBatch = 8 << 10         // of events that are sent in one piece
	pingEvery   = 15              // beats
)

// A beat is what all subscribers are told once a second, and where the next one will
// be: one goroutine makes it, and closing ready wakes all who wait.
type beat struct {
	ready chan struct{}
	text  []byte // when ready
	next  *beat
}

func newBeat() *beat { return &beat{ready: make(chan struct{})} }

// pulse makes a beat every second until stop is closed.
func (s *Server) pulse(stop <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := s.Engine.Totals()
	for n := 1; ; n++ {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := s.Engine.Totals()
		lately := now.Minus(last)
		text, err := json.Marshal(api.Event{Type: api.RatesTick, Time: time.Now().UTC(), All: &lately, Totals: &now})
		last = now
		if err != nil {
			continue
		}
		b := s.beat.Load()
		b.text = appendEvent(b.text, api.RatesTick, text)
		if n%pingEvery == 0 {
			b.text = append(b.text, ": ping\n\n"...)
		}
		b.next = newBeat()
		s.beat.Store(b.next)
		close(b.ready)
	}
}

// appendEvent appends one event of a stream. data has no line break.
func appendEvent(dst []byte, name api.EventType, data []byte) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, name...)
	dst = append(dst, "\ndata: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...)
}

var streamType = []string{"text/event-stream"}

// A stream is one subscriber of the events.
type stream struct {
	c       *call
	control *http.ResponseController
	out     []byte
}

// subscribe answers with events until the subscriber goes, does not read, or may not
// be told any more, or the server ends. A panic or a slow reader is nobody else's trouble: nothing waits for
// him.
func subscribe(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	s := c.s
	if s.Subscribers.Add(1) > int64(s.MaxSubscribers) {
		s.Subscribers.Add(-1)
		return &apiError{status: http.StatusServiceUnavailable, code: api.Overload, detail: "there are too many subscribers", retry: 5 * time.Second}
	}
	defer s.Subscribers.Add(-1)
	sub := s.Engine.Subscribe()
	defer sub.Close()
	at := s.beat.Load()

	c.dropHead()
	if conn := gatedOf(c.r.Context()); conn != nil {
		conn.boundWrites(streamRoom)
		conn.forget()
	}
	st := stream{c: c, control: http.NewResponseController(c.w)}
	if err := st.control.SetReadDeadline(time.Time{}); err != nil { // that of requests is over in 5 s
		return err
	}
	h := c.w.Header()
	h["Content-Type"] = streamType
	h["X-Accel-Buffering"] = []string{"no"} // of nginx, which would keep events back
	c.begun(http.StatusOK)
	st.out = append(st.out, ": lately\n\n"...)
	if st.flush() && c.r.Method != http.MethodHead {
		st.tell(sub, at)
	}
	return nil
}

// dropHead drops all of the request's head but what says who asks: a stream lasts.
func (c *call) dropHead() {
	token, session := strings.Clone(c.s.token(c)), ""
	if cookie, err := c.r.Cookie(cookieName); err == nil {
		session = cookieName + "=" + cookie.Value
	}
	clear(c.r.Header)
	if token != "" {
		c.r.Header["X-Lately-Token"] = []string{token}
	}
	if session != "" {
		c.r.Header["Cookie"] = []string{session}
	}
}

// tell sends what comes.
func (st *stream) tell(sub *engine.Subscription, at *beat) {
	for {
		select {
		case <-st.c.r.Context().Done():
			return
		case <-st.c.s.drained:
			return
		case <-at.ready:
			if !st.c.s.holds(st.c) {
				return // who may still be told comes again, and says who he is
			}
			st.out = append(st.out, at.text...)
			at = at.next
		case <-sub.Done():
			st.over(sub)
			return
		case <-sub.Wait():
			st.take(sub)
		}
		if !st.flush() {
			return
		}
	}
}

// take appends the events that wait, up to streamBatch bytes.
func (st *stream) take(sub *engine.Subscription) {
	for len(st.out) < streamBatch {
		ev, ok := sub.Next()
		if !ok {
			return
		}
		st.out = appendEvent(st.out, ev.Type, ev.JSON)
	}
}

// over ends the stream of one to whom nothing more will be told.
func (st *stream) over(sub *engine.Subscription) {
	if sub.Slow() {
		st.c.s.Cut.Add(1)
		st.out = appendEvent(st.out, "resync", []byte("{}"))
	}
	st.flush()
}

// flush sends what there is to send, and reports false if the subscriber has gone or
// did not take it in time: his connection is then of no more use, and is closed.
func (st *stream) flush() bool {
	st.control.SetWriteDeadline(time.Now().Add(streamWrite)) // where it cannot be set, that of the server holds
	_, err := st.c.w.Write(st.out)
	if err == nil {
		err = st.control.Flush()
	}
	st.out = st.out[:0]
	if errors.Is(err, os.ErrDeadlineExceeded) {
		st.c.s.Cut.Add(1)
	}
	return err == nil
}
