package hotkey

import (
	"slices"
	"sync"
)

// caches are the caches of a Detector by rule, whatever their values are.
type caches struct {
	mu  sync.Mutex
	all map[string][]anyCache
}

type anyCache interface {
	Delete(key string)
	Stats() CacheStats
}

func (c *caches) add(rule string, cache anyCache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = make(map[string][]anyCache)
	}
	c.all[rule] = append(slices.Clip(c.all[rule]), cache)
}

// of returns the caches of a rule, which must not be changed.
func (c *caches) of(rule string) []anyCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[rule]
}

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
