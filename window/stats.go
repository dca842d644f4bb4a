package window

// Stats are the numbers of calls of a [Counter], [Sums] or [Rollup] that were
// refused or that did not fit, since it was made. Each call counts once, whatever
// its amount.
type Stats struct {
	// Late is how many calls were refused because their event is older than
	// the window.
	Late uint64

	// Future is how many calls were refused because their event is too far
	// ahead; see [Window.Ahead].
	Future uint64

	// Saturated is how many calls did not fit. If it is not 0, counts may be
	// less than the true ones. A slot of a Counter holds at least 2^36-1 and
	// stays there. A slot of a Sums holds -(2^62-1) to 2^62-1. The longest span
	// of a Rollup holds 2^63-1; of its calls at the same moment several may be
	// counted as one.
	Saturated uint64
}
