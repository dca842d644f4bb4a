package window

import (
	"sync/atomic"
	"time"
)

// An aheadGuard refuses events that are too far ahead of the newest one, until a
// second one confirms the jump; see [Window.Ahead]. It is safe for concurrent use.
// Call init first.
type aheadGuard struct {
	pending atomic.Int64  // the time last refused, or none
	future  atomic.Uint64 // events refused
}

func (g *aheadGuard) init() { g.pending.Store(none) }

// refuses reports whether an event at t must be refused, and remembers it if so.
// The newest event lies before end. If ahead is 0, none is refused. If several such
// events come within one span of each other, exactly the first is refused, even at
// the same moment: the swap decides which. It stays remembered, so that those that
// arrive before the window has moved on are not refused again.
func (g *aheadGuard) refuses(t, end int64, ahead, span time.Duration) bool {
	// t is not before end, so the difference, unsigned, does not overflow.
	if ahead == 0 || t < end || uint64(t)-uint64(end) < uint64(ahead) {
		return false
	}
	for {
		p := g.pending.Load()
		if p != none && uint64(max(t, p))-uint64(min(t, p)) <= uint64(span) {
			return false
		}
		if g.pending.CompareAndSwap(p, t) {
			g.future.Add(1)
			return true
		}
	}
}
