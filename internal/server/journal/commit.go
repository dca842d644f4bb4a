package journal

import "time"

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
			return
		}
		if j.commit() != nil {
			timer.Reset(retryEvery)
		}
	}
}

// commit writes the open batch, with one sync, and wakes those who wait.
func (j *Journal) commit() error {
	j.writing.Lock()
	b, last := j.take()
	err := j.write(b.bytes)
	notify := j.settle(b, last, err)
	j.writing.Unlock()
	close(b.done)
	if notify != nil {
		notify(err)
	}
	return err
}

// take returns the open batch and how many records have been appended, and opens another.
func (j *Journal) take() (*batch, uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.open
	j.open = &batch{bytes: j.spare, done: make(chan struct{})}
	j.spare = nil
	return b, j.appended
}

// settle sets the result of a batch, and returns the function to call with it, or nil. After an
// error its records are written with the next batch.
func (j *Journal) settle(b *batch, last uint64, err error) (notify func(error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.open.bytes = append(b.bytes, j.open.bytes...)
		j.stats.Failures++
	} else {
		j.done = last
		j.stats.Waiting -= len(b.bytes)
		if len(b.bytes) > 0 {
			j.stats.Syncs++
		}
		if cap(b.bytes) <= maxSpare {
			j.spare = b.bytes[:0]
		}
	}
	if (err == nil) != (j.stats.Failing == nil) {
		notify = j.notify
	}
	j.stats.Failing, b.err = err, err
	return notify
}

// write writes and syncs records. After an error they are written again at the same place: the
// kernel may have dropped the pages of a failed sync.
//
// REQUIRES: j.writing.
func (j *Journal) write(records []byte) error {
	next := j.next
	if len(records) > 0 {
		if err := j.create(); err != nil {
			return j.wrap(err)
		}
		next = seal(records, j.next)
		if _, err := j.file.WriteAt(records, j.size); err != nil {
			return j.wrap(err)
		}
		if err := j.file.Sync(); err != nil {
			return j.wrap(err)
		}
	}
	if err := j.syncDir(); err != nil {
		return j.wrap(err)
	}
	j.size, j.next = j.size+int64(len(records)), next
	return nil
}

// create makes a file without a snapshot, if there is none.
//
// REQUIRES: j.writing.
func (j *Journal) create() error {
	if j.file != nil {
		return nil
	}
	w := newWriter(j.fs, 0)
	err := w.endSnapshot()
	if err == nil {
		err = j.replace(w, 0)
	}
	if j.file == nil {
		_ = w.discard()
	}
	return err
}

// syncDir syncs the directory, if the file was renamed since the last time.
func (j *Journal) syncDir() error {
	if !j.unsynced {
		return nil
	}
	err := j.fs.syncDir()
	j.unsynced = err != nil
	return err
}
