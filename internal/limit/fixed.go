package limit

import (
	"encoding/binary"
	"math"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// A period is what Fixed and Calendar have in common: word 0 is when the window ends, and
// word 1 its count, which saturates.
type period struct{}

func (period) words() int { return 2 }

func (period) advance(w []uint64, _ *keytable.Blocks, t int64) uint64 {
	if t >= int64(w[0]) {
		w[1] = 0
	}
	return w[1]
}

func (period) each(w []uint64, _ *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	if w[1] > 0 {
		yield(t, w[1])
	}
}

func (period) used(w []uint64, _ *keytable.Blocks, _ int64) uint64 { return w[1] }

func (period) refundOldest(w []uint64, _ *keytable.Blocks, _ int64, cost uint64) uint64 {
	return takeBack(&w[1], cost)
}

func (period) until(w []uint64, _ *keytable.Blocks, _ int64, _, _ uint64) int64 {
	return int64(w[0])
}

// fixed is the window of Fixed. It begins with the first event after the last one ended.
type fixed struct {
	period
	span int64
}

func newFixed(c *Config) window { return &fixed{span: int64(c.Span)} }

// begins returns when the window of w, which has an end, begins.
func (f *fixed) begins(w []uint64) int64 { return int64(w[0]) - f.span }

func (f *fixed) charge(w []uint64, _ *keytable.Blocks, t int64, cost uint64) {
	if w[1] == 0 {
		w[0] = uint64(t + f.span)
	}
	w[1] = addSaturated(w[1], cost)
}

func (f *fixed) refund(w []uint64, _ *keytable.Blocks, _, at int64, cost uint64) uint64 {
	if at < f.begins(w) {
		return 0
	}
	return takeBack(&w[1], cost)
}

// carry makes w hold the window of was, with the span of f.
func (f *fixed) carry(w []uint64, was *fixed, fw []uint64, t int64) {
	w[0], w[1] = uint64(was.begins(fw)+f.span), fw[1]
	f.advance(w, nil, t)
}

// appendState appends the count, and how long before t the window began.
func (f *fixed) appendState(dst []byte, w []uint64, _ *keytable.Blocks, t int64) []byte {
	dst = binary.AppendUvarint(dst, w[1])
	return binary.AppendUvarint(dst, uint64(t-f.begins(w)))
}

func (f *fixed) readState(r *snapshot.Reader, w []uint64, _ *keytable.Blocks, t, now int64) {
	if count := r.Uvarint(); count > 0 {
		w[0], w[1] = uint64(min(t-int64(r.UpTo(snapshot.MaxPast)), now)+f.span), count
	}
}

func addSaturated(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}

// takeBack takes up to cost from count and returns how much: nothing if the
// count has saturated, for what did not fit is not known.
func takeBack(count *uint64, cost uint64) uint64 {
	if *count == math.MaxUint64 {
		return 0
	}
	taken := min(cost, *count)
	*count -= taken
	return taken
}
