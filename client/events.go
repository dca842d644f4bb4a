package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/wait"
)

// Connected is the type of the event that [Client.Events] yields each time it has
// connected: it receives events from then on.
const Connected api.EventType = "connected"

const (
	// maxSilence is how long a stream may be silent: servers send something every
	// second.
	maxSilence = 45 * time.Second

	// maxEvent bounds one line of a stream. A ban has at most 64 KiB of key, which
	// JSON may make six times as long.
	maxEvent = 1 << 20

	// The first wait before another attempt is at most firstWait. The bound doubles with
	// each failure, up to maxWait.
	firstWait = 250 * time.Millisecond
	maxWait   = 15 * time.Second
)

// errLost is the error of [Client.Events] when a stream has ended.
var errLost = errors.New("the stream of events has ended")

// Events yields the events of the server, until ctx is done, the caller breaks off, or the
// server refuses with an [*Error] that is not Temporary, which comes last.
//
// The first event of each connection has the type [Connected]. Events before it are not
// received: a caller that keeps a state must read it then. Any other error means that the
// connection was lost or could not be made; the next attempt follows after a wait that
// grows up to 15 seconds, with full jitter. A stream that is silent for 45 seconds counts
// as lost, and a server disconnects subscribers that do not read.
func (c *Client) Events(ctx context.Context) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for failures := 1; ctx.Err() == nil; failures++ {
			received, more, err := c.stream(ctx, yield)
			if !more || ctx.Err() != nil || !yield(api.Event{}, err) {
				return
			}
			var least time.Duration
			if refusal, ok := errors.AsType[*Error](err); ok {
				if !refusal.Temporary() {
					return
				}
				least = refusal.RetryAfter
			}
			if received {
				failures = 1
			}
			// And a random time, so that the clients of a server do not all return at once.
			if wait.For(ctx, least+rand.N(longestWait(failures))) != nil {
				return
			}
		}
	}
}

// longestWait returns the bound of the random wait after this many failures in a row.
func longestWait(failures int) time.Duration { return wait.Backoff(firstWait, maxWait, failures) }

// stream yields the events of one connection. It reports whether it received anything,
// whether the caller wants more, and why the connection ended.
func (c *Client) stream(ctx context.Context, yield func(api.Event, error) bool) (received, more bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(maxSilence, func() { cancel(fmt.Errorf("%w: nothing came for %v", errLost, maxSilence)) })
	defer watch.Stop()
	resp, err := c.send(ctx, http.MethodGet, "/v1/events", nil)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return false, true, unwrap(err)
	}
	defer resp.Body.Close()
	if media := resp.Header.Get("Content-Type"); !strings.HasPrefix(media, "text/event-stream") {
		return false, true, fmt.Errorf("%s: not a lately server: its events are %q", c.addr, media)
	}
	if !yield(api.Event{Type: Connected}, nil) {
		return false, false, nil
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	var m message
	for lines.Scan() {
		received = true
		watch.Stop() // the time of the caller does not count
		event, whole, err := m.line(lines.Text())
		if err != nil {
			return received, true, err
		}
		if whole && !yield(event, nil) {
			return received, false, nil
		}
		watch.Reset(maxSilence)
	}
	return received, true, ended(ctx, lines.Err())
}

// ended returns why a stream has ended.
func ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%w: a line is longer than %d MiB", errLost, maxEvent>>20)
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return errLost
}

// A message is the received part of an event. The format is that of "Server-sent events"
// in the WHATWG HTML standard, without ids and retry.
type message struct {
	event string
	data  strings.Builder
}

// line reads one line, and returns the event if it was the last of an event.
func (m *message) line(line string) (e api.Event, whole bool, err error) {
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch {
	case line == "":
		return m.end()
	case field == "event":
		m.event = value
	case field == "data":
		if m.data.Len()+len(value) > maxEvent {
			return e, false, fmt.Errorf("%w: an event is longer than %d MiB", errLost, maxEvent>>20)
		}
		m.data.WriteString(value)
		m.data.WriteByte('\n')
	}
	return e, false, nil
}

// end returns the event that was read.
func (m *message) end() (e api.Event, whole bool, err error) {
	kind, data := m.event, m.data.String()
	m.event = ""
	m.data.Reset()
	if kind == "resync" {
		return e, false, fmt.Errorf("%w: events came faster than they were read", errLost)
	}
	if kind == "" || data == "" {
		return e, false, nil
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return e, false, fmt.Errorf("%w: the data of event %.40q is not JSON: %w", errLost, kind, err)
	}
	e.Type = api.EventType(kind)
	return e, true, nil
}
