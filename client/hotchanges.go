package client

import (
	"context"
	"iter"
	"time"
)

// A HotChange is a key that became hot in a fleet, or cold again.
type HotChange struct {
	Rule string
	Key  string // as the Detector has it
	Hot  bool   // false means cold
}

// expiryEvery is how often keys are looked for whose hold has ended without a message of a node.
const expiryEvery = time.Second

// HotChanges yields the keys that are hot in the fleet, and then each key that becomes hot, or cold
// again, until ctx is done or f is closed:
//
//	for change := range fleet.HotChanges(ctx) {
//		if change.Hot {
//			log.Printf("%s became hot", change.Key)
//		}
//	}
//
// The changes of a key alternate: hot, cold, hot. A slow loop may miss that a key became cold and
// hot again, but no final state: when the loop has caught up, the last change of each key is true,
// also after lost connections and restarted nodes. Memory is used for hot keys only.
//
// A key is hot while a connected node lists it. If a node is lost, its keys stay hot until their
// hold is over, within a second. Keys that this process detects alone, without a node, are not
// yielded: their [hotkey.Edge] is returned to the caller that counts them. Without
// FleetConfig.Detector there are no changes.
//
// No lock is held while the loop runs. Each of several concurrent loops receives all
// changes.
func (f *Fleet) HotChanges(ctx context.Context) iter.Seq[HotChange] {
	return func(yield func(HotChange) bool) {
		if f.hot == nil {
			return
		}
		w := f.hot.subscribe()
		defer f.hot.unsubscribe(w)
		ticker := time.NewTicker(expiryEvery)
		defer ticker.Stop()
		for expired := false; ; {
			for _, change := range f.hot.take(w, expired) {
				if ctx.Err() != nil || !yield(change) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-f.ctx.Done():
				return
			case <-w.wake:
				expired = false
			case <-ticker.C:
				expired = true
			}
		}
	}
}

// A hotWatcher is a loop over HotChanges. Its sets are guarded by hot.watching.
type hotWatcher struct {
	told  map[hotID]struct{} // hot, as the loop was last notified
	fresh map[hotID]struct{} // may have changed
	wake  chan struct{}      // fresh has one more
}

func (h *hot) subscribe() *hotWatcher {
	h.watching.Lock()
	defer h.watching.Unlock()
	w := &hotWatcher{told: make(map[hotID]struct{}), fresh: make(map[hotID]struct{}), wake: make(chan struct{}, 1)}
	for id := range h.holds {
		w.fresh[id] = struct{}{}
	}
	h.watchers[w] = struct{}{}
	return w
}

func (h *hot) unsubscribe(w *hotWatcher) {
	h.watching.Lock()
	defer h.watching.Unlock()
	delete(h.watchers, w)
}

// take returns what has changed since the last call, and with expired also keys whose hold is over.
func (h *hot) take(w *hotWatcher, expired bool) (changes []HotChange) {
	h.watching.Lock()
	defer h.watching.Unlock()
	if expired {
		for id := range w.told {
			w.fresh[id] = struct{}{}
		}
	}
	for id := range w.fresh {
		_, was := w.told[id]
		is := h.isHot(id)
		if is == was {
			continue
		}
		if is {
			w.told[id] = struct{}{}
		} else {
			delete(w.told, id)
		}
		changes = append(changes, HotChange{id.rule, id.key, is})
	}
	clear(w.fresh)
	return changes
}

// isHot reports whether a key is hot on a node that is connected, or its hold is not over.
//
// REQUIRES: h.watching.
func (h *hot) isHot(id hotID) bool {
	for _, n := range h.f.members.now() {
		if _, hot := n.watch.keys[id]; hot && n.hot.live.Load() != nil {
			return true
		}
	}
	return h.d.Now().Before(h.holds[id])
}

// became notifies the watchers that a key is hot, for a time, or is cold.
//
// REQUIRES: h.watching.
func (h *hot) became(id hotID, until time.Time) {
	if until.IsZero() {
		delete(h.holds, id)
	} else {
		h.holds[id] = until
	}
	for w := range h.watchers {
		if _, told := w.told[id]; told != until.IsZero() {
			delete(w.fresh, id) // it is what the loop knows
			continue
		}
		w.fresh[id] = struct{}{}
		select {
		case w.wake <- struct{}{}:
		default: // it is about to wake
		}
	}
}

// dropHolds drops the holds that are over, and that no node ends.
//
// REQUIRES: h.watching.
func (h *hot) dropHolds() {
	for id := range h.holds {
		if !h.isHot(id) {
			delete(h.holds, id)
		}
	}
}
