package ratelimit

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/invalid"
	"github.com/lately-go/lately/window"
)

// An Adapt makes a rule's limits follow its traffic: a table gives N for the
// average number of events a second, over all keys of the rule, allowed or not.
// This N replaces N of each limit in the rule after the first average.
//
//	// 2000 while below 1000 a second, 1000 below 5000, else 500
//	Adapt{Steps: []AdaptStep{{Below: 1000, Limit: 2000}, {Below: 5000, Limit: 1000}}, Above: 500}
//
// N does not oscillate: between steps because of Hysteresis, with Smooth because
// the average is smoothed and N moves along a line. The average is taken at most
// fifty times per Span. An Adapt does not go with the algorithms that have a
// Burst.
type Adapt struct {
	// Span is over how long the traffic is averaged, from 1 s to 1 h; 0 means
	// 1 minute.
	Span time.Duration

	// Steps is the table: while the average is below Below of a row, its Limit applies, and Above
	// applies to all higher averages. Hysteresis is the share by which the average must fall below
	// a row before the row applies again; 0 means 0.1, a negative value none.
	Steps      []AdaptStep
	Above      uint64
	Hysteresis float64

	// Smooth, when not 0, is the time constant of exponential smoothing, from 1
	// s to 24 h: in that time N covers 63 % of the distance to its target. The
	// rows are then points, and the target is interpolated linearly between
	// them.
	Smooth time.Duration
}

const adaptSlots = 50 // divides every whole millisecond

func (a *Adapt) span() time.Duration { return cmp.Or(a.Span, time.Minute) }

// most returns the largest N that the table can come to.
func (a *Adapt) most() uint64 {
	n := a.Above
	for _, s := range a.Steps {
		n = max(n, s.Limit)
	}
	return n
}

// validate adds the invalid fields of a, which is part of r.
func (a *Adapt) validate(r *Rule, wrong *invalid.Fields) {
	wrong.Check(!r.Algorithm.Bursts(), "adapt", nil, "must be left out with gcra, token-bucket and leaky-bucket, which make a rate of the limit")
	wrong.Check(r.varying() < 0, "adapt", nil, "must be left out with a limit that comes with the request")
	s, most, last := a.span(), maxN(r.Algorithm), 0.0
	wrong.Check(s >= time.Second && s <= time.Hour && s%time.Millisecond == 0, "adapt.span", s, "must be whole milliseconds from 1s to 1h")
	wrong.Check(a.Smooth == 0 || a.Smooth >= time.Second && a.Smooth <= 24*time.Hour, "adapt.smooth", a.Smooth, "must be 1s to 24h, or left out")
	wrong.Check(a.Hysteresis < 1, "adapt.hysteresis", a.Hysteresis, "must be a share of less than 1")
	wrong.Check(len(a.Steps) > 0, "adapt.steps", invalid.Missing, "must be 1 or more")
	for i, step := range a.Steps {
		name, value := fmt.Sprintf("adapt.steps[%d]", i), fmt.Sprintf("%d below %v", step.Limit, step.Below)
		wrong.Check(step.Below > last && !math.IsInf(step.Below, 1), name, value, "must be more traffic than in the step before, and more than none")
		wrong.Check(step.Limit <= most, name, value, "the limit must be at most %d with %s", most, r.Algorithm)
		last = max(last, step.Below)
	}
	wrong.Check(a.Above <= most, "adapt.above", a.Above, "must be at most %d with %s", most, r.Algorithm)
}

// at returns N on the line through the table's points, whose last is Above at
// twice the last Below.
func (a *Adapt) at(average float64) float64 {
	x0, y0 := 0.0, float64(a.Steps[0].Limit)
	for i := range a.Steps {
		x1 := a.Steps[i].Below
		y1 := float64(a.limit(i + 1))
		if average < x1 {
			return y0 + (y1-y0)*(average-x0)/(x1-x0)
		}
		x0, y0 = x1, y1
	}
	return y0
}

// An adapter is an Adapt at work for one rule of a Memory.
type adapter struct {
	config  Adapt
	traffic *window.Counter

	n    atomic.Uint64 // holds now
	next atomic.Int64  // when the average is taken next

	mu     sync.Mutex // one takes the average at a time
	row    int        // of the table
	last   int64      // when it was taken
	smooth float64    // the smoothed average; negative before the first
}

func newAdapter(a Adapt, n uint64) *adapter {
	traffic, err := window.NewCounter(window.Window{Span: a.span(), Slot: a.span() / adaptSlots})
	if err != nil {
		panic(err) // NewSet has validated it
	}
	ad := &adapter{config: a, traffic: traffic, smooth: -1}
	ad.n.Store(n)
	ad.next.Store(math.MinInt64)
	return ad
}

// follow counts an event at now and returns the N that holds then.
func (ad *adapter) follow(now int64) uint64 {
	ad.traffic.AddAt(time.Unix(0, now), 1)
	if now >= ad.next.Load() {
		ad.measure(now)
	}
	return ad.n.Load()
}

