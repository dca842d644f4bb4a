package limit

import "time"

// Early returns a Counter like m that forgets by that much too early: a control
// that tests have to catch.
func (m Counter) Early(by time.Duration) Counter {
	m.span -= int64(by)
	m.ring.span -= int64(by)
	m.spill.ring.span -= int64(by)
	m.buckets.span -= int64(by)
	m.fixed.span -= int64(by)
	m.level.span -= uint64(by)
	return m
}

// Slots returns how many slots m cuts its span into, or 0.
func (m *Counter) Slots() int {
	switch m.form {
	case formSpill:
		return int(m.spill.ring.size - 1)
	case formRing:
		return int(m.ring.size - 1)
	case formBuckets:
		return 1
	}
	return 0
}

// Bounds is Period.bounds.
func (p Period) Bounds(t int64, zone *time.Location) (start, end int64) { return p.bounds(t, zone) }
