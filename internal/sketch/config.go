package sketch

import (
	"fmt"
	"math"
	"time"
	"unsafe"
)

const (
	MinSpan = time.Millisecond          // the least Config.Span
	MaxSpan = 10 * 365 * 24 * time.Hour // the longest

	MaxRows     = 8       // the most Config.Rows
	MaxParts    = 1 << 12 // the most Config.Parts
	MaxCounters = 1 << 28 // the most Config.Counters

	defaultCounters = 1 << 16
	defaultRows     = 3
	defaultParts    = 64
	minPartCounters = 64 // with fewer in a part, some parts get many more keys than others
)

// Config is what a [Window] counts and how large it is. Only Span must be set.
type Config struct {
	// N is the limit: a key is admitted while its count stays within N.
	// A count needs no more bits than N does: a counter takes 16 bytes for N
	// below 255, 32 below 65,535, else 64. 0 admits nothing.
	N uint64

	// Span is how long a charge counts, from MinSpan to MaxSpan. It may count
	// an eighth of the span longer.
	Span time.Duration

	// Counters is how many counters a row has, rounded up to a multiple of
	// Parts. 0 means 65,536, the most is MaxCounters.
	Counters int

	// Rows is how many counters a key has, up to MaxRows. 0 means 3: with
	// the same bytes, more are better while few keys come and worse when
	// many do.
	Rows int

	// Parts is how many locks there are, up to MaxParts; all counters of a
	// key are under one of them. 0 means 64, or one for every 64 counters
	// of a row if that is less.
	Parts int
}

// withDefaults returns c with what it leaves open filled in.
func (c Config) withDefaults() Config {
	if c.Counters == 0 {
		c.Counters = defaultCounters
	}
	if c.Rows == 0 {
		c.Rows = defaultRows
	}
	if c.Parts == 0 {
		c.Parts = min(defaultParts, max(c.Counters/minPartCounters, 1))
	}
	return c
}

func (c Config) check() error {
	switch {
	case c.Span < MinSpan || c.Span > MaxSpan:
		return fmt.Errorf("sketch: span %v: must be %v to %v", c.Span, MinSpan, MaxSpan)
	case c.Counters < 0 || c.Counters > MaxCounters:
		return fmt.Errorf("sketch: counters %d: must be 0 (the default, %d) to %d", c.Counters, defaultCounters, MaxCounters)
	case c.Rows < 0 || c.Rows > MaxRows:
		return fmt.Errorf("sketch: rows %d: must be 0 (the default, %d) to %d", c.Rows, defaultRows, MaxRows)
	case c.Parts < 0 || c.Parts > MaxParts:
		return fmt.Errorf("sketch: parts %d: must be 0 (the default, at most %d) to %d", c.Parts, defaultParts, MaxParts)
	}
	if bytes := Bytes(c); bytes > math.MaxInt/2 {
		return fmt.Errorf("sketch: counters %d and rows %d take %d bytes: must be addressable", c.Counters, c.Rows, bytes)
	}
	return nil
}

// columns returns how many counters a row has in each part.
func (c Config) columns() int { return (c.Counters + c.Parts - 1) / c.Parts }

// counterBytes is what the counters take.
func (c Config) counterBytes() int64 {
	return int64(c.columns()) * int64(c.Parts) * int64(c.Rows) * int64(cellFor(c.N).words) * 8
}

// fixedBytes is what the rest takes, the allocator's rounding included.
func (c Config) fixedBytes() int64 {
	return allocated(int64(c.Parts)*int64(unsafe.Sizeof(part{}))) + allocated(int64(unsafe.Sizeof(Window{})))
}

// allocated bounds what the allocator makes of n bytes: it rounds small objects
// up to a size class, by an eighth at most, and those above 32 KiB to pages of
// 8 KiB.
func allocated(n int64) int64 {
	if n > small {
		return (n + page - 1) / page * page
	}
	return n + n/8 + 16
}

// within returns an n for which allocated is at most bytes.
func within(bytes int64) int64 {
	if bytes >= small+page {
		return bytes / page * page
	}
	return min((bytes-16)*8/9, small)
}

const (
	page  = 8 << 10
	small = 4 * page
)

// Bytes returns what a [Window] of c takes from New on, for good: all it ever
// allocates, the allocator's rounding included.
func Bytes(c Config) int64 {
	c = c.withDefaults()
	return allocated(c.counterBytes()) + c.fixedBytes()
}

// Fit returns c with the most Counters for which Bytes is at most bytes, and
// with the Parts that go with them unless c has its own. ok is false if bytes
// are too few for one counter in each part.
func Fit(c Config, bytes int64) (fitted Config, ok bool) {
	counter := int64(cellFor(c.N).words) * 8 * int64(c.withDefaults().Rows)
	c.Counters = int(min(bytes/counter, MaxCounters))
	if c.Counters <= 0 {
		return c, false
	}
	c = c.withDefaults()
	fits := within(bytes - c.fixedBytes())
	c.Counters = min(int(fits/counter), MaxCounters) / c.Parts * c.Parts
	return c, c.Counters > 0
}
