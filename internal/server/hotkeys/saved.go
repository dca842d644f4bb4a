package hotkeys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/window"
)

// Save adds records of the counts, of the keys that are hot and were hot, and of those that are ignored by hand.
func (k *Keys) Save(w *state.Writer, now time.Time) {
	for _, r := range *k.rules.Load() {
		w.Chunks(state.Hot, []byte(r.Name+"\x00"), r.detector.ExportAt(now))
	}
	for _, e := range k.list.all("") {
		if !e.always() { // else the rules file has it
			w.JSON(state.HotKey, savedKey{e.HotKey(now), []byte(e.ID), now})
		}
	}
	w.Chunks(state.HotUses, nil, k.past.uses.ExportAt(now))
	for _, key := range *k.ignored.Load() {
		w.JSON(state.Ignored, key)
	}
}

// Restore restores a record that Save has added. Records of rules that do not exist any more are left out.
func (k *Keys) Restore(l *state.Loader, record journal.Record) error {
	switch record.Type {
	case state.Hot:
		name, chunk, _ := bytes.Cut(record.Data, []byte{0})
		if r, err := k.rules.Load().named(string(name)); err == nil {
			return l.Load(new(window.Imported), chunk, r.detector.ImportAt)
		}
		return nil
	case state.HotUses:
		return l.Load(new(window.Imported), record.Data, k.past.uses.ImportAt)
	}
	if err := l.Wait(); err != nil { // for the detectors
		return err
	}
	if record.Type == state.HotKey {
		return k.restoreKey(record.Data)
	}
	return k.restoreIgnored(record.Data)
}

// A savedKey is a hot key in a snapshot. The state of its detector is in other records.
type savedKey struct {
	api.HotKey
	Raw   []byte    `json:"raw"` // the ID in the list
	Saved time.Time `json:"saved"`
}

// restoreKey lists a key that is still hot.
func (k *Keys) restoreKey(data []byte) error {
	var was savedKey
	if err := json.Unmarshal(data, &was); err != nil {
		return fmt.Errorf("record of a hot key: %w", err)
	}
	now := k.config.Now()
	r, err := k.rules.Load().named(was.Rule)
	if err != nil || len(was.Values()) != r.fields {
		return nil // of a rule that does not exist any more
	}
	if back := was.Saved.Sub(now); back > 0 { // the clock was set back: no hold lasts longer for it
		was.Since, was.Until = was.Since.Add(-back), was.Until.Add(-back)
	}
	e := entry{
		Rule: was.Rule, ID: string(was.Raw), Key: was.Key, of: r, Since: was.Since, Until: was.Until, Hold: r.hold(), Hand: was.Hand,
		Lo: was.Lo, Hi: was.Hi,
	}
	if most := now.Add(e.Hold); e.Until.After(most) && !e.Hand {
		e.Until = most
	}
	if now.Before(e.Until) && r.stillHot(now, &e) {
		k.list.add(e)
	}
	return nil
}

// stillHot reports whether e is hot after a restart. The detector does not know a key that
// was cut: that one is hot until its time is over, and so is one that was added by hand.
func (r *hotRule) stillHot(now time.Time, e *entry) bool {
	if e.isCut() {
		return true
	}
	if e.Hand {
		return r.keys.SetHot(e.ID, e.Until) == nil
	}
	count, hot := r.keys.HotAt(now, e.ID)
	return hot || count.Lo >= r.Threshold
}

// restoreIgnored has a key ignored that was ignored by hand.
func (k *Keys) restoreIgnored(data []byte) error {
	var was api.RuleKey
	if err := json.Unmarshal(data, &was); err != nil {
		return fmt.Errorf("record of an ignored key: %w", err)
	}
	if err := k.Ignore(was.Rule, was.Values(), false); err != nil {
		k.config.Log.Info("a key that was ignored by hand is counted again", "rule", was.Rule, "key", keys.Text(was.Values()), "error", err)
	}
	return nil
}
