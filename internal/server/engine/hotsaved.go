package engine

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/hotlist"
)

// A hotRecord is a hot key in a snapshot. The state of its detector is in other records.
type hotRecord struct {
	api.HotKey
	Raw   []byte    `json:"raw"` // the ID in the list
	Saved time.Time `json:"saved"`
}

// hotKey lists a key that is still hot.
func (r *Restorer) hotKey(data []byte) error {
	var was hotRecord
	if err := json.Unmarshal(data, &was); err != nil {
		return fmt.Errorf("record of a hot key: %w", err)
	}
	r.workers.Wait() // until the detectors are restored
	now := r.e.Now()
	h, err := r.e.rules.Load().hotNamed(was.Rule)
	if err != nil || len(was.Values()) != len(h.Key.Fields()) {
		return nil // of a rule that does not exist any more
	}
	if back := was.Saved.Sub(now); back > 0 { // the clock was set back: no hold lasts longer for it
		was.Since, was.Until = was.Since.Add(-back), was.Until.Add(-back)
	}
	k := hotlist.Entry{
		Rule: was.Rule, ID: string(was.Raw), Key: was.Key, Of: h, Since: was.Since, Until: was.Until, Hold: h.hold(), Hand: was.Hand,
		Lo: was.Lo, Hi: was.Hi - 1,
	}
	if was.Hi != 0 { // and so it is known
		k.Hi = was.Hi
	}
	if most := now.Add(k.Hold); k.Until.After(most) && !k.Hand {
		k.Until = most
	}
	if now.Before(k.Until) && h.stillHot(now, &k) {
		r.e.hot.Put(k)
	}
	return nil
}

// stillHot reports whether k is hot after a restart. The detector does not know a key that
// was cut: that one is hot until its time is over, and so is one that was added by hand.
func (h *hotRule) stillHot(now time.Time, k *hotlist.Entry) bool {
	if isCut(k) {
		return true
	}
	if k.Hand {
		return h.detector.SetHot(h.Name, k.ID, k.Until) == nil
	}
	count, hot := h.detector.HotAt(now, h.Name, k.ID)
	return hot || count.Lo >= h.Threshold
}

// ignore has a key ignored that was ignored by hand.
func (r *Restorer) ignore(data []byte) error {
	var was api.RuleKey
	if err := json.Unmarshal(data, &was); err != nil {
		return fmt.Errorf("record of an ignored key: %w", err)
	}
	r.workers.Wait() // until the detectors are restored
	if err := r.e.IgnoreHot(was.Rule, was.Values(), false); err != nil {
		r.e.log.Info("a key that was ignored by hand is counted again", "rule", was.Rule, "key", KeyText(was.Values()), "error", err)
	}
	return nil
}
