package replay

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A log often has coarser times than a live clock: the time of an event is then
// known only to be in [s, s+d], where s is what the log has and d is a little less
// than its precision. What a limit refuses depends on where the events of a key are
// in there. A pace is a model of a rule's limits for one key that gives bounds.
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
// same two models are its bounds. Algorithm fixed is not of this kind: see fixedRange.
type pace struct {
	limits       []paceLimit
	countRefused bool
	early, late  int64 // what is added to a time: when it is judged, when it is charged
	charged      int   // events so far

	calendar *ratelimit.RuleLimiter // in place of limits
	key      int
}

// A paceLimit is one limit of a pace.
type paceLimit struct {
	form    paceForm
	n       int   // how many fit, or the burst
	span    int64 // of the window, or of a unit in a bucket that drains
	width   int64 // of a slot
	most    int64 // of a bucket, how far ahead the time of empty gets
	burst   int64 // of a bucket, how long all but one that fit take to drain
	cut     int   // of a ring, the count at which a slot is not weighed any more; 0 is none
	leaves  []int64
	drained []int64 // of a bucket, the time of empty after each charge, if it is not cut
}

// A paceForm is how a limit counts.
type paceForm uint8

const (
	paceLog      paceForm = iota // each event leaves a span after it came
	paceSlots                    // it leaves with its slot
	paceWeighted                 // its slot leaves gradually
	paceBucket
)

// slidingInline is how many times sliding may drop, exactly when they leave, before
// it counts by slots.
const slidingInline = 3

// newPace returns the model of rule that refuses least or most, for fractions of up
// to d nanoseconds. ok is false for algorithms that have none.
func newPace(rule *ratelimit.Rule, d int64, most bool) (p *pace, ok bool) {
	p = &pace{countRefused: rule.CountRefused && rule.Algorithm != ratelimit.InFlight}
	if p.early = d; most {
		p.early, p.late = 0, d
	}
	if rule.Algorithm == ratelimit.Calendar {
		return p, p.byCalendar(rule, most)
	}
	for _, l := range rule.Limits {
		pl := paceLimit{span: int64(l.Span), n: count32(l.N)}
		if rule.Adapt != nil {
			pl.n = adaptedN(rule.Adapt, l.N, most)
		}
		late := int64(l.MaxLate(rule.Algorithm)) // a slot, where there are slots
		switch a := rule.Algorithm; {
		case a == ratelimit.Exact, a == ratelimit.InFlight, a == ratelimit.Sliding && late == 0 && rule.Adapt == nil:
		case a == ratelimit.Sliding && most:
			pl.form, pl.width = paceSlots, int64(l.MaxLate(ratelimit.Weighted))
		case a == ratelimit.Sliding && rule.Adapt != nil: // by times or by slots; by times less is refused
		case a == ratelimit.Sliding:
			pl.form, pl.width = paceSlots, late
			pl.n += slidingInline
		case a == ratelimit.Weighted:
			pl.form, pl.width, pl.cut = paceWeighted, late, math.MaxUint8
		case a == ratelimit.TwoBucket:
			pl.form, pl.width = paceWeighted, late
		case a == ratelimit.GCRA, a == ratelimit.LeakyBucket:
			pl.bucket(l, most)
		default:
			return nil, false
		}
		p.limits = append(p.limits, pl)
	}
	return p, true
}

// byCalendar makes p count by the calendar, whose edges are full seconds: where an
// event is in its second does not matter. So both models are the limiter itself.
func (p *pace) byCalendar(rule *ratelimit.Rule, most bool) bool {
	key, err := match.NewKey(match.Fold{Off: true}, match.Client.String())
	if err != nil {
		return false
	}
	alone := ratelimit.Rule{Name: rule.Name, Key: key, Algorithm: rule.Algorithm, Zone: rule.Zone, CountRefused: rule.CountRefused}
	for _, l := range rule.Limits {
		if rule.Adapt != nil {
			l.N = uint64(adaptedN(rule.Adapt, l.N, most))
		}
		alone.Limits = append(alone.Limits, l)
		p.limits = append(p.limits, paceLimit{span: int64(l.Window())})
	}
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, alone)
	if err != nil {
		return false
	}
	limiter, err := ratelimit.NewLimiter(set, ratelimit.Config{Budget: ratelimit.NoBudget})
	if err != nil {
		return false
	}
	p.calendar, err = limiter.Rule(alone.Name)
	return err == nil
}

func count32(n uint64) int { return int(min(n, math.MaxInt32)) }

