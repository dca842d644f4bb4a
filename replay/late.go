package replay

import "time"

// A LateReport is the events that were too late to be judged in the order of time.
type LateReport struct {
	Events      int64       `json:"events"`
	MostSeconds float64     `json:"most_seconds"` // by how much an event was older than the newest before it
	First       []LateEvent `json:"first"`        // in the order of the files
}

// A LateEvent is an event that was left out because it was late.
type LateEvent struct {
	File    string  `json:"file"`
	Line    int64   `json:"line"`
	T       Epoch   `json:"t"`
	Seconds float64 `json:"seconds"` // older than the newest event before it
}

// maxLate is how many late events are named.
const maxLate = 10

// leaveOutLate leaves out the late events of a block: those that are older than an earlier
// one of their file by more than the lateness. Those that are not are complete up to
// the newest time less the lateness.
func (s *stream) leaveOutLate(l *logFile, b *parsed) {
	lateness, event := int64(s.Lateness), -1
	b.filter(func(t int64) (int64, bool) {
		event++
		l.newest = max(l.newest, t)
		if l.newest-t <= lateness {
			return t, true
		}
		behind := time.Duration(l.newest - t).Seconds()
		l.late.Events++
		l.late.MostSeconds = max(l.late.MostSeconds, behind)
		if len(l.late.First) < maxLate {
			l.late.First = append(l.late.First, LateEvent{l.path, b.places[event].line(), epoch(t), behind})
		}
		return t, false
	})
	if len(b.times) > 0 {
		l.complete.Store(l.newest - lateness)
	}
}

// lateReport returns the late events of all files; nil without a lateness.
func (r *run) lateReport() *LateReport {
	if r.Lateness == 0 {
		return nil
	}
	all := &LateReport{First: []LateEvent{}}
	for _, l := range r.logs {
		all.Events += l.late.Events
		all.MostSeconds = max(all.MostSeconds, l.late.MostSeconds)
		for _, e := range l.late.First {
			if len(all.First) < maxLate {
				all.First = append(all.First, e)
			}
		}
	}
	return all
}
