// Package regex matches regular expressions as the log filters of other programs have
// them: the syntax of Go's package regexp, and lookahead (?=...) (?!...), lookbehind
// (?<=...) (?<!...), backreferences (?P=name) and conditions (?(name)...|...) of Python.
//
//	p, err := regex.Compile(`^Failed password for (?P<user>.*?) from (?P<client>\S+)(?! \[)`)
//	m := p.NewMatcher()
//	if m.Match(line) {
//		user := m.Group(p.Group("user"))
//	}
//
// A match is the one that backtracking in the order of the alternatives finds first. The
// time for a text is bounded: after some thousand steps each choice is made at most once at
// each position, and all steps together are at most [MaxSteps]. So in a text that takes many
// steps, a backreference may fail for which another value of its group would fit.
//
// [Pattern.Possible] finds out without matching that most lines cannot match, since they
// lack a text that every match has.
package regex

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// Limits of a pattern.
const (
	MaxText  = 8 << 10 // bytes
	MaxInsts = 10000   // of the compiled program
	maxDepth = 8       // of lookarounds in lookarounds
	maxFlags = 4       // groups that conditions are about
)

// A Pattern is a compiled regular expression. It is immutable and may be used by several
// goroutines, each with a [Matcher] of its own.
type Pattern struct {
	prog      *syntax.Prog
	insts     []inst
	alts      int // instructions that have a choice
	slots     int // places of groups in a matcher
	flags     []int
	names     []string // of the groups that matchers record, by number
	checks    []check
	freeSteps int      // before choices are remembered
	anchored  bool     // matches begin at the begin of the text
	prefix    []byte   // with which all matches begin
	required  literals // of which every match has one
	finder    *Finder  // of these, if there are many
	halves    literals // of which a text has one if a part of it was cut out before it matched
	pieces    literals // the same if the part was between characters that are not of words
}

// An inst is an instruction of the program, prepared for bytes.
type inst struct {
	op    syntax.InstOp
	out   uint32
	arg   uint32 // the other choice, or the conditions of an empty width
	alt   int32  // number of a choice
	slot  int16  // of a capture, -1 for none
	check int16  // of a capture that is a check, -1 for none
	loops bool   // a choice to match one character and to come back, or to go on
	any   bool   // bytes above ASCII match whatever they are
	ascii [2]uint64

	begin beginning // of what matches from here on
	text  []byte    // if characters of ASCII follow one another: these; out is behind the last
}

// A beginning is the bytes that a match may begin with.
type beginning struct {
	bytes [4]uint64
	empty bool // it may be at the end of the text
}

// anyBeginning is one of which nothing is known.
var anyBeginning = beginning{[4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}, true}

// A check is a condition at a place of the program.
type check struct {
	kind  checkKind
	group int      // of a backreference or a condition; its slots are 2*group, 2*group+1
	inner *Pattern // of a lookaround
	width int      // of a lookbehind, in bytes
}

type checkKind uint8

const (
	ahead checkKind = iota
	notAhead
	behind
	notBehind
	same   // the text of the group follows
	isSet  // the group has matched
	notSet // it has not
)

// An Error is a mistake in a pattern, with its place.
type Error struct {
	Pattern string
	Offset  int // in bytes
	Problem string
}

// Error returns the pattern, the place and the problem.
func (e *Error) Error() string {
	return fmt.Sprintf("pattern %q: at byte %d: %s", e.Pattern, e.Offset+1, e.Problem)
}

// Compile compiles a pattern. The error is an *[Error].
func Compile(text string) (*Pattern, error) { return compile(text, 0) }

func compile(text string, depth int) (*Pattern, error) {
	if len(text) > MaxText {
		return nil, &Error{text, MaxText, fmt.Sprintf("too long (max %d bytes)", MaxText)}
	}
	t := translation{source: text, depth: depth}
	if err := t.run(); err != nil {
		return nil, err
	}
	re, err := syntax.Parse(t.out.String(), syntax.Perl)
	if err != nil {
		return nil, syntaxError(text, err)
	}
	prog, err := syntax.Compile(balance(re.Simplify()))
	if err != nil || len(prog.Inst) > MaxInsts {
		return nil, &Error{text, 0, fmt.Sprintf("too large: must compile to at most %d instructions", MaxInsts)}
	}
	p := &Pattern{prog: prog, required: required(re), anchored: prog.StartCond()&syntax.EmptyBeginText != 0}
	if !hasEmptyLoop(re) {
		p.freeSteps = freeSteps
	}
	p.halves, p.pieces = p.required.halves(), pieces(re)
	if f := (&Finder{texts: map[uint16][][]byte{}}); len(p.required) > 4 && f.add(p.required) {
		p.finder = f
	}
	if len(t.checks) == 0 { // a check may be at the begin
		prefix, _ := prog.Prefix()
		p.prefix = []byte(prefix)
	}
	if err := p.link(&t, re.CapNames()); err != nil {
		return nil, err
	}
	return p, nil
}

