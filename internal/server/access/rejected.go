package access

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// RejectedLogins counts logins with unknown tokens and logs them, with at most one
// line per second, so that guessing costs the server no more than any other request
// and cannot fill its disk. Nobody is locked out: tokens have at least [MinToken]
// characters and cannot be guessed, whereas clients behind one proxy share an address.
//
// It is safe for concurrent use. Make one with [NewRejectedLogins].
type RejectedLogins struct {
	log   *slog.Logger
	total atomic.Uint64

	mu     sync.Mutex
	logged time.Time // when the last line was written
	since  uint64    // rejected logins since then
}

// rejectedEvery is the least time between two lines.
const rejectedEvery = time.Second

// NewRejectedLogins returns a RejectedLogins that logs to log.
func NewRejectedLogins(log *slog.Logger) *RejectedLogins { return &RejectedLogins{log: log} }

// Add counts a login from peer whose token is unknown. The line names the newest peer,
// and how many logins were rejected since the line before.
func (r *RejectedLogins) Add(peer netip.Addr) {
	r.total.Add(1)
	r.mu.Lock()
	r.since++
	now, n := time.Now(), r.since
	due := r.logged.IsZero() || now.Sub(r.logged) >= rejectedEvery
	if due {
		r.logged, r.since = now, 0
	}
	r.mu.Unlock()
	if due {
		r.log.Warn("login rejected: unknown token", "peer", peer.String(), "rejected", n)
	}
}

// Total returns how many logins were rejected so far.
func (r *RejectedLogins) Total() uint64 { return r.total.Load() }
