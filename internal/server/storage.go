package server

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/httpapi"
)

// storage is how writing to the data directory goes. A disk that fails does not stop
// decisions; it is logged when it begins and when it ends, counted, and makes the
// server not ready.
type storage struct {
	log *slog.Logger

	mu        sync.Mutex
	journal   writes
	snapshots writes

	lost uint64 // records of the data directory that were damaged at the start; set before the listeners
}

// writes is the state of writing one kind of file.
type writes struct {
	name     string    // in the log and in /readyz
	failures uint64    // attempts that failed so far
	failing  error     // of the last attempt; nil if it succeeded
	since    time.Time // of the first failure since the last success
}

// note stores the result of an attempt to write, and logs it if the one before had another.
// It reports whether writing has recovered.
func (s *storage) note(w *writes, err error) (recovered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := w.failing
	w.failing = err
	if err != nil {
		w.failures++
	}
	switch {
	case err != nil && was == nil:
		w.since = time.Now()
		s.log.Error("writing to the data directory fails; decisions continue, but changes may not survive a restart", "file", w.name, "error", err)
	case err == nil && was != nil:
		s.log.Info("writing to the data directory works again", "file", w.name, "failed_for", time.Since(w.since).Round(time.Millisecond).String(), "last_error", was)
		return true
	}
	return false
}

// ready returns why the server is not ready: which files cannot be written, and the
// cause. Strangers may read it, so it does not name paths.
func (s *storage) ready(missing uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failing []string
	for _, w := range []*writes{&s.journal, &s.snapshots} {
		if w.failing != nil {
			failing = append(failing, fmt.Sprintf("%s: cannot be written since %s: %s", w.name, w.since.UTC().Format(time.RFC3339), causeOf(w.failing)))
		}
	}
	if missing > 0 {
		failing = append(failing, fmt.Sprintf("%s: bans that are not on disk: %d; the next snapshot will have them", s.journal.name, missing))
	}
	if failing == nil {
		return nil
	}
	return errors.New(strings.Join(failing, "; "))
}

// causeOf returns what the operating system said, without the name of a file.
func causeOf(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return "see the server's log"
}

// storageState returns how writing goes, for listeners. Without a snapshot, its age is how
// long s has run.
func (s *Server) storageState() httpapi.Storage {
	age := time.Since(s.engine.Status().Started)
	if at := s.saved.Load(); at != 0 {
		age = time.Since(time.Unix(0, at))
	}
	j := s.journal.Stats()
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	return httpapi.Storage{StorageStatus: api.StorageStatus{
		JournalError: s.storage.journal.text(), JournalFailures: j.Failures,
		SnapshotError: s.storage.snapshots.text(), SnapshotFailures: s.storage.snapshots.failures, MissingBans: j.Missing + j.Unwritten,
	}, SnapshotAge: age, Lost: s.storage.lost}
}

// text returns the error of the last attempt, or "".
func (w *writes) text() string {
	if w.failing == nil {
		return ""
	}
	return w.failing.Error()
}

// ready returns why the server is not ready, or nil.
func (s *Server) ready() error {
	if s.ending.Load() {
		return errors.New("the server is about to end")
	}
	if s.store != nil {
		if err := s.store.ready(); err != nil {
			return err
		}
	}
	if s.journal == nil {
		return nil
	}
	return s.storage.ready(s.journal.Stats().Missing)
}

// journalChanged is called when writing the journal begins to fail, and when it works again. A
// snapshot then has the changes that the journal could not hold.
func (s *Server) journalChanged(err error) {
	if s.storage.note(&s.storage.journal, err) {
		s.requestSnapshot()
	}
}

// requestSnapshot makes the next snapshot be written now.
func (s *Server) requestSnapshot() {
	select {
	case s.saveNow <- struct{}{}:
	default: // one is requested
	}
}
