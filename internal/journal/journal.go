package journal

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// A record that nobody waits for is written after this long. With the
	// time that a disk takes, it is there within a second.
	commitEvery = 500 * time.Millisecond

	// After an error that nobody has asked about, this is when it is tried again.
	retryEvery = time.Second

	// maxWaiting is how many bytes may be taken and not on disk, whether it is
	// slow or fails.
	maxWaiting = 16 << 20

	// A buffer that was larger than this is not kept for the next commit.
	maxSpare = 1 << 20
)

// ErrFull is returned by Append when as much waits for the disk
// as may. The record was not taken.
var ErrFull = errors.New("journal: 16 MiB wait for the disk")

// A Journal takes records, and has them on disk soon. Get one with [Dir.Journal].
//
// One goroutine writes: all records that came while it was syncing go to disk
// with the next sync, so that many callers share one. When the disk fails, the
// file is left for good, the records in memory are kept, in their order, and are
// written to a new file with the next ones, or a second later. It is safe for
// concurrent use. Its zero value is not usable.
type Journal struct {
	fs   fileSystem
	path string

	mu      sync.Mutex
	open    *batch // takes records
	next    uint64 // number of the next one
	rotated bool   // the next commit begins a file
	closed  bool
	files   []journalFile // oldest first; the newest may be open
	number  uint64        // highest that a file has had
	spare   []byte        // for the next batch
	stats   Stats
	notify  func(error) // or nil

	// Of the committer only.
	current   file // nil when the next commit begins a file
	kept      []byte
	keptFirst uint64 // number of the first record in kept

	urgent, lazy chan struct{} // somebody waits; the first record of a batch has come
	stop, ended  chan struct{}
}

// A journalFile is a file of the journal.
type journalFile struct {
	number  uint64 // in its name
	last    uint64 // highest number that a record in it has or may have
	damaged bool   // not all of it is whole records, but for a torn tail
}

// A batch is the records that go to disk together.
type batch struct {
	bytes []byte // encoded
	first uint64
	done  chan struct{} // closed when err is known
	err   error
}

// Stats is what a journal has done so far.
type Stats struct {
	Records  uint64 // that were taken
	Syncs    uint64 // commits that succeeded
	Failures uint64 // commits that did not
	Waiting  int    // bytes that are taken and not on disk
	Failing  error  // of the last commit; nil if it succeeded
	Missing  uint64 // records that were not taken for ErrFull since the last snapshot
}

func newJournal(l fileSystem, path string, next, number uint64, files []journalFile) *Journal {
	j := &Journal{
		fs: l, path: path,
		next: next, number: number,
		files:  slices.Clone(files),
		urgent: make(chan struct{}, 1),
		lazy:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
	j.open = &batch{done: make(chan struct{})}
	go j.run()
	return j
}

// Append appends a record and returns at once; it is on disk within a second, unless the
// disk is slower. The order of calls is the order of records. It waits for no disk, and so
// may be called under a lock. A record is 1 to MaxRecord bytes; nothing of it is kept.
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
		b.first = j.next
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

// Pending is a record on its way to disk. The zero Pending is there already.
type Pending struct {
	j *Journal
	b *batch
}

// Wait returns when the record is on disk, which it asks for at once, or with the error
// that says that it is not known to be. It is then tried again, so it may be there after a
// restart, as the state that it tells of still is in memory. Wait may be called any number
// of times, or never.
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

// Notify has f called with the error when a commit fails after one that succeeded,
// and with nil when one succeeds again. f runs on the goroutine that writes: it must
// not wait for the journal. Call it before the first record.
func (j *Journal) Notify(f func(error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notify = f
}

// Stats returns what j has done so far.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// rotate has the next commit begin a file, and returns the number of the last
// record that was taken, and how many were not. It waits for nothing.
func (j *Journal) rotate() (covered, missing uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rotated = true
	return j.next - 1, j.stats.Missing
}

// found notes that a snapshot has the changes of so many records that are missing.
func (j *Journal) found(missing uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Missing -= missing
}

// prune removes the files that have no record after covered, but never the
// newest, which may be open. Damaged ones are kept under another name.
func (j *Journal) prune(covered uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var left []journalFile
	for i, f := range j.files {
		name := journalName(f.number)
		var err error
		switch {
		case f.last > covered || i == len(j.files)-1:
			left = append(left, f)
		case f.damaged:
			err = j.fs.rename(name, name+badSuffix)
		default:
			err = j.fs.remove(name)
		}
		if err != nil {
			left = append(left, f)
		}
	}
	j.files = left
}

// close commits what is open, and ends the committer.
func (j *Journal) close() error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	close(j.stop)
	<-j.ended
	if s := j.Stats(); s.Waiting > 0 {
		return fmt.Errorf("journal: %s: records are not on disk: %w", j.path, s.Failing)
	}
	return nil
}
