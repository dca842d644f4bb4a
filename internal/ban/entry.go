package ban

import (
	"math"
	"sync/atomic"
	"time"
)

// An entry is what a Table stores of one key under one rule, in one cache line. It is used
// under the lock of its shard. Readers without the lock read key and rule, which never
// change, and until, which changes atomically.
type entry struct {
	until   int64 // the end of the newest ban, in nanoseconds since 1970, or noBan
	since   int64 // its start
	memory  time.Duration
	origin  origin
	key     [16]byte // see generation.key
	rule    uint32
	count   uint32 // bans so far
	place   uint32 // in its heap, see generation.heap
	state   state
	reserve bool // whether it is one of the reserve
}

// A state says in which heap an entry is.
type state uint8

const (
	unused state = iota // in none: the key has no ban
	held
	ended
)

const (
	noBan    = math.MinInt64
	maxCount = 1<<25 - 1
)

func (e *entry) setUntil(until int64) { atomic.StoreInt64(&e.until, until) }

func (e *entry) setPast(count uint64, memory time.Duration) {
	e.count, e.memory = uint32(min(count, maxCount)), memory
}

// earlier returns the number of bans so far that are remembered at now.
func (e *entry) earlier(now int64) uint64 {
	if e.expires() < now {
		return 0
	}
	return uint64(e.count)
}

// expires returns the last time at which the ban is remembered.
func (e *entry) expires() int64 {
	if e.until > math.MaxInt64-int64(e.memory) {
		return math.MaxInt64
	}
	return e.until + int64(e.memory)
}

// clear makes e unused.
func (e *entry) clear() {
	e.setUntil(noBan)
	e.since, e.origin, e.state = 0, 0, unused
	e.setPast(0, 0)
}
