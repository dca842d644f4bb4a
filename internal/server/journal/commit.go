package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// run writes until the journal is closed: at once if a caller waits, otherwise commitEvery
// after the first record of a batch.
func (j *Journal) run() {
	timer := time.NewTimer(commitEvery)
	defer timer.Stop()
	for {
		select {
		case <-j.lazy:
			timer.Reset(commitEvery)
			continue
		case <-j.urgent:
		case <-timer.C:
		case <-j.stop:
			_ = j.commit() // the error is in the batch and the Stats
			j.closeFile()
			return
		}
		if j.commit() != nil {
			timer.Reset(retryEvery)
		}
	}
}

// commit writes the open batch, with one sync, and wakes those who wait.
func (j *Journal) commit() error {
	j.mu.Lock()
	b := j.open
	if len(b.bytes) == 0 {
		j.mu.Unlock()
		return nil
	}
	j.open = &batch{bytes: j.spare, done: make(chan struct{})}
	j.spare = nil
	last, rotated := j.next-1, j.rotated
	j.rotated = false
	j.mu.Unlock()

	if rotated {
		j.closeFile()
	}
	err := j.write(b.bytes, last)
	j.mu.Lock()
	if err != nil {
		j.open.bytes = append(b.bytes, j.open.bytes...)
		j.stats.Failures++
	} else {
		j.stats.Waiting -= len(b.bytes)
		j.stats.Syncs++
		j.safe = max(j.safe, last)
		if cap(b.bytes) <= maxSpare {
			j.spare = b.bytes[:0]
		}
	}
	var notify func(error)
	if (err == nil) != (j.stats.Failing == nil) {
		notify = j.notify
	}
	j.stats.Failing = err
	j.mu.Unlock()
	b.err = err
	close(b.done)
	if notify != nil {
		notify(err)
	}
	return err
}

// write writes and syncs records, the last of them of that number. After an error it closes
// the file, as the kernel may have dropped the pages of a failed sync.
func (j *Journal) write(records []byte, last uint64) error {
	begun := j.current == nil
	err := j.begin(recordNumber(records), last)
	if err == nil {
		_, err = j.current.Write(records)
	}
	if err == nil {
		err = j.current.Sync()
	}
	if err == nil && begun {
		err = j.fs.syncDir()
	}
	if err == nil {
		return nil
	}
	number := j.number // nobody else changes it
	j.closeFile()
	if begun {
		j.removeFile()
	}
	return fmt.Errorf("journal: %s: %w", filepath.Join(j.path, journalName(number)), err)
}

// begin opens a file if none is open. What is about to be written counts as written.
func (j *Journal) begin(first, last uint64) error {
	j.mu.Lock()
	if j.current != nil {
		j.files[len(j.files)-1].last = last
		j.mu.Unlock()
		return nil
	}
	j.number++
	name := journalName(j.number)
	j.files = append(j.files, journalFile{number: j.number, last: last})
	j.mu.Unlock()
	f, err := j.fs.create(name)
	if err != nil {
		return err
	}
	j.current = f
	_, err = f.Write(appendJournalHeader(nil, first))
	return err
}

// closeFile closes the file, if one is open. All that was acknowledged is synced, so the
// error does not matter.
func (j *Journal) closeFile() {
	if j.current != nil {
		_ = j.current.Close()
		j.current = nil
	}
}

// removeFile removes the newest file; nothing in it was acknowledged. If that fails, it
// stays until a snapshot covers it; readers skip its records by their numbers.
func (j *Journal) removeFile() {
	number := j.number // nobody else changes it
	if err := j.fs.remove(journalName(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.files = slices.DeleteFunc(j.files, func(f journalFile) bool { return f.number == number })
}
