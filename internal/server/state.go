package server

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/journal"
)

// restore opens the data directory, if there is one, and restores its newest whole snapshot
// and the ban journal since then.
func (s *Server) restore() error {
	if s.config.Data == "" {
		return nil
	}
	began := time.Now()
	restorer := s.engine.Restorer()
	dir, found, err := journal.Open(s.config.Data, journal.Restore{Snapshot: s.restoring(restorer), Journal: restorer.Ban})
	s.dir = dir
	if err = cmp.Or(err, restorer.Wait()); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	info, lines := found.Snapshot, found.Journal
	for _, problem := range info.Problems {
		s.log.Error("a snapshot is not used", "error", problem)
	}
	for _, problem := range lines.Problems {
		s.log.Error("ban journal", "error", problem)
	}
	s.storage.lost = lines.Missing
	dir.Journal().Notify(s.journalChanged)
	if s.store == nil {
		s.engine.Journal(dir.Journal())
	}
	written := "none"
	if !info.Written.IsZero() {
		s.saved.Store(info.Written.UnixNano())
		written = info.Written.UTC().Format(time.RFC3339)
	}
	n := restorer.Limits
	s.log.Info("state restored", "dir", s.config.Data, "snapshot", written, "keys", n.Keys, "bans", n.Bans, "expired", n.Expired,
		"without_rule", n.Unknown, "without_room", n.Refused, "counter_keys", restorer.Counts.Keys, "journal_records", lines.Records,
		"journal_records_lost", lines.Missing, "took", time.Since(began).Round(time.Microsecond).String())
	if restorer.Old > 0 {
		s.log.Warn("the snapshot is of an earlier version: bans are restored, counters begin empty", "records", restorer.Old)
	}
	if n.Unknown > 0 || n.Refused > 0 {
		s.log.Warn("keys and bans of the data directory are not in force: their rule is not in the rules file, has another key, or the memory limit is reached",
			"without_rule", n.Unknown, "without_room", n.Refused)
	}
	return nil
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
		if s.save() != nil { // it is in the log
			next = min(next, retrySnapshot)
		}
		timer.Reset(next)
	}
}

// save writes a snapshot.
func (s *Server) save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	missing := s.dir.Journal().Stats().Missing
	err := s.dir.WriteSnapshot(func(w *journal.SnapshotWriter) error {
		return s.saveLogs(w.Add)
	})
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
