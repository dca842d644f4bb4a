package hotkey

import (
	"math"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// Access to the state of a Detector for tests, and changes that break it for controls.

// Kept reports whether d has events of key.
func Kept(d *Detector, rule, key string) bool {
	i, _ := d.index(rule)
	table := d.tables[i]
	r, state := table.Lock(table.Hash(key), key)
	if state != keytable.Found {
		return false
	}
	defer r.Unlock()
	return table.window.Newest(r.Words()[wordWindow:], table.blocks) != math.MinInt64
}

// Removed returns the time of the last key that d removed because its events had left the span: it counts no event of a new
// key earlier.
func Removed(d *Detector, rule string) int64 {
	i, _ := d.index(rule)
	return d.tables[i].expired.Load()
}

// CountTwoSpans makes d, which has no keys, count events for two spans.
func CountTwoSpans(d *Detector) (err error) {
	for _, t := range d.tables {
		r := *t.rule
		r.Span *= 2
		if t.window, err = windowOf(&r); err != nil {
			return err
		}
		t.blocks = t.window.Blocks(d.budget)
		t.view = t.blocks.View()
	}
	return nil
}

// ForgetEvicted makes d, which has no keys, lose the counts of evicted keys.
func ForgetEvicted(d *Detector) error {
	for _, t := range d.tables {
		t.plan.Span = time.Millisecond
	}
	return nil
}
