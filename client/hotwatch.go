package client

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/window"
)

// A hotID is a key as the Detector has it, under a rule.
type hotID struct{ rule, key string }

// A hotWatch is the state of the hot keys of a node, as it sent them.
type hotWatch struct {
	instance string
	version  uint64
	keys     map[hotID]struct{} // that are hot

	// While the parts of an update come:
	more  bool
	from  uint64
	fresh map[hotID]struct{} // of a reset: the keys so far
	seen  uint64             // of a reset: the version up to which changes were known
}

var errGap = errors.New("an update of the hot keys was lost")

// pushed applies an update from a node. After a gap it closes the connection: the next
// begins with all keys.
func (h *hot) pushed(n *node, values []resp.Value) {
	if len(values) != 3 || string(values[1].Text) != "hot" {
		return
	}
	var u api.HotUpdate
	err := json.Unmarshal(values[2].Text, &u)
	if err == nil {
		err = h.update(n, &u)
	}
	if p := n.hot.live.Load(); err != nil && p != nil {
		p.close(err)
	}
}

// update applies an update, or one part of it.
func (h *hot) update(n *node, u *api.HotUpdate) error {
	h.watching.Lock()
	defer h.watching.Unlock()
	w := &n.watch
	switch {
	case u.Reset:
		w.more, w.fresh, w.seen = false, make(map[hotID]struct{}), w.version
		if w.instance != u.Instance {
			// A node that was started again has no hot keys yet: they stay hot until their
			// hold ends.
			w.seen = 0
			clear(w.keys)
		}
	case u.Instance != w.instance, w.more && (u.From != w.from || w.fresh != nil && u.From != 0), !w.more && u.From != w.version:
		return errGap
	}
	w.instance, w.from, w.more = u.Instance, u.From, u.More
	for i := range u.Hot {
		h.heat(w, &u.Hot[i])
	}
	for i := range u.Changed {
		if id, ok := h.id(u.Changed[i].Rule, u.Changed[i].Key); ok {
			h.under(id.rule).Changed(id.key)
		}
	}
	for i := range u.Cold {
		if id, ok := h.id(u.Cold[i].Rule, u.Cold[i].Key); ok {
			h.cool(w, id)
		}
	}
	if u.More {
		return nil
	}
	if w.version = u.Version; w.fresh != nil {
		for id := range w.keys {
			if _, still := w.fresh[id]; !still {
				h.cool(w, id)
			}
		}
		w.keys, w.fresh = w.fresh, nil
		h.dropHolds()
	}
	return nil
}

// rule returns the rule of that name, or nil.
func (h *hot) rule(name string) *hotRule {
	for i := range h.rules {
		if h.rules[i].name == name {
			return &h.rules[i]
		}
	}
	return nil
}

// under returns the Detector's handle for a rule that it has.
func (h *hot) under(rule string) *hotkey.RuleDetector {
	r, err := h.d.Rule(rule)
	if err != nil {
		panic(err)
	}
	return r
}

// id returns a key as the Detector has it, if it has the rule.
func (h *hot) id(rule string, key api.Key) (hotID, bool) {
	r := h.rule(rule)
	if r == nil {
		return hotID{}, false
	}
	joined, err := keyvalue.Rejoin(r.key, nil, key.Values()...)
	return hotID{rule, string(joined)}, err == nil
}

// heat makes a key hot, and removes its value if that has changed while the node could not
// be heard.
func (h *hot) heat(w *hotWatch, k *api.HotKey) {
	id, ok := h.id(k.Rule, k.Key)
	if !ok {
		return
	}
	ttl := time.Duration(window.MaxSpan) // of keys that are always hot
	if k.TTL > 0 {
		ttl = k.TTL.Duration()
	}
	until := h.d.Now().Add(ttl)
	r := h.under(id.rule)
	_ = r.SetHot(id.key, until) // without memory for it, it is not
	h.became(id, until)
	if w.fresh == nil {
		w.keys[id] = struct{}{}
		return
	}
	w.fresh[id] = struct{}{}
	if k.Changed > w.seen {
		r.Changed(id.key)
	}
}

// cool makes a key not hot, unless it is hot on another node.
func (h *hot) cool(w *hotWatch, id hotID) {
	delete(w.keys, id)
	for _, n := range h.f.members.now() {
		if _, hot := n.watch.keys[id]; hot {
			return
		}
	}
	h.under(id.rule).Remove(id.key)
	h.became(id, time.Time{})
}
