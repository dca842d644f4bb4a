package ban

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// An origin says in one word why a ban began and who began it. For a ban that a rule began
// it has what the rule counted. For any other it has the place of reason and source, if
// there are any. The origin of an entry that never held a ban is 0.
//
//	| 1 | 0 | cause, 2 bits | after, 21 bits | span in ms, 39 bits |
//	| 01 | by a rule, 1 bit | lengths of reason and source, 9 and 7 bits | place, 32 bits |
//
// Snapshots contain the first form.
type origin uint64

const (
	originCount = 1 << 63
	originText  = 1 << 62
	originRule  = 1 << 61 // only with originText

	afterBits  = 21
	memoryBits = 39 // MaxSpan in milliseconds
	placeBits  = 32
	sourceBits = 7
	reasonBits = 9
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

// textOrigin is the origin whose reason and source are stored one after the other at
// place. Empty texts have no place.
func textOrigin(byRule bool, place uint32, reason, source int) origin {
	o := originText | uint64(place) | uint64(source)<<placeBits | uint64(reason)<<(placeBits+sourceBits)
	if byRule {
		o |= originRule
	}
	return origin(o)
}

// byRule reports whether a rule began the ban.
func (o origin) byRule() bool { return o&(originText|originRule) != originText }

// text returns the place of the texts and their lengths.
func (o origin) text() (place, reason, source int) {
	if o&originText == 0 {
		return 0, 0, 0
	}
	return int(o & (1<<placeBits - 1)),
		int(o >> (placeBits + sourceBits) & (1<<reasonBits - 1)),
		int(o >> placeBits & (1<<sourceBits - 1))
}

// lacks reports whether o has neither reason nor source, and text is one.
func (o origin) lacks(text string) bool {
	_, reason, source := o.text()
	return reason+source == 0 && text != ""
}

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
	return "more than " + strconv.FormatUint(p.After, 10) + " " + what + " in " + shortDuration(p.Span)
}

// parseOrigin returns the origin with that reason; ok is false if no rule has it.
func parseOrigin(reason string) (o origin, ok bool) {
	var p Policy
	count, span, _ := strings.Cut(strings.TrimPrefix(reason, "more than "), " in ")
	after, what, _ := strings.Cut(count, " ")
	var err error
	if p.After, err = strconv.ParseUint(after, 10, afterBits); err != nil {
		return 0, false
	}
	if p.Span, _ = time.ParseDuration(span); p.Span < 0 || p.Span > MaxSpan {
		return 0, false
	}
	p.Of = Cause(max(slices.Index(causes[:], strings.TrimSuffix(what, "s")+"s"), 0))
	o = ruleOrigin(&p)
	return o, o.reason() == reason
}

// shortDuration formats d without trailing zero units: 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
