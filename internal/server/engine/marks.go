package engine

import (
	"slices"
	"time"
)

// The types of marks.
const (
	Started      = "start"
	Reloaded     = "reload"
	ReloadFailed = "failed" // the rules stay as they were
)

// A Mark is a moment that explains a change in the rates.
type Mark struct {
	Time time.Time `json:"time"`
	Type string    `json:"type" doc:"start, reload, or failed: a reload that left the rules as they were"`
}

// mark adds a mark of now.
func (e *Engine) mark(typ string) {
	h := &e.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.marks) == keptMarks {
		h.marks = slices.Delete(h.marks, 0, 1)
	}
	h.marks = append(h.marks, Mark{time.Now(), typ})
}

// Marks returns the newest marks of the last span, up to 256, the oldest first. Those of
// restored state are among them.
func (e *Engine) Marks(span time.Duration) []Mark {
	h := &e.history
	h.mu.Lock()
	defer h.mu.Unlock()
	from := time.Now().Add(-span)
	i, _ := slices.BinarySearchFunc(h.marks, from, func(m Mark, t time.Time) int { return m.Time.Compare(t) })
	return slices.Clone(h.marks[i:])
}
