package lately

// An aheadGuard refuses events that are too far ahead of the newest one, until
// a second one confirms the jump; see [Window.Ahead]. Its user sees to it that
// one goroutine at a time is in it.
type aheadGuard struct {
	ahead, span int64 // ahead 0: nothing is refused
	pending     int64 // the time last refused, if any
	refused     bool
}

// refuses reports whether an event at t is to be refused, and remembers it if
// so. The newest event lies before end.
func (g *aheadGuard) refuses(t, end int64) bool {
	// t is not before end, so the difference, unsigned, does not overflow.
	if g.ahead == 0 || t < end || uint64(t)-uint64(end) < uint64(g.ahead) {
		return false
	}
	if g.refused && uint64(max(t, g.pending))-uint64(min(t, g.pending)) <= uint64(g.span) {
		return false
	}
	g.pending, g.refused = t, true
	return true
}
