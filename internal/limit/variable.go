package limit

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// variable is the window of GCRA and LeakyBucket where N is data: a bucket that drains, since
// the last charge, at the N of that. A level is no such bucket: it is
// the time of being empty, which means another amount under another N.
//
//	0  the time of the words below, as keytable.Stamp has it
//	1  how full it was then, in units of cost times the span in ns: the low 64 bits
//	2  the 32 bits above | N since then, 32 bits; 0 is that of the rule
//
// It counts what two of the largest buckets hold, and saturates there.
type variable struct {
	n, burst, atMost uint64
	span             uint64
	most             amount
}

// An amount is a cost times a span, in 128 bits.
type amount struct{ hi, lo uint64 }

func product(a, b uint64) amount {
	hi, lo := bits.Mul64(a, b)
	return amount{hi, lo}
}

func (a amount) less(b amount) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a amount) plus(b amount) amount {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return amount{a.hi + b.hi + carry, lo}
}

// minus returns a - b, or 0 if b is more.
func (a amount) minus(b amount) amount {
	if a.less(b) {
		return amount{}
	}
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	return amount{a.hi - b.hi - borrow, lo}
}

// over returns a / d, rounded up, at most math.MaxUint64.
func (a amount) over(d uint64) uint64 {
	if a.hi >= d {
		return math.MaxUint64
	}
	q, rest := bits.Div64(a.hi, a.lo, d)
	if rest > 0 {
		q++
	}
	return q
}

func newVariable(c *Config) *variable {
	v := &variable{n: c.N, burst: c.Burst, atMost: c.AtMost, span: uint64(c.Span)}
	v.most = product(2*max(c.AtMost, c.Burst), v.span)
	return v
}

func (*variable) words() int { return 3 }

const variableN = math.MaxUint32 // the bits of N in word 2

// rate returns the N by which the bucket drains.
func (v *variable) rate(w []uint64) uint64 {
	if n := w[2] & variableN; n != 0 {
		return n
	}
	return v.n
}

// full returns how full the bucket is at t.
func (v *variable) full(w []uint64, t int64) amount {
	if w[1] == 0 && w[2]>>32 == 0 {
		return amount{}
	}
	return amount{w[2] >> 32, w[1]}.minus(product(uint64(max(t-keytable.Time(w[0]), 0)), v.rate(w)))
}

func (v *variable) set(w []uint64, t int64, a amount, n uint64) {
	if v.most.less(a) {
		a = v.most
	}
	w[0], w[1], w[2] = keytable.Stamp(t), a.lo, a.hi<<32|n
}

// setN makes n the rate from t on.
func (v *variable) setN(w []uint64, t int64, n uint64) {
	if n == v.n {
		n = 0
	}
	if n != w[2]&variableN {
		v.set(w, t, v.full(w, t), n)
	}
}

func (v *variable) advance(w []uint64, _ *keytable.Blocks, t int64) uint64 { return v.used(w, nil, t) }

func (v *variable) used(w []uint64, _ *keytable.Blocks, t int64) uint64 {
	return v.full(w, t).over(v.span)
}

func (v *variable) charge(w []uint64, _ *keytable.Blocks, t int64, cost uint64) {
	v.set(w, t, v.full(w, t).plus(product(min(cost, 2*max(v.atMost, v.burst)), v.span)), w[2]&variableN)
}

// refund takes back, at t, what was charged at an earlier time, less what may have drained
// since at the largest N: how much that was is not known.
func (v *variable) refund(w []uint64, _ *keytable.Blocks, t, at int64, cost uint64) uint64 {
	drained := product(uint64(max(t-at, 0)), v.atMost)
	full, back := v.full(w, t), product(min(cost, v.atMost+v.burst), v.span).minus(drained)
	if !full.plus(drained).less(v.most) { // it may have been cut since
		return 0
	}
	if full.less(back) {
		back = full
	}
	v.set(w, t, full.minus(back), w[2]&variableN)
	taken, _ := bits.Div64(back.hi, back.lo, v.span)
	return taken
}

// refundOldest leaves whole units, as that of a level does.
func (v *variable) refundOldest(w []uint64, _ *keytable.Blocks, t int64, cost uint64) uint64 {
	used := v.used(w, nil, t)
	taken := min(cost, used)
	if taken > 0 {
		v.set(w, t, product(used-taken, v.span), w[2]&variableN)
	}
	return taken
}

// cut reports whether the bucket is at its most at t.
func (v *variable) cut(w []uint64, t int64) bool { return !v.full(w, t).less(v.most) }

func (v *variable) until(w []uint64, _ *keytable.Blocks, t int64, _, most uint64) int64 {
	wait := v.full(w, t).minus(product(most, v.span)).over(v.rate(w))
	return t + int64(min(wait, uint64(MaxSpan)))
}

func (v *variable) each(w []uint64, _ *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	if used := v.used(w, nil, t); used > 0 {
		yield(t, used)
	}
}

// appendState appends how full the bucket is, and its rate.
func (v *variable) appendState(dst []byte, w []uint64, _ *keytable.Blocks, t int64) []byte {
	full := v.full(w, t)
	dst = binary.AppendUvarint(dst, full.hi<<1|1)
	dst = binary.AppendUvarint(dst, full.lo)
	return binary.AppendUvarint(dst, w[2]&variableN)
}

func (v *variable) readState(r *snapshot.Reader, w []uint64, _ *keytable.Blocks, t, now int64) {
	hi := r.UpTo(v.most.hi<<1 | 1)
	if hi == 0 {
		return
	}
	a := amount{hi >> 1, r.Uvarint()}
	n := r.UpTo(variableN)
	if hi&1 == 0 || v.most.less(a) {
		r.Fail()
		return
	}
	v.set(w, min(t, now), a, n)
}
