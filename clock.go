package lately

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultResolution = time.Millisecond
	minResolution     = 100 * time.Microsecond
	maxResolution     = time.Second
)

// A Clock is a coarse clock: it keeps the time in memory, where reading it takes one
// nanosecond instead of 25. Counters made with [NewCounterOn] use it. One Clock serves
// any number of counters.
//
// It makes adds two to three times as fast, for a lag: an add may count as if it had
// happened earlier, by the resolution at most. A goroutine updates the time once per
// resolution. Because that goroutine waits when all cores are busy, one add in 16 reads
// the monotonic clock and updates the time as well. Only a counter with more than a
// million adds per second uses the coarse time; adds to a slower one read the monotonic
// clock and do not lag.
//
// There is one exception. If a goroutine that adds at such a rate is delayed while all
// cores are busy, up to 15 of its next adds lag for as long as the goroutine of the
// Clock was delayed too: some 10 ms on saturated cores, rarely more than 50. Figures
// are in docs/dev/proofs.md.
//
// Reads, AddSum and the methods with a given time read the monotonic clock.
//
// Now is safe for concurrent use. The zero Clock is not usable:
// it panics; call [NewClock], and Close when it is no longer needed.
type Clock struct {
	coarse atomic.Int64 // on live's axis, or none when closed; only grows

	live       liveClock
	resolution int64

	stop  sync.Once
	close chan struct{} // closed to stop the goroutine
	done  chan struct{} // closed when it has stopped
}

// NewClock starts a clock with that resolution, from 100 µs to 1 s; 0 means
// 1 ms. The error, if any, says what is allowed.
func NewClock(resolution time.Duration) (*Clock, error) {
	resolution = cmp.Or(resolution, defaultResolution)
	if resolution < minResolution || resolution > maxResolution {
		return nil, fmt.Errorf("lately: clock resolution %v: must be from %v to %v, or 0 for %v", resolution, minResolution, maxResolution, defaultResolution)
	}
	c := &Clock{live: newLiveClock(), resolution: int64(resolution), close: make(chan struct{}), done: make(chan struct{})}
	c.coarse.Store(c.live.now())
	go c.run(resolution)
	return c, nil
}

func (c *Clock) run(resolution time.Duration) {
	defer close(c.done)
	tick := time.NewTicker(resolution)
	defer tick.Stop()
	for {
		select {
		case <-c.close:
			return
		case <-tick.C:
			c.publish(c.live.now(), 0)
		}
	}
}

// Close stops the clock and returns when its goroutine has ended. Counters made
// on it remain usable; they read the monotonic clock at every add from then on.
// Close may be called more than once.
func (c *Clock) Close() {
	c.mustBeMade()
	c.stop.Do(func() {
		c.coarse.Store(none)
		close(c.close)
	})
	<-c.done
}

// Now returns the coarse time, the precise one when c is closed. It never goes
// back.
func (c *Clock) Now() time.Time {
	c.mustBeMade()
	t := c.coarse.Load()
	if t == none {
		t = c.live.now()
	}
	return time.Unix(0, t)
}

// mustBeMade panics for the zero Clock, whose time would never advance.
func (c *Clock) mustBeMade() {
	if c.close == nil {
		panic("lately: this Clock was not made by NewClock")
	}
}

// publish moves the coarse time on to now, unless that is less than atLeast
// ahead of it.
func (c *Clock) publish(now, atLeast int64) {
	for {
		old := c.coarse.Load()
		if old == none || now-old < atLeast || now <= old || c.coarse.CompareAndSwap(old, now) {
			return
		}
	}
}

// precise reads the monotonic clock and publishes it, unless the coarse time is recent
// enough to save the write.
func (c *Clock) precise() int64 {
	now := c.live.now()
	c.publish(now, c.resolution/4)
	return now
}
