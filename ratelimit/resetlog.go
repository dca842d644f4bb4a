package ratelimit

import (
	"sync"
	"sync/atomic"
)

// A resetLog knows which keys of a table, and of the tables whose counts it has taken
// over, were reset last. A settlement from before a reset of its key is void.
type resetLog struct {
	id     uint64        // the number of the first table
	resets atomic.Uint64 // how many there were

	mu   sync.Mutex // one reset at a time
	last [keptResets]atomic.Uint64
}

// keptResets is how many resets are known by the hash of their key. A settlement
// from before more than these is void.
const keptResets = 128

// mark returns what a settlement must bring along: the table in which its event was
// counted, and how many resets there were.
//
// REQUIRES: the record of its key, locked, as invalidated and reset do.
func (rs *records) mark() uint64 { return rs.number<<32 | rs.resets.resets.Load()&(1<<32-1) }

// carried reports whether a mark is from before the counts were carried here.
func (rs *records) carried(mark uint64) bool { return mark>>32 != rs.number }

// invalidated reports whether the key of that hash was, or may have been, reset since
// mark.
func (l *resetLog) invalidated(hash, mark uint64) bool {
	n := l.resets.Load()
	since := uint64(uint32(n - mark))
	if mark>>32 < l.id || since >= keptResets {
		return true
	}
	for i := range since {
		if l.last[(n-1-i)%keptResets].Load() == hash {
			return true
		}
	}
	return false
}

// reset notes that the key of that hash is reset.
func (l *resetLog) reset(hash uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[l.resets.Load()%keptResets].Store(hash)
	l.resets.Add(1)
}
