package lately

import (
	"sync"
	"sync/atomic"
)

// A seqlock lets reads run without a lock while a window moves on. A move holds the
// mutex, and makes seq odd before and even after. Adds to what is there do neither.
type seqlock struct {
	mu  sync.Mutex
	seq atomic.Uint64
}

// view calls read, and calls it again with the mutex held if the window moved meanwhile.
// Only the last call counts.
func (l *seqlock) view(read func()) {
	if seq := l.seq.Load(); seq&1 == 0 {
		if read(); l.seq.Load() == seq {
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	read()
}