// hasEmptyLoop reports whether an expression repeats one that may be empty.
func hasEmptyLoop(re *syntax.Regexp) bool {
	loops := re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0
	return loops && mayBeEmpty(re.Sub[0]) || slices.ContainsFunc(re.Sub, hasEmptyLoop)
}

// mayBeEmpty reports whether an expression matches the empty text.
func mayBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !mayBeEmpty(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, mayBeEmpty)
	case syntax.OpCapture, syntax.OpPlus:
		return mayBeEmpty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || mayBeEmpty(re.Sub[0])
	}
	return true
}

// balance makes alternatives of more than two a tree, so that few choices lead to each.
func balance(re *syntax.Regexp) *syntax.Regexp {
	for i, sub := range re.Sub {
		re.Sub[i] = balance(sub)
	}
	if n := len(re.Sub); re.Op == syntax.OpAlternate && n > 2 {
		half := func(subs []*syntax.Regexp) *syntax.Regexp {
			if len(subs) == 1 {
				return subs[0]
			}
			return balance(&syntax.Regexp{Op: syntax.OpAlternate, Flags: re.Flags, Sub: subs})
		}
		re.Sub = []*syntax.Regexp{half(re.Sub[:n/2]), half(re.Sub[n/2:])}
	}
	return re
}

// syntaxError turns an error of the parser, which names the part that is wrong, into ours.
func syntaxError(text string, err error) *Error {
	e := &Error{Pattern: text, Problem: err.Error()}
	if of, ok := errors.AsType[*syntax.Error](err); ok {
		e.Problem = of.Code.String()
		if of.Expr != "" && len(of.Expr) < len(text) {
			e.Problem += ": " + of.Expr
		}
		e.Offset = max(strings.Index(text, of.Expr), 0)
	}
	return e
}

// link makes the instructions, with the checks of t in their places. Names are those of the
// groups of the program.
func (p *Pattern) link(t *translation, names []string) error {
	numbers := make([]int, len(names)) // of a group of the program: its number here, -1 for none
	for i, name := range names {
		numbers[i] = -1
		if name != "" && !strings.HasPrefix(name, checkPrefix) || i == 0 {
			numbers[i] = len(p.names)
			p.names = append(p.names, name)
		}
	}
	p.slots = 2 * len(p.names)
	for _, w := range t.checks {
		c := w.check
		if w.group != "" {
			if c.group = p.Group(w.group); c.group < 0 {
				return &Error{t.source, w.offset, fmt.Sprintf("unknown group %q: must be the name of a group of the pattern", w.group)}
			}
			if c.kind != same && !slices.Contains(p.flags, c.group) {
				p.flags = append(p.flags, c.group)
			}
		}
		p.checks = append(p.checks, c)
	}
	if len(p.flags) > maxFlags {
		return &Error{t.source, 0, fmt.Sprintf("conditions about %d groups: must be at most %d", len(p.flags), maxFlags)}
	}
	for i := range p.prog.Inst {
		p.insts = append(p.insts, p.newInst(&p.prog.Inst[i], names, numbers))
	}
	for i := range p.insts {
		p.insts[i].out = p.skipNops(p.insts[i].out)
		if p.insts[i].op == syntax.InstAlt {
			p.insts[i].arg = p.skipNops(p.insts[i].arg)
		}
	}
	for i := range p.insts {
		at := &p.insts[i]
		next := &p.insts[at.out]
		at.loops = at.op == syntax.InstAlt && next.op == syntax.InstRune && int(next.out) == i
	}
	p.findBeginnings()
	p.joinTexts()
	return nil
}

// findBeginnings finds the beginning of each instruction. Loops need several passes.
func (p *Pattern) findBeginnings() {
	for changed := true; changed; {
		changed = false
		for n := len(p.insts) - 1; n >= 0; n-- {
			if b := p.beginningOf(&p.insts[n]); b != p.insts[n].begin {
				p.insts[n].begin, changed = b, true
			}
		}
	}
}

