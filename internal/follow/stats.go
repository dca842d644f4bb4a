package follow

import (
	"time"
)

// Stats is what was read of a log since the start of the process.
type Stats struct {
	File     string
	Lines    uint64
	Bad      uint64        // lines that the format does not describe
	Skipped  uint64        // lines of other programs, and comments
	Late     uint64        // events that are older than one before them by more than the lateness
	Unread   int64         // bytes
	Lag      time.Duration // from the newest event to now while lines are unread, else 0
	LastLine time.Time     // when a line was read; at first when the log began to be followed
	Silent   bool          // there was no line for longer than Config.Silence
}

// Stats returns what was read of each log.
func (f *Follower) Stats() []Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Stats, 0, len(f.tails))
	for _, t := range f.tails {
		s := t.stats
		for _, g := range t.gens {
			if g.unpacked == nil {
				g.hasData()
				s.Unread += max(g.size-g.Offset, 0)
			}
		}
		if s.Unread > 0 && s.Lines > s.Bad+s.Skipped {
			s.Lag = max(time.Since(time.Unix(0, t.newest)), 0)
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
