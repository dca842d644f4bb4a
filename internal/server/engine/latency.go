package engine

import (
	"sync/atomic"
	"time"
)

// latencyBounds are the upper bounds of the buckets of a [Latency]. Durations above the last
// one are in one more bucket.
var latencyBounds = [...]time.Duration{
	5 * time.Microsecond, 10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond,
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	100 * time.Millisecond, time.Second,
}

// A Latency is a histogram of the durations of decisions. Each connection adds to one of
// several parts, so that cores seldom write to the same cache line. Its zero value is empty
// and ready to use.
type Latency struct {
	observers atomic.Uint32
	parts     [32]LatencyPart
}

// A LatencyPart is the histogram of some of the connections.
type LatencyPart struct {
	sum     atomic.Int64 // nanoseconds
	buckets [len(latencyBounds) + 1]atomic.Uint64
}

// Part returns the part for one more connection.
func (l *Latency) Part() *LatencyPart { return &l.parts[l.observers.Add(1)%uint32(len(l.parts))] }

// Observe counts n decisions that took d each.
func (p *LatencyPart) Observe(d time.Duration, n uint64) {
	i := 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	p.buckets[i].Add(n)
	p.sum.Add(int64(d) * int64(n))
}

// Count returns how many decisions were counted, their sum, and for each bound in seconds how
// many took no longer. Concurrent decisions may be in sum and not in n.
func (l *Latency) Count() (n uint64, sum time.Duration, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(latencyBounds))
	for i := range l.parts {
		sum += time.Duration(l.parts[i].sum.Load())
	}
	for b := range len(latencyBounds) + 1 {
		for i := range l.parts {
			n += l.parts[i].buckets[b].Load()
		}
		if b < len(latencyBounds) {
			buckets[latencyBounds[b].Seconds()] = n
		}
	}
	return n, sum, buckets
}
