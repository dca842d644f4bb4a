package sketch

import "time"

// The spans that a Config may have.
const (
	MinSpan = time.Millisecond
	MaxSpan = 10 * 365 * 24 * time.Hour
)

// Take charges the key with cost at time t if it is allowed, that is if its
// count and cost are at most N, and reports whether it is, in one atomic step.
// used is the key's count before, math.MaxUint64 if that is unknown. wait is 0
// if ok; else, how long after t the same cost would be allowed if nothing were
// charged until then, or Never if cost is above N.
func (w *Window) Take(hash uint64, t int64, cost uint64) (ok bool, used uint64, wait time.Duration) {
	h := w.Lock(hash)
	defer h.Unlock()
	used, keep := h.walk(t, w.n-min(cost, w.n))
	switch {
	case cost > w.n:
		return false, used, Never
	case used <= w.n-cost:
		h.Charge(t, cost)
		return true, used, 0
	}
	return false, used, time.Duration(w.gone(keep) - t)
}

// Used is [Held.Used] for a caller without a lock.
func (w *Window) Used(hash uint64, t int64) uint64 {
	h := w.Lock(hash)
	defer h.Unlock()
	return h.Used(t)
}

// Charge is [Held.Charge] for a caller without a lock.
func (w *Window) Charge(hash uint64, t int64, cost uint64) {
	h := w.Lock(hash)
	defer h.Unlock()
	h.Charge(t, cost)
}

// Noise returns by how much the count of a key is too high at time t, on average over keys without charges, and the share
// of such keys that would be refused for it. It is an estimate from a thousand keys, and locks a part for each.
func (w *Window) Noise(t int64) (mean, refused float64) {
	const samples = 1000
	for i := range uint64(samples) {
		used := w.Used(mix(^i), t)
		if used >= w.n {
			refused++
		}
		mean += float64(min(used, w.n))
	}
	return mean / samples, refused / samples
}
