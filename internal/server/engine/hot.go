package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/hotlist"
	"github.com/lately-go/lately/internal/server/keys"
)

// listShare is which share of the budget of hot rules is for the list of keys that are
// hot.
const listShare = 16

// newHotList returns the list of the keys that are hot. Detectors have none.
func newHotList(e *Engine) *hotlist.List {
	return hotlist.New(hotlist.Config{
		Budget: e.config.HotBudget / listShare, Now: e.Now,
		InForce: func(k *hotlist.Entry) bool { return slices.Contains(e.rules.Load().hot, k.Of.(*hotRule)) },
		Busy: func(k *hotlist.Entry) bool {
			h := k.Of.(*hotRule)
			lo, _ := h.count(e.Now(), k.ID)
			return lo >= h.Threshold
		},
	})
}

// hotNamed returns the hot rule of that name, or an error.
func (r *ruleSet) hotNamed(name string) (*hotRule, error) {
	for _, h := range r.hot {
		if h.Name == name {
			return h, nil
		}
	}
	names := make([]string, len(r.hot))
	for i, h := range r.hot {
		names[i] = h.Name
	}
	return nil, apierror.Unknown(api.NoRule, "hot rule", name, names)
}

// becameHot lists keys that became hot under h, and publishes events about them. Events of
// logs may make keys hot for a time that is over.
func (e *Engine) becameHot(h *hotRule, edges ...hotkey.Edge) {
	now := e.Now()
	for i := range edges {
		if edges[i].Until.Before(now) {
			continue
		}
		k := h.entry(&edges[i])
		e.addHot(&k)
	}
}

// addHot lists a key that became hot, and publishes an event about it.
func (e *Engine) addHot(k *hotlist.Entry) {
	e.hot.Add(*k)
	e.events.Publish(api.Event{Type: api.KeyHot, Time: k.Since, Rule: k.Rule, Key: k.Key, Until: k.Until.UTC()})
}

// entry returns the entry of a key that became hot. A key with a value that is cut has
// another ID than the detector knows.
func (h *hotRule) entry(edge *hotkey.Edge) hotlist.Entry {
	k := hotlist.Entry{Rule: h.Name, ID: edge.Key, Of: h, Since: edge.Time, Until: edge.Until, Hold: h.hold(), Lo: edge.Lo, Hi: known(edge.Hi)}
	shown, cut := shown(h.Key.Values(edge.Key))
	k.Key = api.KeyOf(shown...)
	if cut {
		id, _ := h.Key.Rejoin(nil, shown...) // as many values as the key has, none empty
		k.ID = string(id)
	}
	return k
}

// count returns the bounds of the number of events of a key in the span of h. hi is 0 if it is
// unknown.
func (h *hotRule) count(now time.Time, key string) (lo, hi uint64) {
	count, _ := h.keys.HotAt(now, key)
	return count.Lo, known(count.Hi)
}

// known returns hi, or 0 if a detector does not know it.
func known(hi uint64) uint64 {
	if hi == math.MaxUint64 {
		return 0
	}
	return hi
}

// hold returns how long a key stays hot.
func (h *hotRule) hold() time.Duration { return cmp.Or(h.Hold, h.Span) }

// isCut reports whether a value of k was cut, so that the detector does not know its ID.
func isCut(k *hotlist.Entry) bool {
	return slices.ContainsFunc(k.Key.Values(), func(v string) bool { return len(v) > keys.Max })
}

// shown cuts the values of more than keys.Max bytes in place, so that clients cannot fill
// memory with hot keys. It reports whether there are any.
func shown(values []string) (_ []string, cut bool) {
	for i, v := range values {
		if len(v) <= keys.Max {
			continue
		}
		end := keys.Max
		for end > keys.Max-utf8.UTFMax && !utf8.RuneStart(v[end]) {
			end--
		}
		values[i] = fmt.Sprintf("%s… (%d bytes, SHA-256 %x)", v[:end], len(v), sha256.Sum256([]byte(v)))
		cut = true
	}
	return values, cut
}

// listRules makes the list that of the rules in force: without the keys of others, and
// with those that are always hot.
func (e *Engine) listRules() {
	e.hot.Purge()
	now := e.Now()
	for _, h := range e.rules.Load().hot {
		for _, key := range h.Always {
			k := h.entry(&hotkey.Edge{Key: key, Time: now})
			k.Until = time.Time{}
			e.hot.Add(k)
		}
	}
}

// Hot returns the keys that are hot under a rule, or under all if rule is "", with their
// present counts, those that became hot last first.
func (e *Engine) Hot(rule string) ([]api.HotKey, error) {
	if rule != "" {
		if _, err := e.rules.Load().hotNamed(rule); err != nil {
			return nil, err
		}
	}
	now, keys, processes := e.Now(), []api.HotKey{}, e.past.count(e.Now())
	for _, k := range slices.Backward(e.hot.All(rule)) {
		h := k.Of.(*hotRule)
		if !isCut(&k) {
			k.Lo, k.Hi = h.count(now, k.ID)
		}
		key := k.HotKey(now)
		key.Rate = h.rate(k.Lo)
		key.Processes = processes[string(appendHotID(nil, k.Rule, k.ID))]
		keys = append(keys, key)
	}
	return keys, nil
}

// WatchHot returns a watcher of the keys that are hot under a rule, or under all if rule
// is "".
func (e *Engine) WatchHot(rule string) (*hotlist.Watcher, error) {
	if rule != "" {
		if _, err := e.rules.Load().hotNamed(rule); err != nil {
			return nil, err
		}
	}
	return e.hot.Watch(rule), nil
}

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
		Lo: was.Lo, Hi: was.Hi,
	}
	if most := now.Add(k.Hold); k.Until.After(most) && !k.Hand {
		k.Until = most
	}
	if now.Before(k.Until) && h.stillHot(now, &k) {
		r.e.hot.Add(k)
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
		return h.keys.SetHot(k.ID, k.Until) == nil
	}
	count, hot := h.keys.HotAt(now, k.ID)
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
		r.e.log.Info("a key that was ignored by hand is counted again", "rule", was.Rule, "key", keys.Text(was.Values()), "error", err)
	}
	return nil
}
