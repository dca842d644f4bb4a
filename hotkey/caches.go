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
