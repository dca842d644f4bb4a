package hotkey

import (
	"time"

	"github.com/lately-go/lately/internal/tally"
)

// A Detector counts what its own process uses. The methods of this file connect it to those
// of other processes; client.Fleet does so, and most callers need none of them.

// Forward adds all that d counts to a Tally, under the index of the rule in the Set and with
// the time of the event; events of keys that are hot are never urgent there. It costs each
// event about 20 ns. nil ends it, but calls under way may still add. A Detector has one
// Tally: the last. It is a method for client.Fleet alone, which has the only Tally: a type of
// other packages here would make each key of an event escape to the heap.
func (d *Detector) Forward(to *tally.Tally) {
	for i, t := range d.tables {
		if to == nil {
			t.forward.Store(nil)
		} else {
			t.forward.Store(&forward{i, to})
		}
	}
}

// A forward is where the events of a rule are added, too.
type forward struct {
	rule int
	to   *tally.Tally
}

// Now returns the time of d: the wall time when d was made plus the time since.
func (d *Detector) Now() time.Time { return nanos(d.now()) }

// Changed removes the value of key from all caches of the rule, as its source has another:
// their next use of the key loads it. A load that began before is not kept.
func (d *Detector) Changed(rule, key string) {
	for _, c := range d.caches.of(rule) {
		c.Delete(key)
	}
}

// CacheStats returns the statistics of all caches of a rule together.
func (d *Detector) CacheStats(rule string) (total CacheStats) {
	for _, c := range d.caches.of(rule) {
		s := c.Stats()
		total.Hits += s.Hits
		total.Misses += s.Misses
		total.Stale += s.Stale
		total.Loads += s.Loads
		total.Keys += s.Keys
		total.Bytes += s.Bytes
	}
	return total
}
