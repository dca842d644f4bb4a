package windowtest

import (
	"math/big"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// A bucket is the window of GCRA and LeakyBucket: a level that drains N in a span,
// without rounding.
type bucket struct {
	c     limit.Config
	n     uint64   // by which it drains since the time at
	level *big.Rat // at the time at
	at    int64
}

// most returns how much can be used: the burst or N. A limit of 0 refuses all.
func most(c limit.Config) uint64 {
	if c.N != 0 && c.Burst != 0 {
		return c.Burst
	}
	return c.N
}

func rational(n uint64) *big.Rat { return new(big.Rat).SetUint64(n) }

// drains returns how much drains in a time.
func (b *bucket) drains(ns int64) *big.Rat { return b.drainsBy(b.n, ns) }

func (b *bucket) drainsBy(n uint64, ns int64) *big.Rat {
	return new(big.Rat).Mul(rational(n), big.NewRat(ns, int64(b.c.Span)))
}

// levelAt returns how full the bucket is at t.
func (b *bucket) levelAt(t int64) *big.Rat {
	if b.level.Sign() == 0 {
		return new(big.Rat)
	}
	return positive(new(big.Rat).Sub(b.level, b.drains(t-b.at)))
}

// positive returns r, or 0 if that is more.
func positive(r *big.Rat) *big.Rat {
	if r.Sign() < 0 {
		return new(big.Rat)
	}
	return r
}

// setN makes n what the bucket drains by from t on.
func (b *bucket) setN(t int64, n uint64) { b.level, b.at, b.n = b.levelAt(t), t, n }

func (b *bucket) used(t int64) uint64 {
	level := b.levelAt(t)
	return ceilDiv(level.Num(), level.Denom())
}

// charge counts at most as much again beyond the burst, or N if that is more.
func (b *bucket) charge(t int64, cost uint64) {
	level := b.levelAt(t)
	if level.Add(level, rational(cost)); level.Cmp(b.full()) > 0 {
		level = b.full()
	}
	b.level, b.at = level, t
}

// full returns the highest level.
func (b *bucket) full() *big.Rat {
	if b.c.AtMost > 0 {
		return rational(2 * max(b.c.AtMost, b.c.Burst))
	}
	burst := most(b.c)
	return new(big.Rat).Add(rational(burst), rational(max(burst, b.c.N)))
}

// refund takes back what was charged, less what may have drained from it since.
func (b *bucket) refund(t, at int64, cost uint64) {
	back := rational(cost)
	if back.Sub(back, b.drainsBy(max(b.c.N, b.c.AtMost), t-at)); back.Sign() > 0 {
		level := b.levelAt(t)
		b.level, b.at = positive(level.Sub(level, back)), t
	}
}

// refundOldest leaves whole costs: the drained part of the oldest is not given back.
func (b *bucket) refundOldest(t int64, cost uint64) uint64 {
	used := b.used(t)
	taken := min(cost, used)
	if taken > 0 {
		b.level, b.at = rational(used-taken), t
	}
	return taken
}

// delay returns how long after t the event charged last waits for its turn.
func (b *bucket) delay(t int64) time.Duration {
	ahead := b.levelAt(t)
	ahead = positive(ahead.Sub(ahead, rational(1)))
	ahead.Quo(ahead, b.drains(1))
	return time.Duration(ceilDiv(ahead.Num(), ahead.Denom()))
}

// ceilDiv returns a/b rounded up, or the largest number; b is above 0.
func ceilDiv(a, b *big.Int) uint64 {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsUint64() {
		return 1<<64 - 1
	}
	return q.Uint64()
}
