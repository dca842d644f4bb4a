package hotkey

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// A Cache keeps the values of hot keys in this process, so that they are loaded once per
// process and renewal instead of once per use. Most callers need [Cache.Get] alone. The rule
// sets how long a value is kept; see [CachePolicy].
//
// Get counts a use of the key under the rule. While the key is not hot, it calls
// Load. When the key is hot, it returns the value that is kept. The first use
// without a value loads it, and all others wait for that one load. Between 80 and
// 95 % of the TTL, at random for each value, the next use starts one load beside
// it; until that load ends, all callers get the old value. A load that fails
// changes nothing: the value is used until its MaxAge, and the next load is tried a
// tenth of the TTL later. No value is older than MaxAge, and a renewal never leaves
// a key without a value.
//
// A value that was stored by Set, or removed by Delete, is never replaced by a load
// that began before.
//
// Values are kept while their key is hot, at most MaxBytes of them by Size. Beyond
// that, values that were not used lately are removed.
//
// A use of a hot key costs two look-ups and does not allocate. A Cache has
// goroutines only while it loads. It is safe for concurrent use. The zero
// Cache is not usable; call [NewCache].
type Cache[V any] struct {
	rule    *RuleDetector
	policy  CachePolicy
	config  CacheConfig[V]
	entries entries[V]
}

// CacheConfig configures a [Cache].
type CacheConfig[V any] struct {
	// Rule is the name of the rule under which keys are counted. It must have a
	// Cache. Required.
	Rule string

	// Load returns the value of a key from its source. An error that wraps ErrAbsent
	// means that the key has no value, and is kept like a value; other errors are not
	// kept. The context of a load for a hot key, whose result is for all callers, has
	// the values of the first caller's but not its end: Load must bound its own time.
	// A panic becomes an error if the key is hot. Required.
	Load func(ctx context.Context, key string) (V, error)

	// Size returns the bytes of a value. Required if the rule has MaxBytes.
	Size func(V) int
}

// A CachePolicy bounds the age and the size of the values that a [Cache] keeps for a rule.
type CachePolicy struct {
	// TTL is the age by which a value should be renewed, from 1 ms to ten
	// years of 365 days. Required.
	TTL time.Duration

	// MaxAge is the age up to which a value is used if it cannot be renewed,
	// from TTL to ten years. 0 means TTL.
	MaxAge time.Duration

	// MaxBytes bounds the keys and values that are kept, in bytes, with 160 for
	// each key. 0 means no bound.
	MaxBytes int64
}

// ErrAbsent is the error for a key without a value at its source.
var ErrAbsent = errors.New("hotkey: no value")

// CacheStats counts the uses and loads of a [Cache] since it was made.
type CacheStats struct {
	Hits   uint64 // uses of a hot key that found a value, absent or not
	Misses uint64 // all other uses: the key was not hot, or had no value yet
	Stale  uint64 // of the hits, those with a value older than the TTL
	Loads  uint64 // calls of Load
	Keys   int    // keys that are kept, with a value or waiting for one
	Bytes  int64  // memory of these keys and their values
}

func (s *CacheStats) add(o CacheStats) {
	s.Hits += o.Hits
	s.Misses += o.Misses
	s.Stale += o.Stale
	s.Loads += o.Loads
	s.Keys += o.Keys
	s.Bytes += o.Bytes
}

// NewCache returns an empty Cache for a rule of d.
func NewCache[V any](d *Detector, config CacheConfig[V]) (*Cache[V], error) {
	rule, err := d.Rule(config.Rule)
	if err != nil {
		return nil, fmt.Errorf("%w (in CacheConfig)", err)
	}
	p := rule.table.rule.Cache
	switch {
	case p == nil:
		return nil, fmt.Errorf("hotkey: cache: rule %q: missing cache: must have a ttl", config.Rule)
	case config.Load == nil:
		return nil, errors.New("hotkey: cache: missing Load")
	case p.MaxBytes > 0 && config.Size == nil:
		return nil, fmt.Errorf("hotkey: cache: missing Size: must be set, as rule %q has max_bytes", config.Rule)
	}
	c := &Cache[V]{rule: rule, policy: *p, config: config}
	c.policy.MaxAge = max(p.MaxAge, p.TTL)
	c.entries.init(c.policy.MaxBytes)
	d.caches.add(config.Rule, c)
	return c, nil
}

