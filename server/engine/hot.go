package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/hotkey"
)

// A HotKey is a key that has become hot.
type HotKey struct {
	Rule  string    `json:"rule"`
	Key   []string  `json:"key"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// hotKeys is the keys that became hot last: detectors know of each key whether it is
// hot, and have no list.
type hotKeys struct {
	mu  sync.Mutex
	all []listedKey
}

// keptHot is how many there are at most.
const keptHot = 1000

// A listedKey is a key with the rule under which it became hot.
type listedKey struct {
	HotKey
	by  *hotRule
	key string // as by counts it
}

// heated is told of keys that become hot under h.
func (e *Engine) heated(h *hotRule, edges []hotkey.Edge) {
	for i := range edges {
		edge := &edges[i]
		key := values(h.Key, edge.Key)
		e.list(listedKey{HotKey{Rule: h.Name, Key: key, Since: edge.Time, Until: edge.Until}, h, edge.Key})
		until := edge.Until // edges are used again
		e.hub.publish(Event{Type: Heated, Time: edge.Time, Rule: h.Name, Key: key, Until: &until})
	}
}

// list adds k to the hot keys, in place of the oldest if there is no room.
func (e *Engine) list(k listedKey) {
	e.hot.mu.Lock()
	defer e.hot.mu.Unlock()
	if len(e.hot.all) >= keptHot {
		e.cool()
		e.hot.all = slices.Delete(e.hot.all, 0, max(len(e.hot.all)-keptHot*9/10, 0))
	}
	e.hot.all = append(e.hot.all, k)
}

// cool forgets the keys that are not hot any more, and those of rules that are not
// in force any more.
//
// REQUIRES: e.hot.mu.
func (e *Engine) cool() {
	now, rules := e.now(), e.book.Load().hot
	e.hot.all = slices.DeleteFunc(e.hot.all, func(k listedKey) bool {
		return !k.Until.After(now) || !slices.Contains(rules, k.by)
	})
}

// listed returns the keys that are hot, in the order in which they became so.
func (e *Engine) listed() []listedKey {
	e.hot.mu.Lock()
	defer e.hot.mu.Unlock()
	e.cool()
	return slices.Clone(e.hot.all)
}

// Hot returns the keys that are hot, those that became so last first.
func (e *Engine) Hot() []HotKey {
	var hot []HotKey
	for _, k := range slices.Backward(e.listed()) {
		hot = append(hot, k.HotKey)
	}
	return hot
}

// A hotRecord is a hot key as it is saved, behind what its detector knows.
type hotRecord struct {
	Rule  string    `json:"rule"`
	Key   []byte    `json:"key"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Saved time.Time `json:"saved"`
}

// saveHot writes down which keys are hot.
func (e *Engine) saveHot(add func(typ byte, data []byte) error, now time.Time) error {
	for _, k := range e.listed() {
		data, err := json.Marshal(hotRecord{k.Rule, []byte(k.key), k.Since, k.Until, now})
		if err != nil {
			return err
		}
		if err := add(recordHotKey, data); err != nil {
			return err
		}
	}
	return nil
}

// hotKey lists a key that was hot, if its detector says that it still is.
func (r *Restorer) hotKey(data []byte) error {
	var was hotRecord
	if err := json.Unmarshal(data, &was); err != nil {
		return fmt.Errorf("record of a hot key: %w", err)
	}
	now := r.e.now()
	for _, h := range r.e.book.Load().hot {
		if h.Name != was.Rule || !h.detector.HotAt(now, 0, string(was.Key)) {
			continue
		}
		if back := was.Saved.Sub(now); back > 0 { // the clock was set back: no hold lasts longer for it
			was.Since, was.Until = was.Since.Add(-back), was.Until.Add(-back)
		}
		if most := now.Add(h.Hold); was.Until.After(most) {
			was.Until = most
		}
		r.e.list(listedKey{HotKey{h.Name, values(h.Key, string(was.Key)), was.Since, was.Until}, h, string(was.Key)})
	}
	return nil
}
