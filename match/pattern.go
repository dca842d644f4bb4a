package match

import (
	"bytes"
	"strings"
)

// A pattern is literal text in which '*' stands for any run of bytes without '/', and
// "**" for any run of bytes. Most are exact texts, prefixes ("/api/**") or parts ("**bot**"),
// which have fast forms.
type pattern struct {
	kind patternKind
	text []byte // exact, glob: all of it; any case: in lower case; prefix, contains: without "**"
}

type patternKind uint8

const (
	exactPattern patternKind = iota
	prefixPattern
	containsPattern
	globPattern
	anyCasePattern // a glob
)

// anyCase begins a pattern that matches ASCII letters of either case, as in regular expressions.
const anyCase = "(?i)"

func newPattern(s string) pattern {
	// A run of more than two stars means what two mean.
	for strings.Contains(s, "***") {
		s = strings.ReplaceAll(s, "***", "**")
	}
	text, folds := strings.CutPrefix(s, anyCase)
	star := strings.IndexByte(s, '*')
	switch {
	case folds:
		return pattern{anyCasePattern, appendLower(nil, text)}
	case star < 0:
		return pattern{exactPattern, []byte(s)}
	case s[star:] == "**":
		return pattern{prefixPattern, []byte(s[:star])}
	case strings.Trim(s, "*") == strings.ReplaceAll(s, "*", "") && strings.HasPrefix(s, "**") && strings.HasSuffix(s, "**"):
		return pattern{containsPattern, []byte(strings.Trim(s, "*"))}
	}
	return pattern{globPattern, []byte(s)}
}

func anyMatches(ps []pattern, v []byte) bool {
	for i := range ps {
		if ps[i].matches(v) {
			return true
		}
	}
	return false
}

func (p *pattern) matches(v []byte) bool {
	switch p.kind {
	case exactPattern:
		return bytes.Equal(p.text, v)
	case prefixPattern:
		return bytes.HasPrefix(v, p.text)
	case containsPattern:
		return bytes.Contains(v, p.text)
	}
	return glob(p.text, v, p.kind == anyCasePattern)
}

func appendLower(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, lower(s[i]))
	}
	return dst
}

// lower returns c, and for a capital ASCII letter the small one.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// glob matches v, and with folds v in lower case, against a pattern with stars. On a mismatch it goes back to the last
// '*', which takes one more byte, and if that byte is '/', to the last "**", whose rest
// must then begin in another segment: a later start in the same segment would reach the
// same '*' no sooner. So each byte of v is read a number of times that depends on p only.
func glob(p, v []byte, folds bool) bool {
	const none = -1
	i, j := 0, 0
	one, oneAt := none, 0 // after the last '*', and where it resumes in v
	two, twoAt := none, 0 // after the last "**", likewise
	for {
		switch {
		case i+1 < len(p) && p[i] == '*' && p[i+1] == '*':
			i += 2
			two, twoAt, one = i, j, none
			continue
		case i < len(p) && p[i] == '*':
			i++
			one, oneAt = i, j
			continue
		case i < len(p) && j < len(v) && (p[i] == v[j] || folds && p[i] == lower(v[j])):
			i++
			j++
			continue
		case i == len(p) && j == len(v):
			return true
		}
		switch {
		case one != none && oneAt < len(v) && v[oneAt] != '/':
			oneAt++
			i, j = one, oneAt
		case two != none && one != none:
			hop := bytes.IndexByte(v[twoAt:], '/')
			if hop < 0 {
				return false
			}
			twoAt += hop + 1
			i, j, one = two, twoAt, none
		case two != none && twoAt < len(v):
			twoAt++
			i, j, one = two, twoAt, none
		default:
			return false
		}
	}
}
