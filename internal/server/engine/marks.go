package engine

import (
	"slices"
	"time"

	"github.com/lately-go/lately/api"
)

// The types of marks.
const (
	Started      = "start"
	Reloaded     = "reload"
	ReloadFailed = "failed" // the rules stay as they were
)

// mark adds a mark of now.
func (e *Engine) mark(typ string) {
	h := &e.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.marks) == keptMarks {
		h.marks = slices.Delete(h.marks, 0, 1)
	}
	h.marks = append(h.marks, api.Mark{Time: time.Now().UTC(), Type: typ})
}

// Marks returns the newest marks of the last span, up to 256, the oldest first. Those of
// restored state are among them.
func (e *Engine) Marks(span time.Duration) []api.Mark {
	h := &e.history
	h.mu.Lock()
	defer h.mu.Unlock()
	from := time.Now().Add(-span)
	i, _ := slices.BinarySearchFunc(h.marks, from, func(m api.Mark, t time.Time) int { return m.Time.Compare(t) })
	return append([]api.Mark{}, h.marks[i:]...)
}
