// Package loglimit limits the rate of log lines that clients can cause, so that neither an
// attack nor a bad rule fills a disk. Suppressed lines are counted, and their number is
// logged.
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

	// maxMessages bounds the memory. Messages are constants of the program.
	maxMessages = 256
)

// A Handler passes lines on to another handler: of each message up to 20 in a second.
// After suppressed lines, a line with the same message follows within a second, whose
// attribute suppressed is their number. It is safe for concurrent use. Make one with
// [New].
type Handler struct {
	slog.Handler
	*messages
}

// messages is the part that a Handler shares with derived ones.
type messages struct {
	base slog.Handler // for the numbers of suppressed lines

	mu  sync.Mutex
	all map[string]*message
}

// A message counts the lines of one message.
type message struct {
	began      time.Time // the period
	lines      int       // passed on in it
	suppressed uint64    // since the last line with their number
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

// WithAttrs returns a Handler whose lines have these attributes as well, and count with
// those of h.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.Handler.WithAttrs(attrs), h.messages}
}

// WithGroup returns a Handler whose attributes are in a group, and whose lines count
// with those of h.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.Handler.WithGroup(name), h.messages}
}

// Allow counts a line with this message, and reports whether it may be written. It is
// for callers that write to the handler below, and build the attributes only of lines
// that are written.
func (m *messages) Allow(level slog.Level, text string) bool {
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
		time.AfterFunc(period, func() { m.report(x, level, text) })
	}
	return false
}

// report logs how many lines of a message were suppressed.
func (m *messages) report(x *message, level slog.Level, text string) {
	m.mu.Lock()
	n := x.suppressed
	x.suppressed = 0
	m.mu.Unlock()
	r := slog.NewRecord(time.Now(), level, text, 0)
	r.AddAttrs(slog.Uint64("suppressed", n))
	_ = m.base.Handle(context.Background(), r) // there is nowhere else to report an error
}
