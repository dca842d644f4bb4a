package server

import (
	"context"
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/journal"
)

// restore opens the data directory, if there is one, and brings back what is in it:
// the newest snapshot that is whole, and what the ban journal says since.
func (s *Server) restore() error {
	if s.config.Data == "" {
		return nil
	}
	dir, err := journal.Open(s.config.Data)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	s.dir = dir
	began := time.Now()
	restorer := s.engine.Restorer()
	info, err := dir.ReadSnapshot(func(r journal.Record) error { return restorer.Record(r.Type, r.Data) })
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	for _, problem := range info.Problems {
		s.log.Error("a snapshot is not used", "error", problem)
	}
	lines, err := dir.ReadJournal(restorer.Ban)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	for _, problem := range lines.Problems {
		s.log.Error("ban journal", "error", problem)
	}
	s.engine.Journal(dir.Journal())
	written := "none"
	if !info.Written.IsZero() {
		s.saved.Store(info.Written.UnixNano())
		written = info.Written.UTC().Format(time.RFC3339)
	}
	s.log.Info("state restored", "dir", s.config.Data, "snapshot", written, "limits", restorer.Limits, "counts", restorer.Counts,
		"ban lines", lines.Records, "took", time.Since(began))
	return nil
}

// keepSaving writes a snapshot every so often, until ctx is done.
func (s *Server) keepSaving(ctx context.Context) {
	tick := time.NewTicker(s.config.SnapshotEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.save(); err != nil {
			s.log.Error("no snapshot; the one before stays", "error", err)
		}
	}
}

// save writes a snapshot.
func (s *Server) save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	err := s.dir.WriteSnapshot(func(w *journal.SnapshotWriter) error {
		return s.engine.Save(w.Add)
	})
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	s.saved.Store(time.Now().UnixNano())
	return nil
}