// beginningOf returns the beginning of an instruction by those of the next ones.
func (p *Pattern) beginningOf(i *inst) (b beginning) {
	next := p.insts[i.out].begin
	switch i.op {
	case syntax.InstRune:
		return beginning{bytes: [4]uint64{i.ascii[0], i.ascii[1], ^uint64(0), ^uint64(0)}}
	case syntax.InstAlt:
		for n, other := range p.insts[i.arg].begin.bytes {
			next.bytes[n] |= other
		}
		next.empty = next.empty || p.insts[i.arg].begin.empty
	case syntax.InstCapture:
		if i.check >= 0 && p.checks[i.check].kind == same {
			return anyBeginning
		}
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(i.arg)&syntax.EmptyEndText != 0 {
			return beginning{empty: next.empty}
		}
	case syntax.InstMatch:
		return anyBeginning
	case syntax.InstFail:
		return b
	}
	return next
}

// maxJoined bounds the text of an instruction.
const maxJoined = 64

// joinTexts gives each instruction that begins a text of characters of ASCII the whole text.
func (p *Pattern) joinTexts() {
	plain := func(n uint32) bool {
		from := &p.prog.Inst[n]
		return from.Op == syntax.InstRune1 && from.Rune[0] <= unicode.MaxASCII
	}
	outs := make([]uint32, len(p.insts))
	for n := range p.insts {
		at := uint32(n)
		var text []byte
		for plain(at) && len(text) < maxJoined {
			text = append(text, byte(p.prog.Inst[at].Rune[0]))
			at = p.insts[at].out
		}
		if outs[n] = p.insts[n].out; len(text) > 1 {
			p.insts[n].text, outs[n] = text, at
		}
	}
	for n, out := range outs {
		p.insts[n].out = out
	}
}

// skipNops returns the first instruction from at on that does something.
func (p *Pattern) skipNops(at uint32) uint32 {
	for p.insts[at].op == syntax.InstNop {
		at = p.insts[at].out
	}
	return at
}

func (p *Pattern) newInst(from *syntax.Inst, names []string, numbers []int) inst {
	to := inst{op: from.Op, out: from.Out, arg: from.Arg, slot: -1, check: -1}
	switch from.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		to.op, to.alt = syntax.InstAlt, int32(p.alts)
		p.alts++
	case syntax.InstCapture:
		group := int(from.Arg / 2)
		if n, ok := strings.CutPrefix(names[group], checkPrefix); ok && from.Arg%2 == 0 {
			to.check = int16(parseIndex(n))
		} else if numbers[group] >= 0 {
			to.slot = int16(2*numbers[group] + int(from.Arg%2))
		} else {
			to.op = syntax.InstNop
		}
	case syntax.InstRune1, syntax.InstRune, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		to.ascii = asciiOf(from)
		to.any = from.Op == syntax.InstRuneAny || from.Op == syntax.InstRuneAnyNotNL
		to.op = syntax.InstRune
	}
	return to
}

// asciiOf returns the characters of ASCII that an instruction matches.
func asciiOf(i *syntax.Inst) (set [2]uint64) {
	add := func(r rune) { set[r/64] |= 1 << (r % 64) }
	if len(i.Rune) < 2 { // one character in any case, or any
		for r := range rune(unicode.MaxASCII + 1) {
			if i.MatchRune(r) {
				add(r)
			}
		}
		return set
	}
	for n := 0; n < len(i.Rune); n += 2 {
		for r := i.Rune[n]; r <= min(i.Rune[n+1], unicode.MaxASCII); r++ {
			add(r)
		}
	}
	return set
}

// Size returns how many instructions the compiled program has.
func (p *Pattern) Size() int { return len(p.insts) }

// Names returns the names of the groups that a matcher records, by number. The first is
// that of the whole match, which has none. Several groups may have one name.
func (p *Pattern) Names() []string { return p.names }

// Group returns the number of the first group of that name, -1 if there is none.
func (p *Pattern) Group(name string) int {
	if name == "" {
		return -1
	}
	return slices.Index(p.names, name)
}

// maxVisited bounds the memory of a match, in bits.
const maxVisited = 1 << 27

// fits reports whether a text of n bytes can be matched.
func (p *Pattern) fits(n int) bool {
	hi, size := bits.Mul64(uint64(p.alts)<<len(p.flags), uint64(n)+1)
	return hi == 0 && size <= maxVisited
}
