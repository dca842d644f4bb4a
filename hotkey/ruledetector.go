package hotkey

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/rule/spelling"
)

// A RuleDetector counts keys under one rule of a [Detector], whatever the Key and When of
// the rule. Most callers need [RuleDetector.Add]. It is safe for concurrent use.
// [Detector.Rule] returns one.
type RuleDetector struct {
	d     *Detector
	table *table
	i     int // of the rule
}

// Rule returns a handle for the rule of that name. For an unknown name the error has the rule
// that was probably meant, or some existing rules. Rule does not allocate.
func (d *Detector) Rule(name string) (*RuleDetector, error) {
	i, ok := d.index(name)
	if !ok {
		var rules []string
		for i := range d.rules {
			rules = append(rules, d.rules[i].Name)
		}
		message, _ := spelling.UnknownRule(name[:min(len(name), 64)], rules)
		return nil, errors.New("hotkey: " + message)
	}
	return &d.judges[i], nil
}

// fewRules is how many rules are found sooner one by one than in a map.
const fewRules = 4

// index returns the index of the rule of that name, and whether there is one.
func (d *Detector) index(name string) (i int, ok bool) {
	if len(d.rules) > fewRules {
		i, ok = d.names[name]
		return i, ok
	}
	for i := range d.rules {
		if d.rules[i].Name == name {
			return i, true
		}
	}
	return 0, false
}

// Add counts an event of key now, and returns the edge if the key becomes hot. It returns
// [ErrNever] or [ErrNoMemory] if it counted nothing.
func (r *RuleDetector) Add(key string) (edge Edge, hot bool, err error) {
	c, err := r.d.count(r.i, unread, key, 1, &edge)
	return edge, c.hot, err
}

// AddAt counts n events of key at time t; see [RuleDetector.Add]. If the key is already hot,
// hot is false, and only Until of the Edge is set: the end of the hold.
func (r *RuleDetector) AddAt(t time.Time, key string, n uint64) (edge Edge, hot bool, err error) {
	c, err := r.d.count(r.i, keytable.Nanos(t, maxSpan), key, n, &edge)
	if !c.hot && c.now < c.until {
		edge.Until = nanos(c.until)
	}
	return edge, c.hot, err
}

// SetHot makes key hot until a time, for any count, unless it is already hot for
// longer. It returns no Edge: an operator or another Detector has decided. Events
// still count, and the first event after that time that finds the key at or above
// the threshold returns an Edge. A key in Always stays hot.
//
// It returns [ErrNever] or [ErrNoMemory] if the key cannot be kept.
func (r *RuleDetector) SetHot(key string, until time.Time) error {
	if always, listed := r.table.listing(key); listed {
		if !always {
			return ErrNever
		}
		return nil
	}
	if len(key) > maxKey {
		return errKeyTooLong
	}
	stored := r.d.stored(key)
	hash := r.table.Hash(stored)
	rec, state := r.table.LockOrAddAt(r.table.Prefetch(hash), hash, stored)
	if state != keytable.Found {
		rec, state = r.table.begin(rec, state, hash, stored, len(key) > maxWhole, r.d.now())
	}
	if state == keytable.NoMemory {
		return ErrNoMemory
	}
	defer rec.Unlock()
	w := rec.Words()
	w[wordUntil] = max(w[wordUntil], keytable.Stamp(keytable.Nanos(until, maxSpan)))
	return nil
}

// SetNever sets whether key is never counted, as [Rule].Never does from the start. A hot
// key is then no longer hot. It is meant for some hundred keys: each call copies the list.
// It returns an error, and changes nothing, if the rule itself lists the key in Always or
// Never.
func (r *RuleDetector) SetNever(key string, never bool) error {
	rule := r.table.rule
	if slices.Contains(rule.Always, key) || slices.Contains(rule.Never, key) {
		return fmt.Errorf("hotkey: rule %q lists the key in always or never: change the rule", rule.Name)
	}
	r.table.list(key, never)
	if never {
		r.Remove(key)
	}
	return nil
}

// Remove deletes the events and the hold of key.
func (r *RuleDetector) Remove(key string) { r.table.reset(r.d.stored(key)) }

// Hot reports whether key is hot now, and how many events it has.
func (r *RuleDetector) Hot(key string) (KeyCount, bool) { return r.hotAt(r.d.now(), key) }

// HotAt reports whether key is hot at time t, and how many events it has. As with events, a
// t earlier than the newest event of the key is taken as the time of that event.
func (r *RuleDetector) HotAt(t time.Time, key string) (KeyCount, bool) {
	return r.hotAt(keytable.Nanos(t, maxSpan), key)
}

func (r *RuleDetector) hotAt(now int64, key string) (KeyCount, bool) {
	k, hot := r.table.inspect(r.d.stored(key), now)
	k.Key = key
	if always, ok := r.table.listing(key); ok {
		return k, always
	}
	return k, hot
}

// hotUntil returns the end of the last hold of key; it is in the past if there was none.
func (r *RuleDetector) hotUntil(key string) int64 { return r.table.hotUntil(r.d, key) }

// Stats are the numbers of events and keys of one rule of a [Detector].
type Stats struct {
	Keys  int   // keys counted
	Bytes int64 // memory of the Detector, for all its rules together

	Events  uint64 // events counted
	Late    uint64 // of these, events that were counted at a later time than their own
	Evicted uint64 // keys that were evicted because the budget was spent
	Refused uint64 // calls for new keys that counted nothing, because no key could be evicted
	Lost    uint64 // calls after which events of their key stopped counting early, because memory was full

	Cache CacheStats // of all caches of the rule together
}

// Stats returns the statistics of the rule.
func (r *RuleDetector) Stats() Stats {
	t := r.table
	gone := t.Table.Stats()
	s := Stats{Keys: t.Len(), Bytes: r.d.budget.Used() - r.d.reserved(), Evicted: gone.Evicted, Refused: gone.Refused}
	for i := range t.counts {
		c := &t.counts[i]
		s.Events += c.events.Load()
		s.Late += c.late.Load()
		s.Lost += c.lost.Load()
	}
	for _, c := range r.d.caches.of(t.rule.Name) {
		s.Cache.add(c.Stats())
	}
	return s
}

// Changed removes the value of key from all caches of the rule, because the value at its
// source has changed: their next use of the key loads it. A load that began before is not
// kept.
func (r *RuleDetector) Changed(key string) {
	for _, c := range r.d.caches.of(r.table.rule.Name) {
		c.Delete(key)
	}
}
