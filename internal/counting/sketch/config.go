package sketch

import (
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/counting/keytable"
)

const (
	// rows is how many counters a key has. With the same bytes, more are better
	// while few keys come, and worse when many do.
	rows = 3

	maxParts        = 64
	minPartCounters = 64 // with fewer in a part, some parts get many more keys than others
)

// Config is what a [Window] counts and how large it is.
type Config struct {
	// N is the limit: a key is allowed while its count stays within N.
	// A count needs no more bits than N does: a counter takes 16 bytes for N
	// below 255, 32 below 65,535, else 64. 0 allows nothing.
	N uint64

	// Span is how long a charge counts, from 1 ms to 10 years. It may count an
	// eighth of the span longer.
	Span time.Duration

	// Counters is how many counters a row has, 1 or more; see [Fit].
	Counters int
}

// parts returns how many locks there are. All counters of a key are under one of them.
func (c Config) parts() int { return min(maxParts, max(c.Counters/minPartCounters, 1)) }

// columns returns how many counters a row has in each part.
func (c Config) columns() int { return (c.Counters + c.parts() - 1) / c.parts() }

// counterWords is the length of all counters.
func (c Config) counterWords() int { return c.columns() * c.parts() * rows * cellFor(c.N).words }

// Bytes returns what a [Window] of c takes from New on, for good: all it ever
// allocates, the allocator's rounding included.
func Bytes(c Config) int64 {
	return keytable.Allocated(int64(c.counterWords())*8) + keytable.Allocated(int64(c.parts())*int64(unsafe.Sizeof(part{}))) +
		keytable.Allocated(int64(unsafe.Sizeof(Window{})))
}

// Fit returns the Config of n and span with about the most Counters for which Bytes
// is at most bytes. ok is false if bytes are too few for one counter.
func Fit(n uint64, span time.Duration, bytes int64) (c Config, ok bool) {
	c = Config{N: n, Span: span, Counters: int(bytes / int64(rows*8*cellFor(n).words))}
	for c.Counters > 0 && Bytes(c) > bytes {
		c.Counters -= c.Counters/128 + 1
	}
	return c, c.Counters > 0
}
