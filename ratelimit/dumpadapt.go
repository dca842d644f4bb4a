package ratelimit

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/lately-go/lately/internal/keytable"
)

// A chunk of traffic has one rule, its Adapt, when it is measured next and was
// measured last, N, the limit of the row that holds, the smoothed average, and
// the slots of the traffic: how long before the chunk was written each begins,
// and its count.

// adapts exports what the rules with an Adapt have measured.
func (x *dumper) adapts() bool {
	for _, mr := range x.m.rules.Load().rules {
		if mr.adapt == nil {
			continue
		}
		x.begin(dumpAdapt)
		x.chunk = appendRule(x.chunk, mr.Rule)
		x.chunk = keytable.AppendDumpBytes(x.chunk, appendAdapt(nil, &mr.adapt.config))
		x.head = len(x.chunk)
		x.adapt(mr.adapt)
		if !x.flush() {
			return false
		}
	}
	return true
}

func (x *dumper) adapt(ad *adapter) {
	ad.mu.Lock()
	defer ad.mu.Unlock()
	next := ad.next.Load()
	if next == math.MinInt64 {
		return // nothing has been judged
	}
	b := binary.AppendVarint(x.chunk, next-x.now)
	b = binary.AppendVarint(b, ad.last-x.now)
	b = binary.AppendUvarint(b, ad.n.Load())
	b = binary.AppendUvarint(b, ad.steps.limit())
	b = binary.AppendUvarint(b, math.Float64bits(ad.smooth))
	for t, count := range ad.traffic.SlotsAt(time.Unix(0, x.now)) {
		if count > 0 {
			b = binary.AppendVarint(b, x.now-t.UnixNano())
			b = binary.AppendUvarint(b, count)
		}
	}
	x.chunk = b
}

// appendAdapt appends an Adapt: the same bytes for those that are equal.
func appendAdapt(dst []byte, a *Adapt) []byte {
	numbers := []uint64{uint64(a.Span), a.Above, math.Float64bits(a.Hysteresis), uint64(a.Smooth)}
	for _, s := range a.Steps {
		numbers = append(numbers, math.Float64bits(s.Below), s.Limit)
	}
	for _, n := range numbers {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

var errNoTraffic = errors.New("there is no traffic of a rule")

// adapt restores what a rule has measured, if it has measured nothing yet.
func (u *undumper) adapt() error {
	mr := u.rule()
	config := u.r.Bytes(u.r.Len())
	next, last := u.written+u.r.Varint(), u.written+u.r.Varint()
	n, limit, smooth := u.r.Uvarint(), u.r.Uvarint(), math.Float64frombits(u.r.Uvarint())
	if u.r.Failed() || !keytable.DumpTime(next, int64(MaxSpan)) || !keytable.DumpTime(last, int64(MaxSpan)) || !(smooth >= -1 && smooth < math.MaxUint32) {
		return errNoTraffic
	}
	if mr == nil || mr.adapt == nil || string(appendAdapt(nil, &mr.adapt.config)) != string(config) {
		u.done.Unknown++
		return nil
	}
	ad := mr.adapt
	ad.mu.Lock()
	defer ad.mu.Unlock()
	if ad.next.Load() != math.MinInt64 {
		u.done.Kept++
		return nil
	}
	for u.r.Len() > 0 {
		t, count := u.written-u.r.Varint(), u.r.Uvarint()
		if u.r.Failed() || !keytable.DumpTime(t, int64(MaxSpan)) {
			return errNoTraffic
		}
		ad.traffic.AddAt(time.Unix(0, min(t, u.now)), count)
	}
	ad.steps.moveTo(limit)
	ad.n.Store(min(n, max(ad.config.most(), mr.Limits[0].N)))
	ad.smooth, ad.last = smooth, min(last, u.now)
	ad.next.Store(min(next, u.now+int64(ad.config.span()/adaptSlots)))
	return nil
}
