package follow

import (
	"time"

	"github.com/lately-go/lately/api"
)

// Stats returns what was read of each log since the start of the process.
func (f *Follower) Stats() []api.FollowedLog {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logs()
}

func (f *Follower) logs() []api.FollowedLog {
	all := make([]api.FollowedLog, 0, len(f.tails))
	for _, t := range f.tails {
		s := t.stats
		s.Problem = t.problem
		for _, g := range t.gens {
			if g.unpacked == nil {
				g.hasData()
				s.Unread += max(g.size-g.Offset, 0)
			}
		}
		if s.Unread > 0 && s.Lines > s.Bad+s.Skipped {
			s.Lag = api.MillisOf(max(time.Since(time.Unix(0, t.newest)), 0))
		}
		all = append(all, s)
	}
	return all
}

// listen logs when a log falls silent, and when it is heard again.
func (t *tail) listen(after time.Duration, now time.Time) {
	silent := after > 0 && now.Sub(t.stats.LastLine) > after
	if silent == t.stats.Silent {
		return
	}
	t.stats.Silent = silent
	if silent {
		t.log.Warn("the log is silent: does its program run, and write to this file?", "file", t.path, "last_line", t.stats.LastLine.UTC())
	} else {
		t.log.Info("the log has lines again", "file", t.path)
	}
}
