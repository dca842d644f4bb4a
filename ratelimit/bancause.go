package ratelimit

import (
	"strconv"
	"strings"
	"time"
)

// A banCause is why a ban began, and by whom, in a word. For a ban that a rule
// began it says what the rule counted at that time. For any other it says where
// the text is, if there is more to it than that it was done by hand.
//
//	| 1 | spare, 2 bits | cause, 1 bit | after, 21 bits | span in ms, 39 bits |
//	| 01 | by a rule, 1 bit | lengths of reason and source, 9 and 7 bits | place, 36 bits |
type banCause uint64

const (
	causeCount = 1 << 63
	causeText  = 1 << 62
	causeRule  = 1 << 61 // with causeText; with causeCount it goes without saying

	causeAfterBits = 21
	textPlaceBits  = 36
	sourceBits     = 7
	reasonBits     = 9
)

const (
	// sourceRule is the source of a ban that a rule began, and sourceManual
	// that of one that was added without a source.
	sourceRule   = "rule"
	sourceManual = "manual"

	maxReason = 256
	maxSource = 64
)

// ruleCause is the cause of a ban that b begins.
func ruleCause(b *Ban) banCause {
	return banCause(causeCount | uint64(b.Of)<<60 | b.After<<memoryBits | uint64(b.Span/time.Millisecond))
}

// textCause is the cause whose reason and source lie one after the other at
// place; 0 bytes lie nowhere.
func textCause(rule bool, place uint64, reason, source int) banCause {
	c := causeText | place | uint64(source)<<textPlaceBits | uint64(reason)<<(textPlaceBits+sourceBits)
	if rule {
		c |= causeRule
	}
	return banCause(c)
}

// manual reports whether the ban is not one that a rule began.
func (c banCause) manual() bool { return c&(causeText|causeRule) == causeText }

// text returns where the text is and how long its two parts are.
func (c banCause) text() (place uint64, reason, source int) {
	if c&causeText == 0 {
		return 0, 0, 0
	}
	return uint64(c) & (1<<textPlaceBits - 1),
		int(c >> (textPlaceBits + sourceBits) & (1<<reasonBits - 1)),
		int(c >> textPlaceBits & (1<<sourceBits - 1))
}

// reason returns in words what a rule counted.
func (c banCause) reason() string {
	if c&causeCount == 0 {
		return ""
	}
	after := uint64(c) >> memoryBits & (1<<causeAfterBits - 1)
	what := Cause(c >> 60 & 1).String()
	if after == 1 {
		what = what[:len(what)-1]
	}
	span := time.Duration(c&(1<<memoryBits-1)) * time.Millisecond
	return "more than " + strconv.FormatUint(after, 10) + " " + what + " in " + shortDuration(span)
}

// causeOf returns the cause whose reason that is. ok is false if a rule would
// not put it so.
func causeOf(reason string) (c banCause, ok bool) {
	words := strings.Fields(reason)
	if len(words) != 6 {
		return 0, false
	}
	after, err := strconv.ParseUint(words[2], 10, causeAfterBits)
	if err != nil {
		return 0, false
	}
	span, err := time.ParseDuration(words[5])
	if err != nil || span < 0 || span > MaxSpan {
		return 0, false
	}
	b := Ban{After: after, Span: span}
	if strings.HasPrefix(words[3], "refusal") {
		b.Of = Refusals
	}
	c = ruleCause(&b)
	return c, c.reason() == reason
}

// shortDuration writes d without the zeros that its String ends in: 5m, not
// 5m0s.
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
