package ratelimit

import (
	"slices"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/invalid"
	"github.com/lately-go/lately/match"
)

// A LimitBy takes N of a limit with [Limit.AtMost] from the event: a limit for each customer
// that is data and not a rule.
type LimitBy struct {
	// Field is the field of the event that determines N. If only a key is judged, the
	// field has the value that it has in the key, or else none.
	Field string

	// Plans has N for each value of the field, such as the name of a plan or of a customer.
	// Nil means that the value is N, in decimal digits. Values of a hashed field are digests.
	//
	// Without N, or with an N of 0, the event is judged by N of the limit; one above AtMost
	// is AtMost. Plans must be safe for concurrent use.
	Plans interface {
		// N returns N for a value of the field, and false if there is none. It must not keep or
		// change value.
		N(value []byte) (n uint64, ok bool)
	}
}

// varying returns which limit of r has AtMost, or -1.
func (r *Rule) varying() int {
	return slices.IndexFunc(r.Limits, func(l Limit) bool { return l.AtMost > 0 })
}

// limitBy returns the field of LimitBy as a key, with the fold of the rule's; it is zero without one.
func (r *Rule) limitBy(wrong *invalid.Fields) match.Key {
	if r.LimitBy == nil {
		return match.Key{}
	}
	k, err := match.NewKey(r.Key.Fold(), r.LimitBy.Field)
	wrong.CheckNil(err, "limit_by")
	return k
}

// limitOf returns N of an event under the i-th rule, whose LimitBy has that value, or 0 for N
// of the rule.
func (s *Set) limitOf(i int, value []byte) uint64 {
	r := s.rules[i]
	var n uint64
	switch plans := r.LimitBy.Plans; {
	case len(value) == 0:
		return 0
	case plans == nil:
		n = parseN(value)
	default:
		if found, ok := plans.N(value); ok {
			n = found
		}
	}
	return min(n, r.Limits[s.varying[i]].AtMost)
}

// limitOfKey is limitOf for a query about a key under the i-th rule.
func (s *Set) limitOfKey(i int, q *batch.Query, key []byte) (uint64, error) {
	r := s.rules[i]
	switch {
	case q.Limit == 0:
	case s.varying[i] < 0:
		return 0, &batch.FixedLimitError{Rule: r.Name}
	default:
		return min(q.Limit, r.Limits[s.varying[i]].AtMost), nil
	}
	return s.limitOf(i, keyvalue.Of(r.Key, key, r.LimitBy.Field)), nil
}

// parseN parses N in decimal digits, and returns 0 for anything else. What is above any
// AtMost it may return as something else that is.
func parseN(value []byte) (n uint64) {
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0
		}
		if n <= limit.MaxN {
			n = n*10 + uint64(c-'0')
		}
	}
	return n
}
