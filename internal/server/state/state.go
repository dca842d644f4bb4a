// Package state writes and restores the records of a snapshot, for the parts of the server that keep something.
//
// Each part has a Save method, which takes a [Writer], and a Restore method, which takes a [Loader] and a record of one
// of its types. They are restored in the order in which they were saved.
package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/lately-go/lately/window"
)

// The types of records in a snapshot and in the journal.
const (
	Ban     = 'b' // in the journal
	Limits  = 'l' // a chunk of ratelimit.Limiter.ExportAt
	Counts  = 't'
	Hot     = 'h'
	HotKey  = 'k'
	HotUses = 'u'
	Ignored = 'i'
	History = 'g' // changes every minute
	Ended   = 'e'
	Caller  = 'r' // a chunk of throttle.Limiter.ExportAt: limits that callers brought
	Settled = 's'
	Crawler = 'c' // a chunk of crawlers.Verifier.ExportAt
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

// A Loader imports chunks with as many goroutines as there are cores. So the error of a chunk may be returned by a later
// call of Load, or by Wait.
type Loader struct {
	now     func() time.Time
	begun   bool // a chunk has been imported
	workers sync.WaitGroup
	slots   chan struct{} // as many as there may be workers

	mu  sync.Mutex // for what follows, and totals of Load, until Wait returns
	err error      // the first
}

// NewLoader returns a Loader that imports at the times of now.
func NewLoader(now func() time.Time) *Loader {
	return &Loader{now: now, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Load begins to import a chunk with load, and adds what it returns to total. The first is imported at once: it has the secret of the
// digests in later ones.
func (l *Loader) Load(total *window.Imported, chunk []byte, load func(time.Time, []byte) (window.Imported, error)) error {
	work := func(chunk []byte) {
		done, err := load(l.now(), chunk)
		l.mu.Lock()
		defer l.mu.Unlock()
		total.Add(done)
		l.err = cmp.Or(l.err, err)
	}
	if !l.begun {
		l.begun = true
		work(chunk)
	} else {
		chunk = bytes.Clone(chunk)
		l.slots <- struct{}{}
		l.workers.Go(func() {
			work(chunk)
			<-l.slots
		})
	}
	return l.Err()
}

// Err returns the first error so far.
func (l *Loader) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Wait returns when all chunks have been imported.
func (l *Loader) Wait() error {
	l.workers.Wait()
	return l.err
}
