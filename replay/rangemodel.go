package replay

import (
	"math"
	"math/bits"
	"sort"

	"github.com/lately-go/lately/internal/ring"
	"github.com/lately-go/lately/ratelimit"
)

// A log often has coarser times than a live clock: the time of an event is then
// known only to be in [s, s+d], where s is what the log has and d is a little less
// than its precision. What a limit refuses depends on where the events of a key are
// in there. A limitModel models the limits of a rule for one key and gives a bound.
//
// The k-th event that a limit admits is the first one after the k-1st whose time is
// at or after g, a function of the times of the k-1 admitted before, which no
// algorithm here makes smaller when one of these times grows. So by induction the
// k-th admitted event is, whatever the fractions, none before that of a model that
// judges each event at s+d and charges it at s, and none after that of one that judges
// at s and charges at s+d: the one refuses least, the other most. It does not matter
// which events of a key come first within a tick, since they are alike.
//
// If refused events count, too, a decision is a function of all times before, and the
// same two models are its bounds.
type limitModel struct {
	limits        []modelLimit
	countRefused  bool
	judge, charge int64 // what is added to a time to judge an event, and to charge it
}

// A modelLimit is one limit of a limitModel.
type modelLimit struct {
	form  modelForm
	n     int   // how many fit
	span  int64 // of the window; of a bucket, how long a unit takes to drain
	width int64 // of a slot
	whole int   // events in a slot from which on it leaves as a whole; 0 is none

	// For each event charged, when it leaves, or its slot, or when the bucket would be
	// empty after it.
	charged []int64
}

// A modelForm is how a limit counts.
type modelForm uint8

const (
	bySlots  modelForm = iota // an event leaves with its slot; slots of 1 ns are exact times
	weighted                  // its slot leaves gradually
	bucket                    // units drain at a constant rate
)

// slidingInline is how many times sliding may drop, exactly when they leave, before
// it counts by slots.
const slidingInline = 3

// newLimitModel returns the model of rule that refuses least or most, for fractions of
// up to unknown nanoseconds; nil if there is none.
func newLimitModel(rule *ratelimit.Rule, unknown int64, most bool) *limitModel {
	m := &limitModel{countRefused: rule.CountRefused && rule.Algorithm != ratelimit.InFlight, judge: unknown}
	if most {
		m.judge, m.charge = 0, unknown
	}
	if rule.Adapt != nil {
		return nil
	}
	for _, l := range rule.Limits {
		ml := modelLimit{n: count32(l.N), span: int64(l.Span), width: max(int64(l.MaxLate(rule.Algorithm)), 1)}
		switch rule.Algorithm {
		case ratelimit.Exact, ratelimit.InFlight:
		case ratelimit.Sliding:
			if ml.width > 1 && !most {
				ml.n += slidingInline
			}
		case ratelimit.Weighted:
			ml.form, ml.whole = weighted, math.MaxUint8
		case ratelimit.TwoBucket:
			ml.form = weighted
		case ratelimit.GCRA, ratelimit.LeakyBucket:
			if m.countRefused { // a bucket is then fuller than its burst
				return nil
			}
			ml.form, ml.n, ml.span = bucket, burst(l), drainTime(l, most)
		default:
			return nil
		}
		m.limits = append(m.limits, ml)
	}
	return m
}

func count32(n uint64) int { return int(min(n, math.MaxInt32)) }

// burst returns how many events a bucket holds.
func burst(l ratelimit.Limit) int {
	if l.N == 0 || l.Burst == 0 {
		return count32(l.N)
	}
	return count32(l.Burst)
}

// drainTime returns how long a unit takes to drain from a bucket, in nanoseconds, rounded
// down or up.
func drainTime(l ratelimit.Limit, up bool) int64 {
	if l.N == 0 {
		return 0
	}
	unit, rest := int64(l.Span)/int64(l.N), int64(l.Span)%int64(l.N)
	if up && rest > 0 {
		unit++
	}
	return unit
}

// reset makes m one of a key without events.
func (m *limitModel) reset() {
	for i := range m.limits {
		m.limits[i].charged = m.limits[i].charged[:0]
	}
}

// refuses judges the next event, which the log has at s, and reports whether it is
// refused.
func (m *limitModel) refuses(s int64) bool {
	refused := false
	for i := range m.limits {
		refused = refused || m.limits[i].refuses(s+m.judge)
	}
	if !refused || m.countRefused {
		for i := range m.limits {
			m.limits[i].add(s + m.charge)
		}
	}
	return refused
}

// refuses reports whether an event at t is refused.
func (l *modelLimit) refuses(t int64) bool {
	charged := len(l.charged)
	switch {
	case l.n == 0:
		return true
	case charged < l.n:
		return false
	case l.form == weighted:
		return l.weight(t) >= int64(l.n)
	}
	// A bucket has space if it drained what came before the n-1 last ones.
	return t < l.charged[charged-l.n]
}

// add charges an event at t.
func (l *modelLimit) add(t int64) {
	switch l.form {
	case bySlots:
		t = (ring.FloorDiv(t, l.width)+1)*l.width - 1 + l.span
	case weighted:
		t = ring.FloorDiv(t, l.width)
	case bucket:
		if n := len(l.charged); n > 0 {
			t = max(t, l.charged[n-1])
		}
		t += l.span
	}
	l.charged = append(l.charged, t)
}

// weight returns how much is used at t, rounded up, of a limit whose slots leave
// gradually.
func (l *modelLimit) weight(t int64) int64 {
	first := t - l.span + 1
	oldest := ring.FloorDiv(first, l.width)
	in := sort.Search(len(l.charged), func(i int) bool { return l.charged[i] >= oldest })
	newer := in + sort.Search(len(l.charged)-in, func(i int) bool { return l.charged[in+i] > oldest })
	count, left := int64(newer-in), (oldest+1)*l.width-first
	used := int64(len(l.charged) - newer)
	if l.whole > 0 && count >= int64(l.whole) {
		return used + count
	}
	hi, lo := bits.Mul64(uint64(count), uint64(left))
	part, rest := bits.Div64(hi, lo, uint64(l.width))
	if rest > 0 {
		part++
	}
	return used + int64(part)
}

// memory returns how long after an event the limits may still count it, if that was
// charged at its time.
func (m *limitModel) memory() (longest int64) {
	for i := range m.limits {
		l := &m.limits[i]
		remembered := l.span + l.width
		if l.form == bucket {
			remembered = int64(l.n) * l.span
		}
		longest = max(longest, remembered)
	}
	return longest
}
