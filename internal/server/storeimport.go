package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/window"
)

const (
	// importWait is how long the listeners wait for the import: clients that connect wait with them.
	// Then they serve, while it goes on.
	importWait = time.Minute

	importRetry    = 2 * time.Second
	importProgress = 5 * time.Second // between lines of the log
)

// importBefore imports what the data directory has before the listeners serve, so that no client finds a
// limit unused, unless the store fails or it takes very long.
func (s *Server) importBefore(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, importWait)
	defer cancel()
	if err := s.importLimits(bounded); err != nil && ctx.Err() == nil {
		s.log.Error("limits and bans of the data directory are not in the store yet: trying again; until then the server is not ready", "error", storeText(err))
	}
}

// keepImporting tries again until all was imported, or ctx is done.
func (s *Server) keepImporting(ctx context.Context) {
	for s.engine.Importing() && wait.For(ctx, importRetry) == nil {
		if err := s.importLimits(ctx); err != nil && ctx.Err() == nil {
			s.store.log.Warn("limits and bans of the data directory are not in the store yet", "error", storeText(err))
		}
	}
}

// importLimits adds the limits and bans of the data directory to the store, unless it has them. A snapshot
// before has the id of the import, so that none is added twice by another one, after a crash. The snapshot
// after it has no limits and bans: nothing is imported at the next start.
func (s *Server) importLimits(ctx context.Context) error {
	if s.store == nil || !s.engine.Importing() {
		return nil
	}
	if s.store.opened.Load() == nil {
		return errNotReached
	}
	if err := s.save(); err != nil {
		return fmt.Errorf("the import is not begun: %w", err)
	}
	began, told := time.Now(), time.Now()
	var all window.Imported
	for done, err := range s.engine.Import(ctx) {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if all = done; time.Since(told) >= importProgress {
			told = time.Now()
			s.log.Info("importing limits and bans of the data directory", "keys", all.Keys, "bans", all.Bans, "imported_before", all.Kept)
		}
	}
	s.log.Info("limits and bans of the data directory are in the store", "keys", all.Keys, "bans", all.Bans, "imported_before", all.Kept,
		"expired", all.Expired, "without_rule", all.Unknown, "too_long", all.Long, "took", time.Since(began).Round(time.Millisecond).String())
	if all.Unknown > 0 {
		s.log.Warn("keys and bans of the data directory are left out: their rule is not in the rules file any more, or has another key", "without_rule", all.Unknown)
	}
	if all.Long > 0 {
		s.log.Warn("keys and bans of the data directory are left out: their values have more than a kibibyte together, and the directory has only their digests", "too_long", all.Long)
	}
	if err := s.save(); err != nil { // which is in /readyz too, and tried again
		s.log.Error("the data directory still has the limits and bans that were imported: the next start adds none of them again", "error", storeText(err))
	}
	return nil
}
