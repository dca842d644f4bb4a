package counters

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/window"
)

// A savedCounter names a counter, with what its counts depend on.
type savedCounter struct {
	Name   string   `json:"name"`
	Fields []string `json:"fields"`
	Made   bool     `json:"made,omitempty"`
}

// Save adds the records of each counter: its savedCounter as JSON and a NUL byte, first alone, since one that was made has to
// be made again, and then before each chunk of its table.
func (all *Counters) Save(w *state.Writer, now time.Time) {
	for _, c := range all.inUse.Load().all {
		head, _ := json.Marshal(savedCounter{c.Name, c.Key.Fields(), c.dynamic}) // it has no errors
		head = append(head, 0)
		w.Record(state.Counts, head)
		table, now := c.counts(now)
		w.Chunks(state.Counts, head, table.ExportAt(now))
	}
}

// Restore restores a record that Save has added, and adds what it imports to total. Counters that do not exist any more, or count
// other keys, are left out, and so are windows that they have no more.
func (all *Counters) Restore(l *state.Loader, total *window.Imported, record []byte) error {
	head, chunk, _ := bytes.Cut(record, []byte{0})
	var was savedCounter
	if err := json.Unmarshal(head, &was); err != nil {
		return fmt.Errorf("record of a counter: %w", err)
	}
	c := all.inUse.Load().named(was.Name)
	if c == nil && was.Made {
		var err error
		if c, err = all.Create(was.Name); err != nil {
			return err
		}
	}
	if c == nil || !slices.Equal(c.Key.Fields(), was.Fields) || len(chunk) == 0 {
		return nil
	}
	table, _ := c.counts(time.Time{})
	return l.Load(total, chunk, table.ImportAt)
}
