package engine

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/window"
)

// Save adds records of the counts, the bans and the history of rates, for the Restorer of
// another engine. It does not block decisions. Times are relative to now, the present: if nothing has
// changed since, records for the same time are the same, but for the history.
func (e *Engine) Save(now time.Time, add func(typ byte, data []byte) error) error {
	w := state.NewWriter(add)
	w.Chunks(state.Limits, nil, e.limiter.ExportAt(now))
	if !e.Shared() { // behind the limits: an id is settled before its charge is corrected, so these records have all that the limits have
		e.settled.Save(w, now)
		e.lives.Save(w, now, e.Now())
	}
	w.Chunks(state.Caller, nil, e.throttle.ExportAt(now))
	w.Chunks(state.Crawler, nil, e.crawlers.ExportAt(now))
	e.hot.Save(w, now)
	w.Chunks(state.History, nil, e.history.Export())
	e.counters.Save(w, now)
	e.bans.Save(w)
	return w.Err()
}

// A Restorer restores records that Save added, in their order, before the first decision;
// call Wait in the end. Records of rules and counters that no longer exist are left out.
// Rules that have changed keep their counts as in a reload.
//
// Chunks are imported by several goroutines, so the error of a chunk may be returned by a later call of Record, or by Wait.
type Restorer struct {
	e      *Engine
	loader *state.Loader

	Limits, Counts window.Imported
	Unshared       int // records of limits and bans, which are left out because they are in a store
}

// Restorer returns a Restorer for e.
func (e *Engine) Restorer() *Restorer { return &Restorer{e: e, loader: state.NewLoader(e.Now)} }

// Record restores one record.
func (r *Restorer) Record(record journal.Record) error {
	if err := r.loader.Err(); err != nil {
		return err
	}
	data := record.Data
	if r.e.Shared() && (record.Type == state.Limits || record.Type == state.Ban) {
		r.Unshared++
		return nil
	}
	switch record.Type {
	case state.Limits:
		return r.loader.Load(&r.Limits, data, r.e.limiter.ImportAt)
	case state.Ban:
		if err := r.Wait(); err != nil {
			return err
		}
		return r.e.bans.RestoreLine(data)
	case state.Ended:
		return r.e.bans.RestoreEnded(data)
	case state.Counts:
		return r.e.counters.Restore(r.loader, &r.Counts, data)
	case state.Settled:
		return r.e.settled.Restore(r.e.Now(), data)
	case state.Lives:
		return r.e.lives.Restore(r.e.Now(), data)
	case state.Crawler:
		all, err := r.e.crawlers.ImportAt(r.e.Now(), data)
		if err != nil {
			return err
		}
		r.e.exempt(all, nil)
		return nil
	case state.Caller:
		return r.loader.Load(new(window.Imported), data, r.e.throttle.ImportAt)
	case state.Hot, state.HotKey, state.HotUses, state.Ignored:
		return r.e.hot.Restore(r.loader, record)
	case state.History:
		return r.e.history.Import(data)
	}
	return fmt.Errorf("record of the unknown type %q", record.Type)
}

// Wait returns when all records have been restored.
func (r *Restorer) Wait() error { return r.loader.Wait() }
