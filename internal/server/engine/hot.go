package engine

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/hotlist"
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
			count, _ := h.detector.HotAt(e.Now(), h.Name, k.ID)
			return count.Lo >= h.Threshold
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
	if len(names) == 0 {
		return nil, errorf(api.NoRule, "hot rule %.80q: unknown: there are none in the rules file", name)
	}
	return nil, errorf(api.NoRule, "hot rule %.80q: unknown: must be one of %s", name, strings.Join(names, ", "))
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
		e.hot.Add(k)
		e.hub.publish(api.Event{Type: api.KeyHot, Time: edges[i].Time, Rule: h.Name, Key: k.Key, Until: k.Until.UTC()})
	}
}

// entry returns the entry of a key that became hot. A key with a value that is cut has
// another ID than the detector knows.
func (h *hotRule) entry(edge *hotkey.Edge) hotlist.Entry {
	k := hotlist.Entry{Rule: h.Name, ID: edge.Key, Of: h, Since: edge.Time, Until: edge.Until, Hold: h.hold(), Lo: edge.Lo, Hi: edge.Hi}
	shown, cut := shown(h.Key.Values(edge.Key))
	k.Key = api.KeyOf(shown...)
	if cut {
		id, _ := h.Key.Rejoin(nil, shown...) // as many values as the key has, none empty
		k.ID = string(id)
	}
	return k
}

// hold returns how long a key stays hot.
func (h *hotRule) hold() time.Duration { return cmp.Or(h.Hold, h.Span) }

// isCut reports whether a value of k was cut, so that the detector does not know its ID.
func isCut(k *hotlist.Entry) bool {
	return slices.ContainsFunc(k.Key.Values(), func(v string) bool { return len(v) > MaxKey })
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

// listRules makes the list that of the rules in force: without the keys of others, and
// with those that are always hot.
func (e *Engine) listRules() {
	e.hot.Purge()
	now := e.Now()
	for _, h := range e.rules.Load().hot {
		for _, key := range h.Always {
			k := h.entry(&hotkey.Edge{Key: key, Time: now})
			k.Until = time.Time{}
			e.hot.Put(k)
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
		if !isCut(&k.Entry) {
			count, _ := h.detector.HotAt(now, h.Name, k.ID)
			k.Lo, k.Hi = count.Lo, count.Hi
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
