package state

import (
	"bytes"
	"cmp"
	"runtime"
	"sync"
	"time"

	"github.com/lately-go/lately/window"
)

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
