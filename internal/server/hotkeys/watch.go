package hotkeys

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
)

// A Watcher receives the keys that are hot, and then each change; see the package. One
// goroutine at a time may use it.
type Watcher struct {
	l    *hotList
	rule string // "" for all
	seen uint64 // the version that it has
	sent uint64 // the version of the last update
	over bool
	any  bool // it has received an update
}

// watch returns a Watcher of a rule, or of all rules if rule is "".
func (l *hotList) watch(rule string) *Watcher {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Watchers++
	return &Watcher{l: l, rule: rule}
}

// Close ends the watch.
func (w *Watcher) Close() {
	if w.over {
		return
	}
	w.over = true
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.l.stats.Watchers--
}

// Wait returns a channel that is closed when there may be an update.
func (w *Watcher) Wait() <-chan struct{} {
	wake := *w.l.wake.Load()
	if !w.any || w.l.published.Load() > w.seen {
		return closed
	}
	return wake
}

// closed is a channel that is closed.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Next returns the next update, or nil if there is none yet. It is shared and must not be
// changed.
func (w *Watcher) Next() *Update {
	if w.any && w.l.published.Load() <= w.seen {
		return nil
	}
	u := w.l.update(w)
	w.any, w.seen = true, u.version
	if u.empty {
		return nil
	}
	w.sent = u.version
	u.encode.Do(u.write)
	return u
}

// update returns what w has to be sent.
func (l *hotList) update(w *Watcher) *Update {
	if w.any {
		l.mu.Lock()
	} else {
		l.lock() // a watch begins with what was added before it
	}
	defer l.unlock()
	if !w.any || w.seen < l.known {
		l.stats.Resets++
		return l.whole(w.rule)
	}
	at := span{w.rule, w.seen, w.sent}
	u := l.updates[at]
	if u == nil {
		u = l.since(at)
		l.updates[at] = u
	}
	if !u.empty {
		l.stats.Updates++
	}
	return u
}

// resetFor is how long an update with the whole state is passed to watchers that begin.
// The times left in it are that much too long.
const resetFor = 100 * time.Millisecond

// whole returns an update with all keys of a rule.
//
// REQUIRES: mu.
func (l *hotList) whole(rule string) *Update {
	now := l.now()
	if u := l.reset[rule]; u != nil && u.version >= l.known && now.Sub(u.made) < resetFor && !now.Before(u.made) {
		return u
	}
	u := &Update{instance: l.instance, rule: rule, version: l.version, reset: true, made: now}
	for e := l.order.Front(); e != nil; e = e.Next() {
		if n := e.Value.(*node); n.hot && (rule == "" || rule == n.Rule) {
			u.hot = append(u.hot, n.entry)
		}
	}
	l.reset[rule] = u
	return u
}

// A span is the changes under a rule after a version, for watchers that were sent an
// update of a version before.
type span struct {
	rule       string
	seen, sent uint64
}

// since returns an update with the changes in at.
//
// REQUIRES: mu, and at.seen is not below l.known.
func (l *hotList) since(at span) *Update {
	u := &Update{instance: l.instance, rule: at.rule, from: at.sent, version: l.version, made: l.now()}
	for e := l.order.Back(); e != nil; e = e.Prev() {
		n := e.Value.(*node)
		if n.version() <= at.seen {
			break
		}
		if at.rule != "" && at.rule != n.Rule {
			continue
		}
		switch {
		case n.touched <= at.seen:
		case n.hot:
			u.hot = append(u.hot, n.entry)
		default:
			u.cold = append(u.cold, n.entry)
		}
		if n.Changed > at.seen {
			u.changed = append(u.changed, n.entry)
		}
	}
	u.empty = len(u.hot)+len(u.cold)+len(u.changed) == 0
	return u
}

// publish wakes the watchers if there is something new, and returns how long the next
// publication has to wait, and the time until a key is due.
func (l *hotList) publish() (pause, due time.Duration) {
	now := l.lock()
	defer l.mu.Unlock()
	due = longest
	if n, ok := l.due.First(); ok {
		due = min(max(n.due.Sub(now), 0), longest)
	}
	if l.version == l.published.Load() {
		return 0, due
	}
	l.published.Store(l.version)
	clear(l.updates)
	for rule, u := range l.reset {
		if now.Sub(u.made) >= resetFor {
			delete(l.reset, rule)
		}
	}
	close(*l.wake.Swap(new(make(chan struct{}))))
	return max(leastPause, time.Duration(l.stats.Watchers)*watcherPause), due
}

const (
	leastPause   = 10 * time.Millisecond // between two publications
	watcherPause = 10 * time.Microsecond // for each watcher, so that thousands do not take all processors
	longest      = time.Second           // after which the keys are inspected if now is not of the system's clock
)

// run wakes watchers and removes keys whose time is over, until stop is closed: at once
// after an idle time, and then at most every 10 ms.
func (l *hotList) run(stop <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-l.signal:
		case <-timer.C:
		}
		pause, due := l.publish()
		if pause > 0 {
			timer.Reset(pause)
			select {
			case <-stop:
				return
			case <-timer.C:
			}
		}
		timer.Reset(due)
	}
}

// An Update is what changed from one version to another.
type Update struct {
	instance, rule string
	from, version  uint64
	reset, empty   bool
	made           time.Time

	encode             sync.Once
	hot, cold, changed []entry // until it is encoded
	parts              [][]byte
}

// Parts returns the update as one or more messages, each the JSON of an [api.HotUpdate].
func (u *Update) Parts() [][]byte { return u.parts }

const (
	// partBytes is about the length at which a message ends and the next one begins.
	partBytes = 64 << 10

	// keyBytes is about the length of a key that is hot in a message, without its values.
	keyBytes = 256
)

// write makes the messages of u.
func (u *Update) write() {
	var m api.HotUpdate
	size := 0
	begin := func() {
		m = api.HotUpdate{
			Instance: u.instance, From: u.from, Version: u.version, Rule: u.rule, Reset: u.reset && u.parts == nil,
			Hot: []api.HotKey{}, Cold: []api.RuleKey{}, Changed: []api.RuleKey{},
		}
		size = 0
	}
	end := func() {
		text, _ := json.Marshal(&m) // texts, numbers and times of this era have no errors
		u.parts = append(u.parts, text)
	}
	// next begins another message if e would make this one too long.
	next := func(e *entry) {
		n := keyBytes + len(e.ID)
		if size > 0 && size+n > partBytes {
			m.More = true
			end()
			begin()
		}
		size += n
	}
	begin()
	for i := range u.hot {
		next(&u.hot[i])
		m.Hot = append(m.Hot, u.hot[i].HotKey(u.made))
	}
	for i := range u.cold {
		next(&u.cold[i])
		m.Cold = append(m.Cold, u.cold[i].ruleKey())
	}
	for i := range u.changed {
		next(&u.changed[i])
		m.Changed = append(m.Changed, u.changed[i].ruleKey())
	}
	end()
	u.hot, u.cold, u.changed = nil, nil, nil
}
