package engine

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
)

// hotKeys is the keys that became hot last, since detectors have no list.
type hotKeys struct {
	mu  sync.Mutex
	all []listedKey
}

// keptHot bounds their number.
const keptHot = 1000

// A listedKey is a key with the rule under which it became hot.
type listedKey struct {
	api.HotKey
	by  *hotRule
	key string // as by counts it; "" if a value is cut
}

// becameHot lists keys that became hot under h, and publishes events about them.
func (e *Engine) becameHot(h *hotRule, edges []hotkey.Edge) {
	for i := range edges {
		edge := &edges[i]
		key, cut := shown(values(h.Key, edge.Key))
		if cut {
			edge.Key = ""
		}
		e.list(listedKey{api.HotKey{Rule: h.Name, Key: api.KeyOf(key...), Since: edge.Time.UTC(), Until: edge.Until.UTC()}, h, edge.Key})
		e.hub.publish(api.Event{Type: api.KeyHot, Time: edge.Time, Rule: h.Name, Key: api.KeyOf(key...), Until: edge.Until.UTC()})
	}
}

// shown cuts the values of more than MaxKey bytes in place, so that clients cannot fill
// memory with hot keys. It reports whether there are any.
func shown(values []string) (_ []string, cut bool) {
	for i, v := range values {
		if len(v) <= MaxKey {
			continue
		}
		end := MaxKey
		for end > MaxKey-utf8.UTFMax && !utf8.RuneStart(v[end]) {
			end--
		}
		values[i] = fmt.Sprintf("%s… (%d bytes, SHA-256 %x)", v[:end], len(v), sha256.Sum256([]byte(v)))
		cut = true
	}
	return values, cut
}

// list adds k to the hot keys, in place of the oldest ones if there are too many.
func (e *Engine) list(k listedKey) {
	e.hot.mu.Lock()
	defer e.hot.mu.Unlock()
	if len(e.hot.all) >= keptHot {
		e.removeCold()
		e.hot.all = slices.Delete(e.hot.all, 0, max(len(e.hot.all)-keptHot*9/10, 0))
	}
	e.hot.all = append(e.hot.all, k)
}

// removeCold removes the keys that are no longer hot, and those of rules that are no
// longer in force.
//
// REQUIRES: e.hot.mu.
func (e *Engine) removeCold() {
	now, rules := e.Now(), e.rules.Load().hot
	e.hot.all = slices.DeleteFunc(e.hot.all, func(k listedKey) bool {
		return !k.Until.After(now) || !slices.Contains(rules, k.by)
	})
}

// listed returns the keys that are hot, in the order in which they became hot.
func (e *Engine) listed() []listedKey {
	e.hot.mu.Lock()
	defer e.hot.mu.Unlock()
	e.removeCold()
	return slices.Clone(e.hot.all)
}

// Hot returns the keys that are hot, those that became hot last first.
func (e *Engine) Hot() []api.HotKey {
	hot := []api.HotKey{}
	for _, k := range slices.Backward(e.listed()) {
		hot = append(hot, k.HotKey)
	}
	return hot
}

// A hotRecord is a hot key in a snapshot. The state of its detector is in other records.
type hotRecord struct {
	api.HotKey
	Raw   []byte    `json:"raw"` // as the rule counts it
	Cut   bool      `json:"cut,omitempty"`
	Saved time.Time `json:"saved"`
}

// saveHot writes records of the hot keys.
func (e *Engine) saveHot(add func(typ byte, data []byte) error, now time.Time) error {
	for _, k := range e.listed() {
		if err := addJSON(add, recordHotKey, hotRecord{k.HotKey, []byte(k.key), k.key == "", now}); err != nil {
			return err
		}
	}
	return nil
}

// hotKey lists a key that is still hot. The detector does not know a key that was cut: that
// one is hot until its hold is over.
func (r *Restorer) hotKey(data []byte) error {
	var was hotRecord
	if err := json.Unmarshal(data, &was); err != nil {
		return fmt.Errorf("record of a hot key: %w", err)
	}
	r.workers.Wait() // until the detectors are restored
	now := r.e.Now()
	for _, h := range r.e.rules.Load().hot {
		if h.Name != was.Rule || len(was.Values()) != len(h.Key.Fields()) {
			continue
		}
		_, hot := h.detector.HotAt(now, h.Name, string(was.Raw))
		if was.Cut {
			hot = now.Before(was.Until)
		}
		if !hot {
			continue
		}
		if back := was.Saved.Sub(now); back > 0 { // the clock was set back: no hold lasts longer for it
			was.Since, was.Until = was.Since.Add(-back), was.Until.Add(-back)
		}
		if most := now.Add(h.Hold); was.Until.After(most) {
			was.Until = most
		}
		r.e.list(listedKey{was.HotKey, h, string(was.Raw)})
	}
	return nil
}

// HotStats yields the names and the statistics of the hot rules in force.
func (e *Engine) HotStats() iter.Seq2[string, hotkey.Stats] {
	return func(yield func(string, hotkey.Stats) bool) {
		for _, h := range e.rules.Load().hot {
			if !yield(h.Name, h.detector.Stats(h.Name)) {
				return
			}
		}
	}
}
