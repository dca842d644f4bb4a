package cli

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/api"
)

// tooLate is how far a log or a target of enforcement may be behind before lately top says
// that something is wrong with it.
const tooLate = 10 * time.Second

// troubleOf returns what is wrong around a server whose clock is at now: with its store, with
// what enforces its bans, or with the logs that it follows; "" if nothing is.
func troubleOf(s *api.Status, now time.Time) string {
	if store := s.Store; store != nil && !store.Up {
		return "store down " + lasting(now.Sub(store.Since))
	} else if store != nil && store.OtherRules > 0 {
		return fmt.Sprintf("other rules on %d of %d servers", store.OtherRules, store.Nodes)
	}
	if s.Enforcement != nil {
		for i := range s.Enforcement.Targets {
			switch t := &s.Enforcement.Targets[i]; {
			case t.Error != "":
				return t.Name + " fails: " + t.Error
			case t.Lag.Duration() > tooLate:
				return t.Name + " is " + lasting(t.Lag.Duration()) + " behind"
			}
		}
	}
	for i := range s.Logs {
		switch l := &s.Logs[i]; {
		case l.Problem != "":
			return l.File + ": " + l.Problem
		case l.Lag.Duration() > tooLate:
			return fmt.Sprintf("%s is read %s late", l.File, lasting(l.Lag.Duration()))
		case l.Silent:
			return l.File + " is silent for " + lasting(now.Sub(l.LastLine))
		}
	}
	return ""
}

// lagOf returns how far the reading of the slowest log is behind.
func lagOf(logs []api.FollowedLog) (lag time.Duration) {
	for i := range logs {
		lag = max(lag, logs[i].Lag.Duration())
	}
	return lag
}
