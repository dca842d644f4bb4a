package storetest

import (
	"math/big"
	"slices"
)

// slotWindow counts slots of which a time may still be in the window: in full, or
// for the part of their times that is.
type slotWindow struct {
	charges
	span, width, resolution int64
	weighted                bool
}

// multiples returns how many times a clock of that resolution shows in [from, to].
func (w *slotWindow) multiples(from, to int64) int64 {
	return floor(to, w.resolution) - floor(from-1, w.resolution)
}

// left returns how many times of slot k are in the window at t, and how many
// there are.
func (w *slotWindow) left(k, t int64) (left, all int64) {
	from, to := k*w.width, (k+1)*w.width-1
	return max(w.multiples(max(from, t-w.span+1), to), 0), w.multiples(from, to)
}

func (w *slotWindow) used(t int64) (n uint64) {
	slots := map[int64]uint64{}
	for i := len(w.charges) - 1; i >= 0 && w.charges[i].t > t-w.span-w.width; i-- {
		slots[floor(w.charges[i].t, w.width)] += w.charges[i].cost
	}
	for k, sum := range slots {
		switch left, all := w.left(k, t); {
		case left == 0:
		case w.weighted:
			part := new(big.Int).Mul(big.NewInt(left), new(big.Int).SetUint64(sum))
			n += ceilDiv(part, big.NewInt(all))
		default:
			n += sum
		}
	}
	return n
}

func (w *slotWindow) charge(t int64, cost uint64) {
	w.forget(t - w.span - w.width)
	w.add(t, cost)
}

func (w *slotWindow) refund(t, at int64, cost uint64) {
	k := floor(at, w.width)
	if left, _ := w.left(k, t); left > 0 {
		w.take(cost, func(c int64) bool { return floor(c, w.width) == k })
	}
}

func (w *slotWindow) refundOldest(t int64, cost uint64) uint64 {
	return w.take(cost, func(c int64) bool { left, _ := w.left(floor(c, w.width), t); return left > 0 })
}

func (w *slotWindow) clone() window {
	return &slotWindow{w.charges.clone(), w.span, w.width, w.resolution, w.weighted}
}

// spillWindow counts times until there are more than three in the window, and
// slots from then on, until they have all left.
type spillWindow struct {
	slots   slotWindow // without what left before they counted
	spilled bool
	left    int64 // what left before they counted had this time, or an earlier one
}

// times returns what it is while it has not spilled.
func (w *spillWindow) times() *trueWindow { return &trueWindow{w.slots.charges, w.slots.span} }

func (w *spillWindow) used(t int64) uint64 {
	if w.spilled {
		return w.slots.used(t)
	}
	return w.times().used(t)
}

func (w *spillWindow) charge(t int64, cost uint64) {
	used := w.used(t)
	if used == 0 {
		w.slots.charges, w.spilled = nil, false
	}
	if most := uint64(3); !w.spilled && cost > most-min(used, most) {
		w.slots.charges = slices.DeleteFunc(w.slots.charges, func(c charge) bool { return c.t <= t-w.slots.span })
		w.spilled, w.left = true, t-w.slots.span
	}
	w.slots.charge(t, cost)
}

func (w *spillWindow) refund(t, at int64, cost uint64) {
	if w.spilled && at <= w.left {
		return
	}
	if w.spilled {
		w.slots.refund(t, at, cost)
		return
	}
	w.times().refund(t, at, cost)
}

func (w *spillWindow) refundOldest(t int64, cost uint64) uint64 {
	if w.spilled {
		return w.slots.refundOldest(t, cost)
	}
	return w.times().refundOldest(t, cost)
}

func (w *spillWindow) clone() window {
	c := *w
	c.slots.charges = w.slots.charges.clone()
	return &c
}
