package ban

import (
	"strconv"
	"time"

	"github.com/lately-go/lately/internal/rule/invalid"
)

// An origin says in one word why a ban began and who began it. For a ban that a rule began
// it has what the rule counted. For any other it has the number of reason and source in texts.
// The origin of an entry that never held a ban is 0.
//
//	| 1 | 0 | cause, 2 bits | after, 21 bits | span in ms, 39 bits |
//	| 01 | by a rule, 1 bit | number, 32 bits |
//
// Snapshots contain the first form.
type origin uint64

const (
	originCount = 1 << 63
	originText  = 1 << 62
	originRule  = 1 << 61 // only with originText

	afterBits  = 21
	memoryBits = 39 // MaxSpan in milliseconds
)

const (
	// SourceRule is the source of a ban that a rule began.
	SourceRule = "rule"

	// SourceManual is the source of a ban that was added without one.
	SourceManual = "manual"

	// MaxReason is the longest reason in bytes.
	MaxReason = 256

	// MaxSource is the longest source in bytes.
	MaxSource = 64
)

// ruleOrigin is the origin of a ban that p begins.
func ruleOrigin(p *Policy) origin {
	return origin(originCount | uint64(p.Of)<<60 | p.After<<memoryBits | uint64(p.Span/time.Millisecond))
}

// byRule reports whether a rule began the ban.
func (o origin) byRule() bool { return o&(originText|originRule) != originText }

// text returns the number of reason and source in texts, 0 for none.
func (o origin) text() uint32 {
	if o&originText == 0 {
		return 0
	}
	return uint32(o)
}

// isPlain reports whether o has neither reason nor source.
func (o origin) isPlain() bool { return o&originCount == 0 && o.text() == 0 }

// counted returns what the rule counted. ok is false for an origin without it.
func (o origin) counted() (p Policy, ok bool) {
	return Policy{
		Of: Cause(o >> 60 & 3), After: uint64(o) >> memoryBits & (1<<afterBits - 1),
		Span: time.Duration(o&(1<<memoryBits-1)) * time.Millisecond,
	}, o&originCount != 0
}

// reason returns in words what a rule counted.
func (o origin) reason() string {
	p, ok := o.counted()
	if !ok {
		return ""
	}
	what := p.Of.String()
	if p.After == 1 {
		what = what[:len(what)-1]
	}
	return "more than " + strconv.FormatUint(p.After, 10) + " " + what + " in " + invalid.Duration(p.Span)
}
