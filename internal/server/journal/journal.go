package journal

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	commitEvery = 500 * time.Millisecond // until a record that nobody waits for is written
	retryEvery  = time.Second            // after an error
	maxWaiting  = 16 << 20               // bytes that wait for a slow or failing disk
	maxSpare    = 1 << 20                // bytes of a buffer that is kept for the next commit
)

// ErrFull is the error of Append while as many bytes as possible wait for the disk. The
// record is not appended.
var ErrFull = errors.New("journal: 16 MiB wait for the disk")

// A Journal appends records to files; see [Dir.Journal]. It is safe for concurrent use.
//
// One goroutine writes: all records that are appended during a sync are written with the
// next one, so that many callers share a sync. After an error, the records in memory are
// written to a new file, in their order, with the next ones or a second later.
type Journal struct {
	fs   fileSystem
	path string

	mu      sync.Mutex
	open    *batch // of records that are appended
	next    uint64 // number of the next one
	safe    uint64 // number up to which all are on disk or in a snapshot
	rotated bool   // the next commit begins a file
	closed  bool
	files   []journalFile // oldest first; the newest may be open
	number  uint64        // highest that a file has had
	spare   []byte        // for the next batch
	stats   Stats
	notify  func(error) // or nil

	current file // of the committer only; nil when the next commit begins a file

	urgent, lazy chan struct{} // a caller waits; a batch has its first record
	stop         chan struct{}
	running      sync.WaitGroup // the committer
}

// A journalFile is a file of the journal.
type journalFile struct {
	number  uint64 // in its name
	last    uint64 // highest number that a record in it has or may have
	damaged bool   // not all of it is whole records, but for a torn tail
}

// A batch is the records that go to disk together. It begins with those of the one before, if
// that could not be written.
type batch struct {
	bytes []byte        // encoded
	done  chan struct{} // closed when err is known
	err   error
}

// Stats is what a journal has done so far.
type Stats struct {
	Records  uint64 // that were appended
	Syncs    uint64 // commits that succeeded
	Failures uint64 // commits that did not
	Waiting  int    // bytes that are appended and not on disk
	Failing  error  // of the last commit; nil if it succeeded
	Missing  uint64 // records that ErrFull has refused since the last snapshot

	// Unwritten is records that wait since a commit has failed and that no snapshot has.
	Unwritten uint64
}

func newJournal(l fileSystem, path string, next, number uint64, files []journalFile) *Journal {
	j := &Journal{
		fs: l, path: path,
		next: next, safe: next - 1, number: number,
		files:  slices.Clone(files),
		urgent: make(chan struct{}, 1),
		lazy:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
	}
	j.open = &batch{done: make(chan struct{})}
	j.running.Go(j.run)
	return j
}

// Append appends a copy of a record of 1 to MaxRecord bytes. It does not
// wait for the disk, so it may be called under a lock. The record is on disk within a
// second, unless the disk is slower. The order of calls is the order of records.
func (j *Journal) Append(record []byte) (Pending, error) {
	if len(record) == 0 || len(record) > MaxRecord {
		return Pending{}, fmt.Errorf("journal: record of %d bytes: must be 1 to %d", len(record), MaxRecord)
	}
	size := recordHeaderLen + len(record)
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
	b.bytes = appendRecord(b.bytes, j.next, record)
	j.next++
	j.stats.Waiting += size
	j.stats.Records++
	return Pending{j, b}, nil
}

// signal wakes the committer, if it has not been woken yet.
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
		s.Unwritten = j.next - 1 - j.safe
	}
	return s
}

// rotate makes the next commit begin a file. It returns the number of the last record, and
// how many are missing.
func (j *Journal) rotate() (covered, missing uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rotated = true
	return j.next - 1, j.stats.Missing
}

// found subtracts missing records, whose changes a snapshot has.
func (j *Journal) found(missing uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Missing -= missing
}

// prune removes the files without records after covered, except the newest, which may be
// open. It renames damaged ones instead.
func (j *Journal) prune(covered uint64) {
	j.mu.Lock()
	j.safe = max(j.safe, covered)
	files := slices.Clone(j.files)
	j.mu.Unlock()
	gone := make(map[uint64]bool)
	for _, f := range files[:max(0, len(files)-1)] {
		if f.last > covered {
			continue
		}
		name := journalName(f.number)
		if f.damaged {
			gone[f.number] = j.fs.rename(name, name+badSuffix) == nil
		} else {
			gone[f.number] = j.fs.remove(name) == nil
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.files = slices.DeleteFunc(j.files, func(f journalFile) bool { return gone[f.number] })
}

// close commits what is open, and ends the committer.
func (j *Journal) close() error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	close(j.stop)
	j.running.Wait()
	if s := j.Stats(); s.Waiting > 0 {
		return fmt.Errorf("journal: %s: records are not on disk: %w", j.path, s.Failing)
	}
	return nil
}
