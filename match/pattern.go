package match

import (
	"bytes"
	"strings"
)

// A pattern is literal text in which '*' stands for any run of bytes without
// '/', and "**" for any run of bytes. Exact texts and plain prefixes ("/api/**")
// are told apart when it is compiled, since most patterns are one of these.
type pattern struct {
	kind patternKind
	text []byte // exact: all of it; prefix: what comes before "**"; glob: all of it
}

type patternKind uint8

const (
	exactPattern patternKind = iota
	prefixPattern
	globPattern
)

func newPattern(s string) pattern {
	// A run of more than two stars means what two mean.
	for strings.Contains(s, "***") {
		s = strings.ReplaceAll(s, "***", "**")
	}
	star := strings.IndexByte(s, '*')
	switch {
	case star < 0:
		return pattern{exactPattern, []byte(s)}
	case s[star:] == "**":
		return pattern{prefixPattern, []byte(s[:star])}
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
	}
	return glob(p.text, v)
}

// glob matches v against a pattern with stars. On a mismatch it goes back to
// the last '*' that can still take a byte, and when that one meets '/', to the
// last "**". What comes behind that must then begin in another segment: begun
// later in the same one, it would come to the same '*' no sooner, or in the
// segments behind to the same end. So each byte of v is looked at a number of
// times that depends on p only.
func glob(p, v []byte) bool {
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
		case i < len(p) && j < len(v) && p[i] == v[j]:
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
