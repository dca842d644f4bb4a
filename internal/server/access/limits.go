package access

import (
	"fmt"
	"time"
)

// Limits is what one listener holds at the most, and how long it waits for its
// clients when it ends. The zero value is the defaults.
type Limits struct {
	// MaxConnections bounds the connections; 0 means 10,000.
	MaxConnections int

	// PeerConnections bounds those of one peer, as a [ConnLimiter] tells peers
	// apart; 0 means half of MaxConnections.
	PeerConnections int

	// MaxSubscribers bounds those who are told of events; 0 means 2,048.
	MaxSubscribers int

	// ShutdownTimeout is how long a listener that is told to end waits for what is
	// under way; 0 means 10 seconds.
	ShutdownTimeout time.Duration
}

// WithDefaults returns b with what is not set, or the error that begins with the
// name of the field that is out of range and says what is allowed.
func (b Limits) WithDefaults() (Limits, error) {
	for _, n := range []struct {
		name  string
		value *int
		none  int // what 0 stands for
	}{
		{"MaxConnections", &b.MaxConnections, 10_000},
		{"PeerConnections", &b.PeerConnections, 0}, // half of the one before
		{"MaxSubscribers", &b.MaxSubscribers, 2048},
	} {
		if *n.value < 0 {
			return b, fmt.Errorf("%s: %d: must be 0 (the default) or more", n.name, *n.value)
		}
		if *n.value == 0 {
			*n.value = n.none
		}
	}
	if b.PeerConnections == 0 {
		b.PeerConnections = max(b.MaxConnections/2, 1)
	}
	if b.ShutdownTimeout < 0 {
		return b, fmt.Errorf("%s: %v: must be 0 (10s) or more", "ShutdownTimeout", b.ShutdownTimeout)
	}
	if b.ShutdownTimeout == 0 {
		b.ShutdownTimeout = 10 * time.Second
	}
	return b, nil
}
