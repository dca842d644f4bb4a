package limit

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
