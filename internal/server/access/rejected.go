package access

import (
	"log/slog"
	"net/netip"
	"sync/atomic"

	"github.com/lately-go/lately/internal/loglimit"
)

// RejectedLogins counts logins with unknown tokens and logs them at a limited rate, so
// that guessing costs the server no more than any other request and cannot fill its
// disk. Nobody is locked out: tokens have at least [MinToken] characters and cannot be
// guessed, whereas clients behind one proxy share an address.
//
// It is safe for concurrent use. Make one with [NewRejectedLogins].
type RejectedLogins struct {
	log   *slog.Logger
	total atomic.Uint64
}

// NewRejectedLogins returns a RejectedLogins that logs to log.
func NewRejectedLogins(log *slog.Logger) *RejectedLogins {
	return &RejectedLogins{log: slog.New(loglimit.New(log.Handler()))}
}

// Add counts a login from peer whose token is unknown.
func (r *RejectedLogins) Add(peer netip.Addr) {
	r.total.Add(1)
	r.log.Warn("login rejected: unknown token", "peer", peer.String())
}

// Total returns how many logins were rejected so far.
func (r *RejectedLogins) Total() uint64 { return r.total.Load() }
