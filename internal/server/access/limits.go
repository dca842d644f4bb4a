package access

import (
	"cmp"
	"fmt"
	"time"
)

// Limits bounds what a listener accepts, and how long it waits for its clients when it
// shuts down. A field that is 0 has its default.
type Limits struct {
	// MaxConnections bounds the connections; by default 10,000.
	MaxConnections int

	// PeerConnections bounds the connections of one peer, see [ConnLimiter]; by
	// default half of MaxConnections.
	PeerConnections int

	// MaxSubscribers bounds the subscribers to events; by default 2,048.
	MaxSubscribers int

	// ShutdownTimeout is how long a listener waits for requests in progress; by default
	// 10 seconds.
	ShutdownTimeout time.Duration
}

// WithDefaults returns l with its defaults, or an error that begins with the name of
// the field that is wrong.
func (l Limits) WithDefaults() (Limits, error) {
	for _, n := range []struct {
		name  string
		value int
	}{{"MaxConnections", l.MaxConnections}, {"PeerConnections", l.PeerConnections}, {"MaxSubscribers", l.MaxSubscribers}} {
		if n.value < 0 {
			return l, fmt.Errorf("%s: %d: must be 0 (the default) or more", n.name, n.value)
		}
	}
	if l.ShutdownTimeout < 0 {
		return l, fmt.Errorf("ShutdownTimeout: %v: must be 0 (10s) or more", l.ShutdownTimeout)
	}
	l.MaxConnections = cmp.Or(l.MaxConnections, 10_000)
	l.PeerConnections = cmp.Or(l.PeerConnections, max(l.MaxConnections/2, 1))
	l.MaxSubscribers = cmp.Or(l.MaxSubscribers, 2048)
	l.ShutdownTimeout = cmp.Or(l.ShutdownTimeout, 10*time.Second)
	return l, nil
}
