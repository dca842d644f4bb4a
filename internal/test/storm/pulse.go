//go:build linux

package storm

import (
	"context"
	"sync"
	"time"
)

const (
	// hangs is after how long without an answer a call hangs. The deadlines of the server are all shorter.
	hangs = 10 * time.Second

	// patience is how long clients wait for an answer.
	patience = hangs + 3*time.Second
)

// A pulse measures how much too late the machine wakes sleeping goroutines.
type pulse struct {
	mu     sync.Mutex
	delays []delay
}

type delay struct{ at, of time.Duration }

const beat = 10 * time.Millisecond

// run measures until ctx ends.
func (p *pulse) run(ctx context.Context, now func() time.Duration) {
	for ctx.Err() == nil {
		before := now()
		time.Sleep(beat)
		if late := now() - before - beat; late > beat {
			p.mu.Lock()
			p.delays = append(p.delays, delay{now(), late})
			p.mu.Unlock()
		}
	}
}

// margin returns how much later than stated things may be, on a machine as busy as it was since a time.
func (p *pulse) margin(since time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := time.Duration(0)
	for _, d := range p.delays {
		if d.at >= since {
			most = max(most, d.of)
		}
	}
	return 20 * most
}
