package window

// Stats are the numbers of calls of a [Counter], [Sums] or [Rollup] that were
// refused or that did not fit, since it was made. Each call counts once, for any
// amount.
type Stats struct {
	// Late counts calls that were refused because their event is older than the
	// window.
	Late uint64

	// Future counts calls that were refused because their event is too far
	// ahead; see [Window.Ahead].
	Future uint64

	// Saturated counts calls that did not fit. If it is not 0, counts may be
	// less than the true ones. A slot of a Counter saturates at 2^36-1 or more,
	// a slot of a Sums at -(2^62-1) and 2^62-1, and the longest span of a
	// Rollup at 2^63-1, where several calls at the same moment may count here
	// as one.
	Saturated uint64
}