func (ad *adapter) measure(now int64) {
	if !ad.mu.TryLock() {
		return // another event does it
	}
	defer ad.mu.Unlock()
	step := int64(ad.config.span() / adaptSlots)
	if next := ad.next.Load(); now < next {
		return
	} else if next == math.MinInt64 { // nothing to average yet
		ad.last = now
		ad.next.Store(now + step)
		return
	}
	average := float64(ad.traffic.SumAt(time.Unix(0, now))) / ad.config.span().Seconds()
	if ad.config.Smooth == 0 {
		ad.row = ad.config.row(ad.row, average)
		ad.n.Store(ad.config.limit(ad.row))
	} else {
		ad.n.Store(uint64(math.Round(ad.config.at(ad.smoothed(average, now)))))
	}
	ad.last = now
	ad.next.Store(now + step)
}

func (ad *adapter) smoothed(average float64, now int64) float64 {
	if ad.smooth < 0 {
		ad.smooth = average
	}
	share := 1 - math.Exp(-float64(now-ad.last)/float64(ad.config.Smooth))
	ad.smooth += (average - ad.smooth) * share
	return ad.smooth
}

// An AdaptStep is one row of an [Adapt]: while the average is less than Below
// events a second, the limit is Limit.
type AdaptStep struct {
	Below float64
	Limit uint64
}

const defaultHysteresis = 0.1

// row returns which row of the table holds for an average that was measured now, if
// that was the row before. The last row is that of Above.
//
// An average that reaches the Below of a row leaves that row at once. To return to
// the row it must fall below that by the hysteresis, so an average that oscillates
// around a threshold by less changes the limit once. A table with two thresholds is
// known as a Schmitt trigger. An average that is not a number changes nothing.
func (a *Adapt) row(row int, average float64) int {
	back := 1 - max(cmp.Or(a.Hysteresis, defaultHysteresis), 0)
	for row < len(a.Steps) && average >= a.Steps[row].Below {
		row++
	}
	for row > 0 && average < a.Steps[row-1].Below*back {
		row--
	}
	return row
}

// limit returns the limit of a row.
func (a *Adapt) limit(row int) uint64 {
	if row == len(a.Steps) {
		return a.Above
	}
	return a.Steps[row].Limit
}

// adapts exports what the rules with an Adapt have measured. The head of a chunk is a rule
// and its Adapt. The only entry is when it is measured next and was measured last, N, the
// limit of the row that holds, the smoothed average, and the slots of the traffic: how
// long before the chunk was written each begins, and its count.
func (x *exporter) adapts() bool {
	for _, mr := range x.m.rules.Load().rules {
		if mr.adapt == nil {
			continue
		}
		x.Begin(snapshot.Adapt, x.now)
		x.Buf = appendRule(x.Buf, mr.Rule)
		x.Buf = snapshot.AppendBytes(x.Buf, fmt.Append(nil, mr.adapt.config))
		x.EndHead()
		x.Buf = mr.adapt.append(x.Buf, x.now)
		if !x.Flush() {
			return false
		}
	}
	return true
}

// append appends the entry of ad, unless nothing has been judged.
func (ad *adapter) append(dst []byte, now int64) []byte {
	ad.mu.Lock()
	defer ad.mu.Unlock()
	next := ad.next.Load()
	if next == math.MinInt64 {
		return dst
	}
	dst = binary.AppendVarint(dst, next-now)
	dst = binary.AppendVarint(dst, ad.last-now)
	dst = binary.AppendUvarint(dst, ad.n.Load())
	dst = binary.AppendUvarint(dst, ad.config.limit(ad.row))
	dst = binary.AppendUvarint(dst, math.Float64bits(ad.smooth))
	for t, count := range ad.traffic.SlotsAt(time.Unix(0, now)) {
		if count > 0 {
			dst = binary.AppendVarint(dst, now-t.UnixNano())
			dst = binary.AppendUvarint(dst, count)
		}
	}
	return dst
}

// adapt restores what a rule has measured, if it has measured nothing yet.
func (in *chunkImport) adapt() error {
	mr, r := in.rule(), in.r
	config := r.Bytes(r.Len())
	next, last := in.written+r.Varint(), in.written+r.Varint()
	n, above, smooth := r.Uvarint(), r.Uvarint(), math.Float64frombits(r.Uvarint())
	if r.Failed() || !snapshot.ValidTime(next, int64(limit.MaxSpan)) || !snapshot.ValidTime(last, int64(limit.MaxSpan)) || !(smooth >= -1 && smooth < math.MaxUint32) {
		return errEntry
	}
	if mr == nil || mr.adapt == nil || fmt.Sprint(mr.adapt.config) != string(config) {
		in.done.Unknown++
		return nil
	}
	ad := mr.adapt
	ad.mu.Lock()
	defer ad.mu.Unlock()
	if ad.next.Load() != math.MinInt64 {
		in.done.Kept++
		return nil
	}
	for r.Len() > 0 {
		t, count := in.written-r.Varint(), r.Uvarint()
		if r.Failed() || !snapshot.ValidTime(t, int64(limit.MaxSpan)) {
			return errEntry
		}
		ad.traffic.AddAt(time.Unix(0, min(t, in.now)), count)
	}
	for ad.row < len(ad.config.Steps) && ad.config.limit(ad.row) != above {
		ad.row++
	}
	ad.n.Store(min(n, max(ad.config.most(), mr.Limits[0].N)))
	ad.smooth, ad.last = smooth, min(last, in.now)
	ad.next.Store(min(next, in.now+int64(ad.config.span()/adaptSlots)))
	return nil
}
