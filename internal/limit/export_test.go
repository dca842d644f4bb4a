package limit

import "time"

// Early returns a Counter like m that expires what it counts by that much too early:
// a control that tests have to catch.
func (m Counter) Early(by time.Duration) Counter {
	early := int64(by)
	switch w := m.window.(type) {
	case *log:
		c := *w
		c.span -= early
		m.window, m.log = &c, &c
	case *sliding:
		c := *w
		c.times, c.ring.span, c.two.span = c.times-early, c.ring.span-early, c.two.span-early
		m.window, m.sliding = &c, &c
	case *twoBucket:
		c := *w
		c.span -= early
		m.window = &c
	case *fixed:
		m.window = &fixed{span: w.span - early}
	case *level:
		c := *w
		c.span -= uint64(early)
		m.window, m.level = &c, &c
	}
	return m
}

// Slots returns how many slots m cuts its span into, or 0.
func (m *Counter) Slots() int {
	switch w := m.window.(type) {
	case *sliding:
		return int(w.ring.size - 1)
	case *twoBucket:
		return 1
	}
	return 0
}

// HasBlock reports whether a record with the words w has a block, as keytable.Blocks notes
// it there.
func HasBlock(w []uint64) bool { return w[0]>>32&(1<<5-1) != 0 }
