package follow

import (
	"context"
	"log/slog"
)

// A logAfter keeps the log lines of a Follower until its lock is released: a program that reads the log slowly must
// not delay whoever waits for the lock, such as a snapshot. It is guarded by Follower.mu.
type logAfter struct {
	slog.Handler
	lines *[]logLine
}

// A logLine is a line for a handler.
type logLine struct {
	handler slog.Handler
	record  slog.Record
}

func newLogAfter(l *slog.Logger) *logAfter { return &logAfter{l.Handler(), new([]logLine)} }

// Handle keeps r.
func (l *logAfter) Handle(_ context.Context, r slog.Record) error {
	*l.lines = append(*l.lines, logLine{l.Handler, r.Clone()})
	return nil
}

func (l *logAfter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logAfter{l.Handler.WithAttrs(attrs), l.lines}
}

func (l *logAfter) WithGroup(name string) slog.Handler {
	return &logAfter{l.Handler.WithGroup(name), l.lines}
}

// unlock releases the lock of f, then writes what was logged under it.
func (f *Follower) unlock() {
	lines := *f.after.lines
	*f.after.lines = nil
	f.mu.Unlock()
	for _, l := range lines {
		_ = l.handler.Handle(context.Background(), l.record) // as slog.Logger does
	}
}
