package match

// A Part is the part of a request and its answer that an event describes. A rule whose condition
// uses the answer does not count a [Request], which has no answer yet: it refuses the request if
// its limit is already full, and counts the [Answer].
type Part uint8

const (
	Whole   Part = iota // a request and its answer, as in a line of a log; the default
	Request             // a request that has no answer yet
	Answer              // a request with its answer, which was judged as a Request before
)
