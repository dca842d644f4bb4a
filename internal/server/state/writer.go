// Package state writes and restores the records of a snapshot, for the parts of the server that keep something.
//
// Each part has a Save method, which takes a [Writer], and a Restore method, which takes a [Loader] and a record of one
// of its types. They are restored in the order in which they were saved.
package state

import (
	"cmp"
	"encoding/json"
	"iter"
)

// The types of the records of a snapshot, and of those that are appended to the journal.
const (
	Ban     = 'b' // in the journal
	Limits  = 'l' // a chunk of ratelimit.Limiter.Export
	Counts  = 't'
	Hot     = 'h'
	HotKey  = 'k'
	HotUses = 'u'
	Ignored = 'i'
	History = 'g' // changes every minute
	Ended   = 'e'
	Caller  = 'r' // a chunk of throttle.Limiter.Export: limits that callers brought
	Settled = 's'
	Lives   = 'v' // has the time at which it was written
)

// A Writer adds records until the first error.
type Writer struct {
	add func(typ byte, data []byte) error
	err error
}

// NewWriter returns a Writer that calls add with each record.
func NewWriter(add func(typ byte, data []byte) error) *Writer { return &Writer{add: add} }

// Record adds a record.
func (w *Writer) Record(typ byte, data []byte) {
	if w.err == nil {
		w.err = w.add(typ, data)
	}
}

// JSON adds a record with v as JSON.
func (w *Writer) JSON(typ byte, v any) {
	data, err := json.Marshal(v)
	w.err = cmp.Or(w.err, err)
	w.Record(typ, data)
}

// Chunks adds a record for each chunk, behind head.
func (w *Writer) Chunks(typ byte, head []byte, chunks iter.Seq[[]byte]) {
	for chunk := range chunks {
		if len(head) > 0 {
			chunk = append(head[:len(head):len(head)], chunk...)
		}
		if w.Record(typ, chunk); w.err != nil {
			return
		}
	}
}

// Err returns the first error.
func (w *Writer) Err() error { return w.err }
