package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// saveReservations adds the records about reservations. They are behind those of the limits: an id is remembered as settled
// before its charge is corrected, so they have all that the limits have.
func (e *Engine) saveReservations(w *state.Writer, began time.Time) error {
	w.Chunks(state.Settled, nil, func(yield func([]byte) bool) { e.settled.export(began, yield) })
	data, err := e.lives.record(began, e.Now())
	w.Record(state.Lives, data)
	return err
}

// Save adds records of the counts, the bans and the history of rates, for the Restorer of
// another engine. It does not block decisions. Times are relative to now, the present: if nothing has
// changed since, records for the same time are the same, but for the history.
func (e *Engine) Save(now time.Time, add func(typ byte, data []byte) error) error {
	w := state.NewWriter(add)
	w.Chunks(state.Limits, nil, e.limiter.Export(now))
	if !e.Shared() {
		if err := e.saveReservations(w, now); err != nil {
			return err
		}
	}
	w.Chunks(state.Caller, nil, e.throttle.Export(now))
	e.hot.Save(w, now)
	w.Chunks(state.History, nil, e.history.Export())
	e.counters.Save(w, now)
	e.banMu.Lock()
	ended := slices.Collect(e.ended.left())
	e.banMu.Unlock()
	for _, b := range ended {
		w.JSON(state.Ended, b)
	}
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
	switch record.Type {
	case state.Limits:
		if r.e.Shared() {
			r.Unshared++
			return nil
		}
		return r.loader.Load(&r.Limits, data, r.e.limiter.Import)
	case state.Ban:
		return r.ban(data)
	case state.Ended:
		return r.ended(data)
	case state.Counts:
		return r.e.counters.Restore(r.loader, &r.Counts, data)
	case state.Settled:
		return r.e.settled.restore(r.e.Now(), data)
	case state.Lives:
		return r.e.lives.restore(r.e.Now(), data)
	case state.Caller:
		return r.loader.Load(new(window.Imported), data, r.e.throttle.Import)
	case state.Hot, state.HotKey, state.HotUses, state.Ignored:
		return r.e.hot.Restore(r.loader, record)
	case state.History:
		return r.e.history.Import(data)
	}
	return fmt.Errorf("record of the unknown type %q", record.Type)
}

// Wait returns when all records have been restored.
func (r *Restorer) Wait() error { return r.loader.Wait() }

// ended restores the end of a ban by hand.
func (r *Restorer) ended(data []byte) error {
	var b endedBan
	if err := json.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("record of the end of a ban: %w", err)
	}
	r.e.banMu.Lock()
	defer r.e.banMu.Unlock()
	r.e.ended.add(b)
	return nil
}

// endedByHand restores the end of a ban that holds, or that lines which are judged again will begin.
func (e *Engine) endedByHand(b endedBan) {
	if now := e.Now(); b.End.After(now) { // the clock was set back
		b.End = now
	}
	held, ok, err := e.limiter.Bans().Get(b.Rule, b.Key...)
	if err != nil { // the rule is gone, or has another key
		return
	}
	if ok && slices.Equal(held.Key, b.Key) { // else it is that of a network around the key
		e.endAt(held, b.End)
	} else {
		_, _ = e.limiter.Bans().Remove(b.Rule, b.Key...) // its error is that of Get
	}
	e.banMu.Lock()
	defer e.banMu.Unlock()
	e.ended.add(b)
}

// ban restores a line of the ban journal, which is behind the records of the snapshot.
func (r *Restorer) ban(data []byte) error {
	if err := r.Wait(); err != nil {
		return err
	}
	var line banLine
	if err := json.Unmarshal(data, &line); err != nil {
		return fmt.Errorf("line of the ban journal: %w", err)
	}
	if r.e.Shared() {
		r.Unshared++
		return nil
	}
	l := r.e.limiter
	if ended := line.Unban; ended != nil {
		r.e.endedByHand(endedBan{ended.Rule, ended.Key, ended.Until})
		return nil
	}
	if line.Ban == nil {
		return errors.New("line of the ban journal has neither a ban nor the end of one")
	}
	b := *line.Ban
	if now := l.Now(); b.Since.After(now) { // the clock was set back: no ban lasts longer for it
		b.Since, b.Until = now, now.Add(b.Until.Sub(b.Since))
	}
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	_, err = l.Bans().Import(bytes.NewReader(append(text, '\n')))
	if err != nil && !errors.Is(err, ratelimit.ErrBansFull) { // which is as it would be live
		r.e.log.Warn("a ban of the journal is left out", "rule", b.Rule, "key", keys.Text(b.Key), "error", err)
	}
	return nil
}

// Journal sets the journal to which later changes of bans are appended.
func (e *Engine) Journal(j *journal.Journal) {
	e.banMu.Lock()
	defer e.banMu.Unlock()
	e.journal = j
}
