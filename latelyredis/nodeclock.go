package latelyredis

import (
	"sync/atomic"
	"time"
)

// A nodeClock tells the time of the server, as a node knows it from answers.
type nodeClock struct {
	now   func() int64 // the time of the node, in microseconds
	ahead atomic.Int64 // by how much the server is ahead of that
}

func newNodeClock() nodeClock {
	start := time.Now()
	return nodeClock{now: func() int64 { return start.Add(time.Since(start)).UnixMicro() }}
}

// at notes that it was server on the server, in microseconds, at some time between two of the
// node. What was noted before stays if it may be right.
func (c *nodeClock) at(server, sent, received int64) {
	if ahead := c.ahead.Load(); ahead < server-received || ahead > server-sent {
		c.ahead.Store(server - (sent+received)/2)
	}
}

// server returns what time it is on the server, in microseconds.
func (c *nodeClock) server() int64 { return c.now() + c.ahead.Load() }