// Get counts a use of key and returns its value. It returns the error of Load, also one that
// is kept, or the error of ctx if that ends while Get waits for the load of another call.
func (c *Cache[V]) Get(ctx context.Context, key string) (V, error) {
	hash, now, until := c.count(key)
	stats := c.entries.stats(hash)
	if now >= until {
		stats.misses.Add(1)
		stats.loads.Add(1)
		return c.config.Load(ctx, key)
	}
	e := c.entries.get(hash, key, now, until)
	v := e.value.Load()
	if v == nil || now-v.at >= int64(c.policy.MaxAge) {
		stats.misses.Add(1)
		return e.load(ctx, c).wait(ctx)
	}
	stats.hits.Add(1)
	if now-v.at > int64(c.policy.TTL) {
		stats.stale.Add(1)
	}
	if now >= e.renew.Load() {
		e.load(ctx, c)
	}
	return v.value, v.absent
}

// IsHot counts a use of key and reports whether it is hot.
func (c *Cache[V]) IsHot(key string) bool {
	_, now, until := c.count(key)
	return now < until
}

// Peek returns the value of key, whether there is one, and whether the key is hot. Values
// of keys that are not hot are not returned, nor is an absent value (see [ErrAbsent]).
// Peek does not count a use, and loads nothing.
func (c *Cache[V]) Peek(key string) (value V, ok, hot bool) {
	now := c.now()
	if now >= c.rule.hotUntil(key) {
		return value, false, false
	}
	e := c.entries.find(c.hash(key), key)
	if e == nil {
		return value, false, true
	}
	v := e.value.Load()
	if v == nil || now-v.at >= int64(c.policy.MaxAge) || v.absent != nil {
		return value, false, true
	}
	return v.value, true, true
}

// Set stores v as the value of key if key is hot, and reports whether it is. It
// does not count a use.
func (c *Cache[V]) Set(key string, v V) bool {
	hash, now := c.hash(key), c.now()
	until := c.rule.hotUntil(key)
	if now >= until {
		c.Delete(key) // the value would be used if the key became hot again
		return false
	}
	c.entries.get(hash, key, now, until).set(c, &kept[V]{value: v, at: now})
	return true
}

// Delete removes the value of key: the next use loads it.
func (c *Cache[V]) Delete(key string) { c.entries.delete(c.hash(key), key) }

// Stats returns the statistics of c.
func (c *Cache[V]) Stats() CacheStats { return c.entries.total() }

func (c *Cache[V]) now() int64 { return c.rule.d.now() }

func (c *Cache[V]) hash(key string) uint64 { return c.rule.table.Hash(key) }

// count counts a use of key now, and returns until when it is hot.
func (c *Cache[V]) count(key string) (hash uint64, now, until int64) {
	var edge Edge
	counted, _ := c.rule.d.count(c.rule.i, unread, key, 1, &edge)
	if hash = counted.hash; len(key) > maxWhole {
		hash = c.hash(key)
	}
	return hash, counted.now, counted.until
}

// call calls Load for a hot key. It runs in a goroutine of its own, where a panic
// would end the process.
func (c *Cache[V]) call(ctx context.Context, key string) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("hotkey: load panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return c.config.Load(ctx, key)
}

// renewal returns when a value of time now is renewed: after 80 to 95 % of the TTL.
func (c *Cache[V]) renewal(now int64) int64 {
	ttl := int64(c.policy.TTL)
	return now + ttl/5*4 + rand.Int64N(ttl*3/20+1)
}

// retry returns when a renewal that failed at now is tried again.
func (c *Cache[V]) retry(now int64) int64 { return now + int64(c.policy.TTL)/10 }

// size returns the bytes of v.
func (c *Cache[V]) size(v *kept[V]) int64 {
	if c.config.Size == nil || v.absent != nil {
		return 0
	}
	return int64(min(max(c.config.Size(v.value), 0), math.MaxInt32))
}
