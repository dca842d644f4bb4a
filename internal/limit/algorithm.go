package limit

// An Algorithm is how a [Counter] counts. docs/dev/proofs.md has for each what it admits
// at worst, what it refuses wrongly, and what it costs.
type Algorithm uint8

const (
	// Sliding never admits more than N in any window. Up to N = SlidingExact
	// it is Exact. Above, it counts in a ring of slots and judges on hi, the
	// sum that includes the oldest, partly expired slot, so that an event
	// leaves up to one slot late.
	Sliding Algorithm = iota

	// Exact keeps the time of each of the last N events.
	Exact

	// Weighted is the ring of Sliding, for any N, with the oldest slot
	// counted for the part of it that is still in the window, rounded up, as
	// if its events were spread evenly.
	Weighted

	// TwoBucket is Weighted with one slot as long as the span: the bucket of
	// now, and the part of the one before that is still in the window.
	TwoBucket

	// GCRA is the generic cell rate algorithm: N in a span at an even pace,
	// and up to Burst at once.
	GCRA

	// TokenBucket takes tokens from a bucket of Burst, into which N flow in a
	// span. Its decisions are those of GCRA, seen from the other side.
	TokenBucket

	// LeakyBucket is a queue with room for Burst, the one whose turn it is
	// included, out of which N go in a span at an even pace. Delay is how
	// long an event that was admitted has to wait for its turn.
	LeakyBucket

	// Fixed counts in a window that begins with its first event.
	Fixed

	// Calendar counts in the seconds, minutes ... months of a time zone.
	Calendar

	// InFlight is how many are under way: Exact, where Span is the longest
	// that one may take, and Refund ends it before.
	InFlight

	numAlgorithms
)

var algorithmNames = [numAlgorithms]string{
	"sliding", "exact", "weighted", "two-bucket", "gcra", "token-bucket", "leaky-bucket", "fixed", "calendar", "in-flight",
}

// String returns the kind's name as in a rules file.
func (k Algorithm) String() string {
	if k < numAlgorithms {
		return algorithmNames[k]
	}
	return "kind?"
}

// level reports whether k keeps how full something is, which Burst bounds.
func (k Algorithm) level() bool { return k == GCRA || k == TokenBucket || k == LeakyBucket }

// ringed reports whether k cuts the span into slots.
func (k Algorithm) ringed() bool { return k == Sliding || k == Weighted || k == TwoBucket }
