package respapi

import (
	"sync"
	"sync/atomic"
	"time"
)

// A patrol looks at all connections of one listener four times a second, and cuts
// those whose client takes too long, or may not be told any more what it subscribes to. So connections need no timer of their own, and
// a command no deadline: they only note in what phase they are.
type patrol struct {
	s        *Server
	tick     atomic.Uint32 // number of the round, from 1
	draining atomic.Bool

	serving sync.WaitGroup
	watcher sync.WaitGroup
	stop    chan struct{}
}

const round = 250 * time.Millisecond

// rounds returns how many rounds surely take d.
func rounds(d time.Duration) uint32 { return uint32(min((d+round-1)/round+1, 1<<30)) }

// A phase is what a connection's reading goroutine does.
type phase uint32

const (
	working  phase = iota
	waiting        // for a command
	greeting       // for the first command, or the first that authenticates
	partial        // for the rest of a command
	phases   = 4
)

// A clock is a phase with the round in which it began.
type clock struct{ word atomic.Uint64 }

func (k *clock) set(p phase, since uint32) { k.word.Store(uint64(since)*phases + uint64(p)) }

func (k *clock) get() (p phase, since uint32) {
	w := k.word.Load()
	return phase(w % phases), uint32(w / phases)
}

// watch makes the rounds.
func (p *patrol) watch() {
	t := time.NewTicker(round)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
		}
		now := p.tick.Add(1)
		for _, c := range p.conns() {
			why := c.overdue(now)
			if why != "" {
				p.s.cut.Add(1)
			} else if c.outdated() {
				why = "it is told of events by tokens that have changed"
			}
			if why != "" {
				p.s.log.Debug("a connection was cut", "why", why, "peer", c.peer.String(), "id", c.id)
				c.raw.Close()
			}
		}
	}
}

// conns returns the connections of this listener.
func (p *patrol) conns() []*conn {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	all := make([]*conn, 0, len(p.s.conns))
	for c := range p.s.conns {
		if c.patrol == p {
			all = append(all, c)
		}
	}
	return all
}

// overdue returns why c is cut in that round, or "".
func (c *conn) overdue(now uint32) string {
	if began := c.writing.Load(); began != 0 && now-began > rounds(writeTime) {
		return "it does not read"
	}
	switch p, since := c.reading.get(); {
	case p == greeting && now-since > rounds(greetTime):
		return "it has not asked anything, or not said who it is"
	case p == partial && now-since > rounds(partialTime):
		return "it has not ended a command"
	case p == waiting && c.s.config.Idle > 0 && !c.told.Load() && now-since > rounds(c.s.config.Idle):
		return "it has been silent"
	}
	return ""
}

// outdated reports whether c subscribes by tokens that are not those of now. One that
// asks finds out with its next command; one that only listens may never ask.
func (c *conn) outdated() bool {
	return c.told.Load() && !c.s.config.Tokens().Equal(c.tokens.Load())
}

// drain closes all connections: those that wait for a command soon, those that are
// not done within most after that.
func (p *patrol) drain(most time.Duration) {
	p.draining.Store(true)
	quiet := time.Now().Add(min(quietTime, most))
	for _, c := range p.conns() {
		c.raw.SetReadDeadline(quiet)
	}
	done := make(chan struct{})
	go func() {
		p.serving.Wait()
		close(done)
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		left := p.conns()
		p.s.log.Warn("connections that took longer than the shutdown timeout were closed", "shutdown_timeout", most.String(), "connections", len(left))
		for _, c := range left {
			c.raw.Close()
		}
		<-done
	}
	close(p.stop)
	p.watcher.Wait()
}
