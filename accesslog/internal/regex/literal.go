package regex

import (
	"bytes"
	"regexp/syntax"
	"unicode"
)

// literals are texts of which every match of a pattern has one. Nil is none that is known.
type literals []literal

// A literal is a text in lower case if it is found in any case.
type literal struct {
	text []byte
	fold bool
}

// maxLiterals bounds the alternatives.
const maxLiterals = 1024

// A Finder finds out whether a text has one of many literals, in one pass.
type Finder struct {
	pairs [1 << 16 / 64]uint64 // the first two bytes of the literals
	texts map[uint16][][]byte  // by these
}

// NewFinder returns a finder of the texts of which each match of one of the patterns has one, for
// texts that are to be matched without one part, see [Pattern.PossibleAround]. It is nil if
// there is a pattern for which no such texts are known, or that finds them in any case.
func NewFinder(patterns []*Pattern, words bool) *Finder {
	f := &Finder{texts: map[uint16][][]byte{}}
	for _, p := range patterns {
		ls := p.halves
		if words {
			ls = p.pieces
		}
		if !f.add(ls) {
			return nil
		}
	}
	return f
}

// add adds literals. It returns false if there is none, or one that cannot be found.
func (f *Finder) add(ls literals) bool {
	for _, l := range ls {
		if l.fold || len(l.text) < 2 {
			return false
		}
		pair := uint16(l.text[0])<<8 | uint16(l.text[1])
		f.pairs[pair/64] |= 1 << (pair % 64)
		f.texts[pair] = append(f.texts[pair], l.text)
	}
	return len(ls) > 0
}

// In reports whether text has one of the literals.
func (f *Finder) In(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		pair := uint16(text[i])<<8 | uint16(text[i+1])
		if f.pairs[pair/64]>>(pair%64)&1 == 0 {
			continue
		}
		for _, t := range f.texts[pair] {
			if bytes.HasPrefix(text[i:], t) {
				return true
			}
		}
	}
	return false
}

// Possible reports whether a text can have a match: it is false for most that have none,
// after a search for a text that all matches have. Lower is text with the letters of ASCII
// in lower case; if the pattern has no need of it, see [Pattern.Folds], it may be nil.
func (p *Pattern) Possible(text, lower []byte) bool {
	if !p.Begins(text) {
		return false
	}
	if p.finder != nil {
		return p.finder.In(text)
	}
	return p.required.in(text, lower)
}

// Begins reports whether a text has a first byte that a match may begin with. It is true if matches
// need not be at the begin of the text.
func (p *Pattern) Begins(text []byte) bool {
	begin := &p.insts[p.prog.Start].begin
	if !p.anchored || len(text) == 0 {
		return !p.anchored || begin.empty
	}
	return begin.bytes[text[0]/64]>>(text[0]%64)&1 != 0
}

// PossibleAround is Possible for a text that is to be matched without one part, of which
// nothing is known yet. What comes before and behind the part may be a text of the match. If
// the part is known to be between characters that are not of words, or at an end of the text,
// words is true.
func (p *Pattern) PossibleAround(text, lower []byte, words bool) bool {
	if words {
		return p.pieces.in(text, lower)
	}
	return p.halves.in(text, lower)
}

// in reports whether a text has one of ls, or ls is empty.
func (ls literals) in(text, lower []byte) bool {
	for i := range ls {
		l, in := &ls[i], text
		if l.fold {
			in = lower
		}
		if bytes.Contains(in, l.text) {
			return true
		}
	}
	return len(ls) == 0
}

// halves returns the halves of each literal: if it is cut in two, one of them is whole.
func (ls literals) halves() (all literals) {
	for _, l := range ls {
		n := (len(l.text) + 1) / 2
		all = append(all, literal{l.text[:n], l.fold})
		if n < len(l.text) {
			all = append(all, literal{l.text[len(l.text)-n:], l.fold})
		}
	}
	return all
}

// Folds reports whether Possible needs the text in lower case.
func (p *Pattern) Folds() bool {
	for _, l := range p.required {
		if l.fold {
			return true
		}
	}
	return false
}

// shortest is the length of the shortest of the texts, by which sets are compared.
func (ls literals) shortest() int {
	n := 0
	for i, l := range ls {
		if i == 0 || len(l.text) < n {
			n = len(l.text)
		}
	}
	return n
}

// required returns the best literals of an expression.
func required(re *syntax.Regexp) literals { return best(re, func(l literal) literal { return l }) }

// pieces returns the best literals of an expression, each the longest part of one that a part
// between characters that are not of words cannot divide.
func pieces(re *syntax.Regexp) literals {
	return best(re, func(l literal) literal {
		longest, from := literal{fold: l.fold}, 0
		for i := 1; i <= len(l.text); i++ {
			if i < len(l.text) && (isWord(l.text[i-1]) || isWord(l.text[i])) {
				continue
			}
			if i-from > len(longest.text) {
				longest.text = l.text[from:i]
			}
			from = i
		}
		return longest
	})
}

func isWord(c byte) bool {
	return c-'0' < 10 || (c|0x20)-'a' < 26 || c == '_'
}

// best returns the best literals of an expression, after each was replaced.
func best(re *syntax.Regexp, replaced func(literal) literal) literals {
	required := func(re *syntax.Regexp) literals { return best(re, replaced) }
	switch re.Op {
	case syntax.OpLiteral:
		ls := literalOf(re)
		for i := range ls {
			ls[i] = replaced(ls[i])
		}
		return ls
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best literals
		for _, sub := range re.Sub {
			if ls := required(sub); ls.shortest() > best.shortest() || ls.shortest() == best.shortest() && len(ls) < len(best) {
				best = ls
			}
		}
		return best
	case syntax.OpAlternate:
		var all literals
		for _, sub := range re.Sub {
			ls := required(sub)
			if len(ls) == 0 || len(all)+len(ls) > maxLiterals {
				return nil
			}
			all = append(all, ls...)
		}
		return all
	}
	return nil
}

// literalOf returns the text of a literal. In any case, it is the longest part of it whose
// letters have no other case than that of ASCII.
func literalOf(re *syntax.Regexp) literals {
	if re.Flags&syntax.FoldCase == 0 {
		return literals{{text: []byte(string(re.Rune))}}
	}
	var best, part []byte
	for _, r := range append(re.Rune[:len(re.Rune):len(re.Rune)], -1) {
		if l := unicode.ToLower(r); 0 <= r && l <= unicode.MaxASCII && l != 'k' && l != 's' { // K and ſ have these, too
			part = append(part, byte(l))
			continue
		}
		if len(part) > len(best) {
			best = part
		}
		part = nil
	}
	if len(best) == 0 {
		return nil
	}
	return literals{{text: best, fold: true}}
}
