// Package demo has rules and made-up traffic for a server that is tried out: people, a
// crawler, somebody who guesses passwords, and a product that many look at.
//
// Everything happens in the process, by its engine: no packet is sent. The traffic is at
// most some 170 events a second, which take less than a hundredth of one core. Its
// addresses are reserved for documentation.
package demo

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/rules"
)

//go:embed rules.yaml
var text []byte

// Rules returns the rules of the demo.
func Rules() (*rules.File, error) { return rules.Parse("demo", text) }

// A Demo judges made-up events until it is stopped. Make one with [New]. Running and Stop
// are safe for concurrent use.
type Demo struct {
	session *engine.Session
	traffic *traffic
	once    sync.Once
	stop    chan struct{} // closed by Stop
}

// New returns a Demo for e, which must have the [Rules]. The same seed gives the same events.
func New(e *engine.Engine, seed uint64) *Demo {
	return &Demo{session: e.Session(), traffic: newTraffic(seed), stop: make(chan struct{})}
}

// Run judges events until ctx is done or Stop is called.
func (d *Demo) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second / stepsPerSecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.stop:
			return
		case <-tick.C:
			d.step()
		}
	}
}

// step judges the events of the next step.
func (d *Demo) step() {
	for _, r := range d.traffic.step() {
		ev := d.session.Event()
		ev.SetNamedString("client", r.client)
		ev.SetNamedString("method", r.method)
		ev.SetTarget(r.target)
		if _, err := d.session.Check(ev, 1, engine.Terms{}); err != nil {
			d.session.Failed()
		}
	}
}

// Stop ends the traffic. What was counted is kept until it leaves its windows.
func (d *Demo) Stop() { d.once.Do(func() { close(d.stop) }) }

// Running reports whether Stop was not called yet.
func (d *Demo) Running() bool {
	select {
	case <-d.stop:
		return false
	default:
		return true
	}
}
