package sampled

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/lately-go/lately/window"
)

// MinShare is the smallest share of events that a Counter can count: one in a
// billion.
const MinShare = 1e-9

const zeroValue = "sampled: this value is the zero value of its type, which is not usable: make it with its constructor, New or Counter.Sampler"

// A Counter counts a share p of the events in one window, chosen at random, and
// estimates from them how many events there were.
//
// Every event is counted with probability p, independently of all others. With
// k events counted, the estimate is k/p. It is unbiased: its mean is the true
// number, for any p. Its standard error is sqrt(k(1-p))/p, so 10,000 counted
// events give 1 %, and 100 give 10 %, for any number of events; see
// [Estimate.Interval]. The edge of the window adds its own error, as with any
// counter of slots; see [Counter.Bounds].
//
// An event that is not counted costs a random number and no clock reading. A
// counted event costs the same as in a [window.Counter]. A goroutine that adds
// many events should use a [Sampler] of its own. Only the first counted event
// allocates: the slots of the window.
//
// All methods are safe for concurrent use. The zero Counter is not usable: it
// panics; call [New]. A Counter must not be copied.
//
// Skipping a geometrically distributed number of events, instead of drawing a
// number for each, is the method of Fan, Muller and Rezucha (1962) and Vitter
// (1984).
type Counter struct {
	counted *window.Counter
	p       float64
	least   uint64 // of 64 random bits, the smallest number that counts: p is (2^64-least) / 2^64
}

// New returns an empty Counter for the window w that counts a share p of the
// events, from MinShare to 1. The error names the value that is wrong.
func New(w window.Window, p float64) (*Counter, error) {
	if !(p >= MinShare && p <= 1) { // so written, NaN is wrong too
		return nil, fmt.Errorf("sampled: share p = %v: must be from %v to 1", p, MinShare)
	}
	counted, err := window.NewCounter(w)
	if err != nil {
		return nil, err
	}
	c := &Counter{counted: counted, p: p}
	if p < 1 {
		c.least = -uint64(math.Ldexp(p, 64))
	}
	return c, nil
}

// P returns the share of events that is counted.
func (c *Counter) P() float64 { return c.p }

// Counted returns the window.Counter of the sample. Use it for the window, the
// slots and the statistics.
func (c *Counter) Counted() *window.Counter { return c.counted }

// Add records n events that happen now: each is counted with probability p. It
// costs a random number for one event, and for several, one for each that is
// counted.
func (c *Counter) Add(n uint64) {
	if hits := c.hits(n); hits > 0 {
		c.counted.Add(hits)
	}
}

// AddAt records n events that happened at t. Only the events of the sample can
// be refused as late or future; see [window.Counter.AddAt].
func (c *Counter) AddAt(t time.Time, n uint64) {
	if hits := c.hits(n); hits > 0 {
		c.counted.AddAt(t, hits)
	}
}

// made returns the counter of counted events. It panics for the zero Counter.
func (c *Counter) made() *window.Counter {
	if c.counted == nil {
		panic(zeroValue)
	}
	return c.counted
}

// hits returns how many of n events to count.
func (c *Counter) hits(n uint64) (hits uint64) {
	if n == 1 {
		if rand.Uint64() < c.least {
			return 0
		}
		c.made() // the zero Counter counts every event, and so comes here
		return 1
	}
	if c.least == 0 {
		c.made()
		return n
	}
	for skip := geometric(rand.Float64(), c.p); n > skip; skip = geometric(rand.Float64(), c.p) {
		n -= skip + 1
		hits++
	}
	return hits
}

// geometric converts u, uniform in [0, 1), to the number of events to skip
// before one that is counted: n with probability p(1-p)^n.
func geometric(u, p float64) uint64 {
	n := math.Log(1-u) / math.Log1p(-p) // for p = 1 it is a number over infinity, so 0
	return uint64(min(n, 1<<62))
}

// Sum returns the estimate for the window that ends now, without the oldest
// slot, which has partly expired.
func (c *Counter) Sum() Estimate { return Estimate{c.made().Sum(), c.p} }

// SumAt returns the estimate for the window that ends at t; see
// [window.Counter.SumAt].
func (c *Counter) SumAt(t time.Time) Estimate { return Estimate{c.made().SumAt(t), c.p} }

// Bounds returns the estimates for the lower and the upper bound of the window
// that ends now, without and with the oldest slot; see [window.Counter.Bounds].
func (c *Counter) Bounds() (lo, hi Estimate) {
	l, h := c.made().Bounds()
	return Estimate{l, c.p}, Estimate{h, c.p}
}

// BoundsAt returns the estimates for the bounds of the window that ends at t;
// see [window.Counter.BoundsAt].
func (c *Counter) BoundsAt(t time.Time) (lo, hi Estimate) {
	l, h := c.made().BoundsAt(t)
	return Estimate{l, c.p}, Estimate{h, c.p}
}
