package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/state"
)

// restore opens the data directory, if there is one, and restores its snapshot and the ban journal
// since then.
func (s *Server) restore() error {
	if s.config.Data == "" {
		return nil
	}
	began := time.Now()
	restorer := s.engine.Restorer()
	j, found, err := journal.Open(s.config.Data, s.restoring(restorer))
	s.journal = j
	if err = cmp.Or(err, restorer.Wait()); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	for _, problem := range found.Problems {
		s.log.Error("data directory", "error", problem)
	}
	s.storage.lost = found.Missing
	s.placesLost(&found)
	if err := s.restoreSecret(); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	j.Notify(s.journalChanged)
	if s.store == nil {
		s.engine.Bans().Journal(j)
	}
	if !found.Written.IsZero() {
		s.saved.Store(found.Written.UnixNano())
	}
	s.logRestored(restorer, &found, began)
	return nil
}

// logRestored logs what was restored since began.
func (s *Server) logRestored(restorer *engine.Restorer, found *journal.Found, began time.Time) {
	written := "none"
	if !found.Written.IsZero() {
		written = found.Written.UTC().Format(time.RFC3339)
	}
	n := restorer.Limits
	s.log.Info("state restored", "dir", s.config.Data, "snapshot", written, "keys", n.Keys, "bans", n.Bans, "expired", n.Expired,
		"without_rule", n.Unknown, "without_memory", n.Refused, "counter_keys", restorer.Counts.Keys, "journal_records", found.Appended,
		"records_lost", found.Missing, "took", time.Since(began).Round(time.Microsecond).String())
	if restorer.Unshared > 0 {
		s.log.Warn("limits and bans of the data directory are left out: they are in the store now, where limits begin at zero; " +
			"to move bans, list them before and import them afterwards, see docs/redis.md")
	}
	if n.Unknown > 0 || n.Refused > 0 {
		s.log.Warn("keys and bans of the data directory are not in force: their rule is not in the rules file, has another key, or the memory limit is reached",
			"without_rule", n.Unknown, "without_memory", n.Refused)
	}
}

// retrySnapshot is the longest time until the next snapshot after one that failed.
const retrySnapshot = 5 * time.Second

// keepSaving writes snapshots periodically and when one is requested, until ctx is done.
func (s *Server) keepSaving(ctx context.Context) {
	timer := time.NewTimer(s.config.SnapshotEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.saveNow:
		}
		next := s.config.SnapshotEvery
		if s.unchanged() {
			s.saved.Store(time.Now().UnixNano()) // it has all that there is
		} else if s.save() != nil { // it is in the log
			next = min(next, retrySnapshot)
		}
		timer.Reset(next)
	}
}

// save writes a snapshot.
func (s *Server) save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	missing := s.journal.Stats().Missing
	written := writtenState{seed: maphash.MakeSeed(), now: s.engine.Now()}
	err := s.journal.WriteSnapshot(func(add func(typ byte, data []byte) error) error {
		return s.saveLogs(written.now, func(typ byte, data []byte) error {
			written.add(typ, data)
			return add(typ, data)
		})
	})
	if s.written = written; err != nil {
		s.written = writtenState{}
	}
	s.storage.note(&s.storage.snapshots, err)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if missing > 0 {
		s.log.Warn("the ban journal could not hold all changes of bans; the snapshot has them now", "changes", missing)
	}
	s.saved.Store(time.Now().UnixNano())
	return nil
}

// A writtenState identifies the records of the last snapshot.
type writtenState struct {
	seed maphash.Seed
	now  time.Time // that of the records; the zero time if there is no snapshot
	sums []uint64
}

// sum returns what identifies a record. The history is left out, which changes every minute, and what has the time of
// the snapshot.
func (w *writtenState) sum(typ byte, data []byte) (sum uint64, ok bool) {
	return maphash.Bytes(w.seed, data) + uint64(typ), typ != state.History && typ != state.Lives
}

func (w *writtenState) add(typ byte, data []byte) {
	if sum, ok := w.sum(typ, data); ok {
		w.sums = append(w.sums, sum)
	}
}

var errChanged = errors.New("the state has changed")

// unchanged reports whether the last snapshot has all of the state. It compares the records that are
// the state at the time of that snapshot, until one differs.
func (s *Server) unchanged() bool {
	s.saving.Lock()
	defer s.saving.Unlock()
	w := &s.written
	if w.now.IsZero() || s.journal.Stats().Missing > 0 {
		return false
	}
	rest := w.sums
	err := s.saveLogs(w.now, func(typ byte, data []byte) error {
		sum, ok := w.sum(typ, data)
		switch {
		case !ok:
			return nil
		case len(rest) == 0 || rest[0] != sum:
			return errChanged
		}
		rest = rest[1:]
		return nil
	})
	return err == nil && len(rest) == 0
}
