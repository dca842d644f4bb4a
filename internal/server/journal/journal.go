package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

const (
	stateName = "state"
	tempName  = "state.tmp"

	commitEvery = 500 * time.Millisecond // until a record that nobody waits for is written
	retryEvery  = time.Second            // after an error
	maxWaiting  = 16 << 20               // bytes that wait for a slow or failing disk
	maxSpare    = 1 << 20                // bytes of a buffer that is kept for the next commit
)

// ErrFull is the error of Append while as many bytes as possible wait for the disk. The
// record is not appended.
var ErrFull = errors.New("journal: 16 MiB wait for the disk")

// ErrClosed is the error of all calls after Close.
var ErrClosed = errors.New("journal: it is closed")

// A Journal is the state of one process in a directory: append changes to it, and write
// snapshots. It is safe for concurrent use. Its zero value is not usable; call [Open].
//
// One goroutine writes what is appended: all records that are appended during a sync are
// written with the next one, so that many callers share a sync. After an error, the records in
// memory are written again, in their order, with the next ones or a second later.
type Journal struct {
	fs      fileSystem
	path    string
	release func() error // of the lock and the directory

	snapshots sync.Mutex // held while a snapshot is written
	writing   sync.Mutex // held while the file is appended to or replaced; for what follows

	file     file   // nil before the first record
	size     int64  // bytes that are on disk
	next     uint64 // number of the next record in the file
	unsynced bool   // the directory has to be synced before anything is acknowledged

	mu       sync.Mutex // for what follows
	open     *batch     // of records that are appended
	appended uint64     // records in all
	done     uint64     // of these, how many are on disk or in a snapshot
	closed   bool
	spare    []byte // for the next batch
	stats    Stats
	notify   func(error) // or nil

	urgent, lazy chan struct{} // a caller waits; a batch has its first record
	stop         chan struct{}
	running      sync.WaitGroup // the goroutine that writes
}

// A batch is the records that go to disk together. If the previous batch failed, its records
// come first.
type batch struct {
	bytes []byte        // encoded
	done  chan struct{} // closed when err is known
	err   error
}

// Stats is what a journal has done so far.
type Stats struct {
	Syncs    uint64 // commits that succeeded
	Failures uint64 // commits that did not
	Waiting  int    // bytes that are appended and not on disk
	Failing  error  // of the last commit; nil if it succeeded
	Missing  uint64 // records that ErrFull has refused since the last snapshot

	// Unwritten is records that wait since a commit has failed and that no snapshot has.
	Unwritten uint64
}

// start starts the goroutine that writes.
func (j *Journal) start() {
	j.open = &batch{done: make(chan struct{})}
	j.urgent, j.lazy, j.stop = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	j.running.Go(j.run)
}

// Append appends a record with a copy of data, which has up to MaxRecord bytes. It does not
// wait for the disk, so it may be called under a lock. The record is on disk within a
// second, unless the disk is slower. The order of calls is the order of records.
func (j *Journal) Append(typ byte, data []byte) (Pending, error) {
	if len(data) > MaxRecord {
		return Pending{}, fmt.Errorf("journal: record of %d bytes: must be up to %d", len(data), MaxRecord)
	}
	size := recordHeaderLen + 1 + len(data)
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return Pending{}, ErrClosed
	case j.stats.Waiting+size > maxWaiting:
		j.stats.Missing++
		return Pending{}, ErrFull
	}
	b := j.open
	if len(b.bytes) == 0 {
		signal(j.lazy)
	}
	b.bytes = appendRecord(b.bytes, typ, data)
	j.appended++
	j.stats.Waiting += size
	return Pending{j, b}, nil
}

// signal wakes the goroutine that writes, if it has not been woken yet.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Pending is a record that is being written. The zero Pending is on disk.
type Pending struct {
	j *Journal
	b *batch
}

// Wait has the record written at once and returns when it is on disk. After an error it is
// not known to be on disk, and is written again later. Wait may be called any number of
// times, or never.
func (p Pending) Wait() error {
	if p.b == nil {
		return nil
	}
	p.j.mu.Lock()
	if p.b == p.j.open {
		signal(p.j.urgent)
	}
	p.j.mu.Unlock()
	<-p.b.done
	return p.b.err
}

// Notify makes the journal call f with the error when a commit fails after one that
// succeeded, and with nil when one succeeds again. f must not wait for the journal. Call
// Notify before the first record is appended.
func (j *Journal) Notify(f func(error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notify = f
}

// Stats returns what j has done so far.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	if s.Failing != nil {
		s.Unwritten = j.appended - j.done
	}
	return s
}

// Close writes what was appended and unlocks the directory. It waits for a snapshot that is
// being written. The error says that records are not on disk. A second Close does nothing.
func (j *Journal) Close() error {
	j.snapshots.Lock()
	defer j.snapshots.Unlock()
	j.mu.Lock()
	closed := j.closed
	j.closed = true
	j.mu.Unlock()
	if closed {
		return nil
	}
	close(j.stop)
	j.running.Wait()
	var err error
	if s := j.Stats(); s.Waiting > 0 {
		err = fmt.Errorf("journal: %s: records are not on disk: %w", j.path, s.Failing)
	}
	j.closeFile()
	return errors.Join(err, j.release())
}

// closeFile closes the file, if there is one. What was acknowledged is synced, so the error
// does not matter.
func (j *Journal) closeFile() {
	if j.file != nil {
		_ = j.file.Close()
	}
}

// wrap says which file an error is about.
func (j *Journal) wrap(err error) error {
	return fmt.Errorf("journal: %s: %w", filepath.Join(j.path, stateName), err)
}