// adaptedN returns the most that an adapted N can be, for the model that refuses
// least, or the least.
func adaptedN(a *ratelimit.Adapt, n uint64, most bool) int {
	all := []uint64{n, a.Above}
	for _, s := range a.Steps {
		all = append(all, s.Limit)
	}
	if most {
		return count32(slices.Min(all))
	}
	return count32(slices.Max(all))
}

// bucket makes l a bucket. A unit drains in span/n, rounded so that the bound holds.
func (l *paceLimit) bucket(limit ratelimit.Limit, most bool) {
	l.form = paceBucket
	if limit.N == 0 {
		return // n is 0
	}
	unit, other := int64(limit.Span)/int64(limit.N), int64(limit.Span)/int64(limit.N)
	if int64(limit.Span)%int64(limit.N) != 0 {
		if other++; most {
			unit, other = other, unit
		}
	}
	l.span = unit
	if limit.Burst != 0 {
		l.n = count32(limit.Burst)
	}
	l.burst = int64(l.n-1) * other
	drain := time.Duration(float64(l.n)*float64(limit.Span)/float64(limit.N)) + 2
	if !most {
		drain -= 4
	}
	l.most = int64(drain + max(drain, limit.Span))
}

// reset makes p one of a key that nothing is known of.
func (p *pace) reset() {
	p.charged = 0
	p.key++
	for i := range p.limits {
		p.limits[i].leaves, p.limits[i].drained = p.limits[i].leaves[:0], p.limits[i].drained[:0]
	}
}

// refuses judges the next event, which the log has at s, and reports whether it is
// refused.
func (p *pace) refuses(s int64) bool {
	if p.calendar != nil {
		return !p.calendar.TakeN(time.Unix(0, s), 1, strconv.Itoa(p.key)).Allowed
	}
	refused := false
	for i := range p.limits {
		if p.limits[i].refuses(s+p.early, p.charged, p.countRefused) {
			refused = true
			break
		}
	}
	if !refused || p.countRefused {
		for i := range p.limits {
			p.limits[i].charge(s + p.late)
		}
		p.charged++
	}
	return refused
}

// refuses reports whether an event at t is refused, when so many were charged.
func (l *paceLimit) refuses(t int64, charged int, counted bool) bool {
	switch {
	case l.n == 0:
		return true
	case charged < l.n && l.form != paceBucket:
		return false
	case l.form == paceWeighted:
		return l.weighed(t) >= int64(l.n)
	case charged < l.n:
		return false
	case l.form != paceBucket:
		return t < l.leaves[charged-l.n]
	}
	// An event fits as soon as the n-1 before it do not keep the bucket from having
	// drained what came before these.
	return t < l.drained[charged-l.n] && (!counted || t < l.leaves[charged-1]-l.burst)
}

func (l *paceLimit) charge(t int64) {
	switch l.form {
	case paceLog:
		l.leaves = append(l.leaves, t+l.span)
	case paceSlots:
		l.leaves = append(l.leaves, (floorDiv(t, l.width)+1)*l.width-1+l.span)
	case paceWeighted:
		l.leaves = append(l.leaves, floorDiv(t, l.width))
	case paceBucket:
		empty, cut := t, t
		if n := len(l.leaves); n > 0 {
			empty, cut = max(empty, l.drained[n-1]), max(cut, l.leaves[n-1])
		}
		l.drained = append(l.drained, empty+l.span)
		l.leaves = append(l.leaves, min(cut+l.span, t+l.most))
	}
}

// weighed returns how much is used at t, rounded up, of a limit whose slots leave
// gradually; leaves has the slots of the events.
func (l *paceLimit) weighed(t int64) int64 {
	first := t - l.span + 1
	oldest := floorDiv(first, l.width)
	in := sort.Search(len(l.leaves), func(i int) bool { return l.leaves[i] >= oldest })
	whole := in + sort.Search(len(l.leaves)-in, func(i int) bool { return l.leaves[in+i] > oldest })
	count, left := int64(whole-in), (oldest+1)*l.width-first
	used := int64(len(l.leaves) - whole)
	if l.cut > 0 && count >= int64(l.cut) {
		return used + count
	}
	hi, lo := bits.Mul64(uint64(count), uint64(left))
	part, rest := bits.Div64(hi, lo, uint64(l.width))
	if rest > 0 {
		part++
	}
	return used + int64(part)
}

// memory returns how long after an event the limits may still count it.
func (p *pace) memory() int64 {
	longest := int64(0)
	for i := range p.limits {
		l := &p.limits[i]
		switch l.form {
		case paceBucket:
			longest = max(longest, l.most)
		default:
			longest = max(longest, l.span+l.width)
		}
	}
	return longest
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
