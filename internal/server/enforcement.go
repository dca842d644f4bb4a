package server

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/events"
	"github.com/lately-go/lately/ratelimit"
)

const (
	// compareEvery is how often the bans that are enforced are compared with those that hold.
	compareEvery = time.Minute

	// compareAgain is how long after that failed it is tried again: a store may not have been reached yet.
	compareAgain = time.Second
)

// startEnforcing makes s.enforce, if anything is to be enforced.
func (s *Server) startEnforcing() (err error) {
	c := &s.config
	if !c.Enforce.Any() {
		return nil
	}
	proxies := address.NewSet(c.TrustedProxies...)
	s.enforce, err = enforce.New(enforce.Config{
		Rule: func(name string) (*ratelimit.Rule, error) { return s.engine.Limiter().Set().Named(name) },
		Protected: func(network netip.Prefix) bool {
			return proxies.Overlaps(network) || s.engine.Allows(network)
		},
		Now: s.engine.Now, MaxNetworks: c.maxEnforced, Targets: c.Enforce, Log: s.log,
	})
	return err
}

// keepEnforcing passes the bans of the engine to s.enforce until ctx is done: all of them at
// the start, every minute, after changes of the rules and when events were missed, and each
// change between.
func (s *Server) keepEnforcing(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for started, failing := false, false; ctx.Err() == nil; {
		sub := s.engine.Subscribe() // before the bans are read, so that no change is missed
		compare := compareEvery
		err := s.enforce.Replace(s.engine.Bans().All())
		if err != nil {
			compare = compareAgain
		}
		if err != nil && !failing {
			s.log.Error("bans could not be compared with the enforced ones; trying again each second", "error", err)
		} else if err == nil && !started {
			started = true // not before: without bans, the targets would end those of the last run
			running.Go(func() { s.enforce.Run(ctx) })
		}
		failing = err != nil
		s.passChanges(ctx, sub, compare)
		sub.Close()
	}
}

// passChanges passes changes of bans to s.enforce until all must be compared, for that long at most.
func (s *Server) passChanges(ctx context.Context, sub *events.Subscription, longest time.Duration) {
	compare := time.NewTimer(longest)
	defer compare.Stop()
	for {
		for ev, ok := sub.Next(); ok; ev, ok = sub.Next() {
			switch ev.Type {
			case api.BanStarted:
				s.enforce.Add(ev.Ban)
			case api.BanEnded:
				s.enforce.Remove(ev.Rule, ev.Values())
			case api.RulesChanged: // other keys, and another allow list
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-compare.C:
			return
		case <-sub.Done():
			return
		case <-sub.Wait():
		}
	}
}
