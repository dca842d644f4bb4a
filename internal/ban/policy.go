package ban

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/invalid"
)

// A Policy says when a rule bans a key, and for how long. It has the fields of
// ratelimit.Ban, which documents them.
type Policy struct {
	After    uint64
	Of       Cause
	Field    string
	Span     time.Duration
	For      time.Duration
	Factor   float64
	Steps    []time.Duration
	Max      time.Duration
	Jitter   float64
	Extend   bool
	Remember time.Duration
}

// A Cause is what a rule counts toward a ban.
type Cause uint8

const (
	Hits     Cause = iota // every matching event
	Refusals              // every event that a limit of the rule refuses
	Distinct              // every value of a field, once
)

var causes = [...]string{"hits", "refusals", "distinct values"}

// String returns "hits", "refusals" or "distinct values".
func (c Cause) String() string {
	if c <= Distinct {
		return causes[c]
	}
	return "cause?"
}

const (
	// MaxSteps is the largest number of Steps.
	MaxSteps = 64

	// MaxAfter is the largest After.
	MaxAfter = limit.MaxLog

	// MaxSpan is the longest ban, and the longest time for which one is remembered.
	MaxSpan = limit.MaxSpan

	// DefaultRemember is how long bans are remembered that no Policy governs.
	DefaultRemember = 24 * time.Hour

	maxFactor = 1000
)

// Validate returns the invalid fields.
func (p *Policy) Validate() (wrong invalid.Fields) {
	span := func(name string, d time.Duration) { wrong.Check(limit.ValidSpan(d), name, d, limit.MustSpan) }
	first, steps := p.For, len(p.Steps) > 0
	if steps {
		first = p.Steps[0]
	}
	wrong.Check(p.After <= MaxAfter, "ban.after", p.After, "must be at most %d", MaxAfter)
	wrong.Check(p.Of <= Distinct, "ban.after", nil, "cause %d: must be Hits, Refusals or Distinct", p.Of)
	wrong.Check(limit.ValidSpan(p.Span), "ban.after", nil, "span %v: %s", p.Span, limit.MustSpan)
	wrong.Check(p.Of != Distinct || p.Field != "", "ban.field", invalid.Missing, "must be the field whose distinct values are counted")
	wrong.Check(p.Of == Distinct || p.Field == "", "ban.field", p.Field, "must be left out, as %s are counted", p.Of)
	if !steps {
		span("ban.for", p.For)
	}
	for i, d := range p.Steps {
		span(fmt.Sprintf("ban.for[%d]", i), d)
	}
	wrong.Check(len(p.Steps) <= MaxSteps, "ban.for", nil, "%d elements: must be at most %d", len(p.Steps), MaxSteps)
	wrong.Check(!steps || p.For == 0 || p.For == first, "ban.for", p.For, "must be 0 with steps, or the first of them, %v", first)
	wrong.Check(!steps || p.Factor == 0, "ban.factor", p.Factor, "must be left out with a list of lengths, which says how long each ban is")
	wrong.Check(p.Factor == 0 || p.Factor >= 1 && p.Factor <= maxFactor, "ban.factor", p.Factor, "must be a number from 1 to %d", maxFactor)
	span("ban.max", p.Longest())
	span("ban.remember", p.Remembered())
	share := p.Jitter >= 0 && p.Jitter <= 1 // not NaN
	wrong.Check(share, "ban.jitter", p.Jitter, "must be a share from 0 to 1, such as 0.2")
	if wrong.Check(p.Longest() >= first, "ban.max", p.Max, "must be at least the length of the first ban, %v", first); share && p.Longest() >= first {
		wrong.Check(p.Most() >= first, "ban.jitter", p.Jitter, "must be less, as the first ban could be longer than the longest, %v", p.Longest())
	}
	return wrong
}

// Duration returns how long the ban lasts that follows that many earlier ones, to the
// nearest millisecond and without jitter.
func (p *Policy) Duration(earlier int) time.Duration {
	most := p.Most()
	earlier = max(earlier, 0)
	if n := len(p.Steps); n > 0 {
		return min(p.Steps[min(earlier, n-1)], most)
	}
	if p.Factor <= 1 {
		return min(p.For, most)
	}
	d := float64(p.For) * math.Pow(p.Factor, float64(earlier))
	if d >= float64(most) {
		return most
	}
	return time.Duration(d).Round(time.Millisecond)
}

// Longest returns Max or its default.
func (p *Policy) Longest() time.Duration { return cmp.Or(p.Max, MaxSpan) }

// Reason returns in words what is too much.
func (p *Policy) Reason() string { return ruleOrigin(p).reason() }

// Remembered returns Remember or its default.
func (p *Policy) Remembered() time.Duration { return cmp.Or(p.Remember, DefaultRemember) }

// Most returns the longest ban without jitter.
func (p *Policy) Most() time.Duration {
	if p.Jitter == 0 {
		return p.Longest()
	}
	return time.Duration(float64(p.Longest()) / (1 + p.Jitter)).Truncate(time.Millisecond)
}

// jittered returns Duration(earlier) and what Jitter adds to it for the key.
func (p *Policy) jittered(earlier, seed uint64, key []byte) time.Duration {
	d := p.Duration(int(min(earlier, math.MaxInt32)))
	if p.Jitter == 0 {
		return d
	}
	part := float64(scatter(seed, earlier, key)>>11) / (1 << 53)
	return d + time.Duration(float64(d)*p.Jitter*part).Truncate(time.Millisecond)
}

// scatter returns 64 bits that depend on a seed, a number and a key. Unlike those of
// hash/maphash they are the same in every process. It folds products of 128 bits, an idea
// of wyhash (Wang Yi, github.com/wangyi-fudan/wyhash).
func scatter(seed, number uint64, key []byte) uint64 {
	const (
		a = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
		b = 0xd6e8feb86659fd93 // odd, half of its bits set
	)
	h := fold128(seed^a, number^b)
	n := uint64(len(key))
	for ; len(key) >= 8; key = key[8:] {
		h = fold128(h^binary.LittleEndian.Uint64(key), a)
	}
	var tail [8]byte
	copy(tail[:], key)
	h = fold128(h^binary.LittleEndian.Uint64(tail[:]), b)
	return fold128(h^n, a)
}

func fold128(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}
