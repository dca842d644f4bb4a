package replay

import (
	"slices"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A trial is the search for the least N of a group and span. So far, lo
// refuses too many keys and hi does not. A limit of up to 128 counts exactly, so that the
// peaks of the keys give N. Above, it may refuse earlier than a true window would, so that
// the log is judged.
type trial struct {
	*suggestGroup
	span               time.Duration
	lo, hi             uint64
	loJudged, hiJudged bool
	atLo               int64 // keys that lo refuses
	always             uint64
}

// unknownFraction returns the largest fraction that the times of the log may lack, in
// nanoseconds: 0 if they are as precise as a live clock, or were rounded down on demand.
//
// A time may have a million different fractions: those of a second are whole
// microseconds. So a clock that reads a nanosecond before a full second, and at no other
// second, is not considered.
func (r *run) unknownFraction() int64 {
	if r.Resolution != 0 {
		return 0
	}
	return int64(r.coarsest - max(r.coarsest/1_000_000, 1))
}

// leastOfGroup is the least limit for a group that was not asked for, and for one that no
// ordinary key has events of: few keys have such events, so that the least limit for them would be too close to what others may do tomorrow.
const leastOfGroup = 5

func (s *suggesting) newTrial(g *suggestGroup, span time.Duration) *trial {
	late := func(n uint64) int64 {
		return int64(ratelimit.Limit{N: n, Span: span}.MaxLate(ratelimit.Sliding))
	}
	t := &trial{suggestGroup: g, span: span, hi: s.peakOf(g, int64(span))}
	if (g.auto || g.need == 0) && t.hi < leastOfGroup {
		t.hi, t.lo, t.hiJudged, t.loJudged = leastOfGroup, leastOfGroup-1, true, true
		return t
	}
	t.lo = t.hi - 1
	if wide := late(t.hi); wide > 0 {
		t.hi = max(s.peakOf(g, int64(span)+wide), t.hi)
	}
	if unknown := s.run.unknownFraction(); unknown > 0 {
		t.always = s.peakOf(g, int64(span)+unknown)
		if wide := late(t.always); wide > 0 {
			t.always = s.peakOf(g, int64(span)+unknown+wide)
		}
	}
	return t
}

// next returns the limit to judge next. It reports false if N is found: hi.
func (t *trial) next() (n uint64, ok bool) {
	switch {
	case t.hi-t.lo > 1:
		return t.lo + (t.hi-t.lo)/2, true
	case !t.hiJudged:
		return t.hi, true
	case !t.loJudged:
		return t.lo, true
	}
	return 0, false
}

// judged takes into account that a limit of n refuses so many keys of the group.
func (t *trial) judged(n uint64, keys, refused int64) {
	if keys-refused >= t.need {
		if n <= t.lo {
			t.lo, t.loJudged = n/2, false
		}
		t.hi, t.hiJudged = n, true
		return
	}
	if n >= t.hi {
		t.hi, t.hiJudged = 2*n, false
	}
	t.lo, t.loJudged, t.atLo = n, true, refused
}

// peaks returns for each ordinary key of g the most events in any window of that length.
func (s *suggesting) peaks(g *suggestGroup, span int64) []int64 {
	peaks := make([]int64, len(g.from)-1)
	s.run.parallel(s.run.Cores, func(part int) {
		var own []moment
		for id := part; id < len(peaks); id += s.run.Cores {
			if !s.kinds[id].ordinary() {
				continue
			}
			own = s.momentsOf(own[:0], g.own[g.from[id]:g.from[id+1]])
			peaks[id] = peak(own, len(own), span)
		}
	})
	return peaks
}

// peakOf returns the least N that as many keys of g as must be never exceed in any window
// of that length.
func (s *suggesting) peakOf(g *suggestGroup, span int64) uint64 {
	peaks := s.peaks(g, span)
	slices.Sort(peaks)
	none, _ := slices.BinarySearch(peaks, 1)
	if g.need == 0 {
		return 0
	}
	return uint64(peaks[int64(none)+g.need-1])
}
