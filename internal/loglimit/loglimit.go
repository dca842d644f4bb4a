// Package loglimit bounds the lines of a log that strangers can cause, so that neither
// an attack nor a bad rule fills a disk. What is left out is counted, and said.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// Each message has up to burst lines in every period.
	burst  = 20
	period = time.Second

	// maxMessages bounds the memory. Messages are texts of the program: there
	// are a few of them.
	maxMessages = 256
)

// A Handler passes lines on to another handler: of each message up to 20 in a second.
// For those that it leaves out, a line with the same message follows within a second,
// whose attribute suppressed is their number. It is safe for concurrent use. Make one
// with [New].
type Handler struct {
	slog.Handler
	shared *messages
}

// messages is what all handlers that come from one have in common.
type messages struct {
	base slog.Handler // for lines about what was left out

	mu  sync.Mutex
	all map[string]*message
}

// A message is what becomes of the lines of one message.
type message struct {
	began      time.Time // the period
	lines      int       // passed on in it
	suppressed uint64    // since the last line that says so
}

// New returns a Handler that passes on to h.
func New(h slog.Handler) *Handler {
	return &Handler{h, &messages{base: h, all: make(map[string]*message)}}
}

// Handle passes r on, or counts it.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if !h.Allow(r.Level, r.Message) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// Allow counts a line with this message, and reports whether it may be written. It is
// for callers that write to the handler below h, and build the attributes only of lines
// that are written.
func (h *Handler) Allow(level slog.Level, text string) bool { return h.shared.allow(level, text) }

// WithAttrs returns a Handler whose lines have these attributes as well, and count with
// those of h.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.Handler.WithAttrs(attrs), h.shared}
}

// WithGroup returns a Handler whose attributes are in a group, and whose lines count
// with those of h.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.Handler.WithGroup(name), h.shared}
}

// allow reports whether a line is passed on.
func (m *messages) allow(level slog.Level, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.all[text]
	if x == nil {
		if len(m.all) >= maxMessages {
			return true
		}
		x = &message{}
		m.all[text] = x
	}
	now := time.Now()
	if now.Sub(x.began) >= period {
		x.began, x.lines = now, 0
	}
	if x.lines < burst {
		x.lines++
		return true
	}
	if x.suppressed++; x.suppressed == 1 {
		time.AfterFunc(period, func() { m.tell(x, level, text) })
	}
	return false
}

// tell says how many lines of a message were left out.
func (m *messages) tell(x *message, level slog.Level, text string) {
	m.mu.Lock()
	n := x.suppressed
	x.suppressed = 0
	m.mu.Unlock()
	r := slog.NewRecord(time.Now(), level, text, 0)
	r.AddAttrs(slog.Uint64("suppressed", n))
	_ = m.base.Handle(context.Background(), r) // a log that cannot be written has nowhere to say so
}
