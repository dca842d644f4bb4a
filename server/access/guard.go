package access

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// ErrUnknown is returned for a token that stands for nobody.
var ErrUnknown = errors.New("the token is not known")

// A RefusedError is returned for whoever was wrong too often, whatever token it
// has now.
type RefusedError struct {
	RetryAfter time.Duration // more than 0
}

// Error says how long to wait, in whole seconds.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("too many unknown tokens; try again in %d s", int64((e.RetryAfter+time.Second-1)/time.Second))
}

// GuardConfig is how a [Guard] is built. Its zero value is the default.
type GuardConfig struct {
	// Failures is how many unknown tokens within Span have a peer refused: the
	// last of them is. 0 means 10, the most is 65,536.
	Failures int

	// Span is in what time. 0 means a minute; whole milliseconds.
	Span time.Duration

	// For is how long it is refused. 0 means a minute; whole milliseconds.
	For time.Duration
}

// A Guard refuses peers that try tokens out: after ten unknown ones within a
// minute, for a minute. A peer is an IPv4 address, or the /64 of an IPv6 one.
//
// It counts with a [ratelimit.Limiter], exactly: however many tokens a peer sends
// at once, it is told of fewer than Failures within Span that they are unknown.
// While it is refused it is not told of a good one that it is good, and neither
// is anyone with its address: behind a proxy that peers do not share an address
// with, hand in the address that the proxy says, or all are refused together.
//
// It is safe for concurrent use. Its zero value is not usable; call NewGuard. Its
// memory is some megabytes at most, however many peers come; when 65,536 are
// refused at once, a further one is refused by the count of its failures.
type Guard struct {
	limiter *ratelimit.Limiter
}

const (
	guardBudget = 4 << 20
	guardPeers  = 1 << 16
	maxFailures = ratelimit.MaxExact + 1
)

// NewGuard returns a Guard. The error says which field of c is wrong.
func NewGuard(c GuardConfig) (*Guard, error) {
	if c.Failures < 0 || c.Failures > maxFailures {
		return nil, fmt.Errorf("access: Failures is %d; allowed is 1 to %d, or 0 for 10", c.Failures, maxFailures)
	}
	c = c.withDefaults()
	key, err := match.NewKey(match.Fold{}, "client")
	if err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "unknown tokens",
		Key:  key,
		Ban:  &ratelimit.Ban{After: uint64(c.Failures - 1), Span: c.Span, For: c.For},
	})
	if err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	memory, err := ratelimit.NewMemory(set, ratelimit.MemoryConfig{Budget: guardBudget, Bans: guardPeers})
	if err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	return &Guard{ratelimit.NewLimiter(set, memory)}, nil
}

func (c GuardConfig) withDefaults() GuardConfig {
	if c.Failures == 0 {
		c.Failures = 10
	}
	if c.Span == 0 {
		c.Span = time.Minute
	}
	if c.For == 0 {
		c.For = time.Minute
	}
	return c
}

// Authenticate returns who the peer with that token is: ErrUnknown for a token
// that is not in t, and a [*RefusedError] for any token of a peer that is refused.
//
// The zero peer is one that has no address, on a socket in the file system; it is
// never refused. Tokens are looked up before it is known whether the peer is
// refused, so the time tells nothing of that.
func (g *Guard) Authenticate(t *Tokens, token string, peer netip.Addr) (Identity, error) {
	role, name, ok := t.Role(token)
	if !peer.IsValid() {
		if !ok {
			return Identity{}, ErrUnknown
		}
		return Identity{role, name}, nil
	}
	var text, key [64]byte
	client := string(match.Fold{}.Append(key[:0], peer.AppendTo(text[:0])))
	var d ratelimit.Decision
	if ok {
		d = g.limiter.PeekKeyAt(g.limiter.Now(), client, 0) // no hit: is it refused now?
	} else {
		d = g.limiter.TakeKey(client)
	}
	switch {
	case !d.Allowed:
		return Identity{}, &RefusedError{max(d.RetryAfter, time.Millisecond)}
	case !ok:
		return Identity{}, ErrUnknown
	}
	return Identity{role, name}, nil
}
