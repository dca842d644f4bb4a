package client

import (
	"errors"
	"sync"
)

// HotStats counts the events of a Fleet's Detector by the state of their reports: Added =
// Sent + Pending + Dropped + Unanswered, at any time.
type HotStats struct {
	Added      uint64 // counted by the Detector
	Sent       uint64 // reported to a node and acknowledged
	Pending    uint64 // not reported yet, or not acknowledged yet
	Dropped    uint64 // not reported: memory was full, or a node refused the report
	Unanswered uint64 // reported, but the connection ended before an answer: counted or not

	// Err is the last error with which a node refused a report, or nil.
	Err error
}

// A hotLedger counts events that were taken from the tally, for HotStats.
type hotLedger struct {
	mu                                  sync.Mutex
	sent, underWay, dropped, unanswered uint64
	err                                 error
	taking                              sync.Mutex // written while events are between tally and ledger
}

// HotStats returns the numbers of events by the state of their reports.
func (f *Fleet) HotStats() (s HotStats) {
	if f.hot == nil {
		return s
	}
	l := &f.hot.stats
	l.taking.Lock()
	defer l.taking.Unlock()
	s.Added, s.Pending, s.Dropped = f.hot.tally.sums()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Sent, s.Unanswered, s.Err = l.sent, l.unanswered, l.err
	s.Pending += l.underWay
	s.Dropped += l.dropped
	return s
}

func (l *hotLedger) begin(events uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay += events
}

// end counts the outcome of a report.
func (l *hotLedger) end(events uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay -= events
	switch {
	case err == nil:
		l.sent += events
	case errors.Is(err, ErrUnanswered):
		l.unanswered += events
	default:
		l.dropped += events
		if !errors.Is(err, errNotSent) {
			l.err = err
		}
	}
}

func (l *hotLedger) drop(events uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped += events
}
