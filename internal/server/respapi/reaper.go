package respapi

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/wait"
)

// tickEvery is how often the reaper inspects all connections. It closes those whose client
// takes too long, or which subscribe with a token that is no longer valid. So a connection
// needs no timer and no deadline: it only stores its phase and the tick of its beginning.
const tickEvery = 250 * time.Millisecond

// ticks returns a number of ticks that take at least d.
func ticks(d time.Duration) uint32 { return uint32((d+tickEvery-1)/tickEvery + 1) }

// A phase is what the reading goroutine of a connection does.
type phase uint32

const (
	working  phase = iota
	waiting        // for a command
	greeting       // for the first command, or the first that authenticates
	partial        // for the rest of a command
	phases   = 4
)

// A phaseClock is a phase with the tick at which it began.
type phaseClock struct{ word atomic.Uint64 }

func (k *phaseClock) set(p phase, since uint32) { k.word.Store(uint64(since)*phases + uint64(p)) }

func (k *phaseClock) get() (p phase, since uint32) {
	w := k.word.Load()
	return phase(w % phases), uint32(w / phases)
}

// reap closes connections until ctx is done.
func (s *Server) reap(ctx context.Context) {
	for range wait.Every(ctx, tickEvery) {
		now := s.tick.Add(1)
		for _, c := range s.connections() {
			why := c.overdue(now)
			if why != "" {
				s.Cut.Add(1)
				if why == notReading && c.subscribes.Load() {
					s.Engine.CountDropped()
				}
			} else if c.tokenExpired() {
				why = "the tokens have changed"
			}
			if why != "" {
				s.Log.Debug("connection closed", "why", why, "peer", access.PeerName(c.peer), "id", c.id)
				c.raw.Close()
			}
		}
	}
}

// notReading is why a client is disconnected that does not receive what it is sent.
const notReading = "the client does not read"

// overdue returns why c has to be closed at that tick, or "".
func (c *conn) overdue(now uint32) string {
	if began := c.writing.Load(); began != 0 && now-began > ticks(writeTime) {
		return notReading
	}
	if since := c.queuing.Load(); since != 0 && now-since > ticks(multiTime) {
		return "unfinished transaction"
	}
	switch p, since := c.reading.get(); {
	case p == greeting && now-since > ticks(greetTime):
		return "no command, or no authentication"
	case p == partial && now-since > ticks(partialTime):
		return "unfinished command"
	case p == waiting && c.s.IdleTimeout > 0 && !c.subscribes.Load() && now-since > ticks(c.s.IdleTimeout):
		return "idle"
	}
	return ""
}

// tokenExpired reports whether c subscribes with tokens that have changed. Other connections
// check that with each command.
func (c *conn) tokenExpired() bool {
	return c.subscribes.Load() && !c.s.Tokens().Equal(c.tokens.Load())
}

// drain closes the connections that wait for a command soon, and the others when they are
// done or after the shutdown timeout.
func (s *Server) drain() {
	s.draining.Store(true)
	quiet := time.Now().Add(min(quietTime, s.ShutdownTimeout))
	for _, c := range s.connections() {
		c.raw.SetReadDeadline(quiet)
	}
	late := time.AfterFunc(s.ShutdownTimeout, func() {
		left := s.connections()
		s.Log.Warn("connections that took longer than the shutdown timeout were closed",
			"shutdown_timeout", s.ShutdownTimeout.String(), "connections", len(left))
		for _, c := range left {
			c.raw.Close()
		}
	})
	defer late.Stop()
	s.serving.Wait()
}
