package regex

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"
)

// MaxSteps bounds the work for one text: lookaheads inside of loops read the same text again
// and again.
const MaxSteps = 1 << 22

// freeSteps are those after which choices that were made are remembered: most texts take
// fewer, and need no memory. Loops of what may be empty have none: they end where a choice comes
// again.
const freeSteps = 1 << 12

// A Matcher matches a [Pattern], for one goroutine. It holds the last match.
type Matcher struct {
	p       *Pattern
	text    []byte
	visited []uint64 // choices that were made, by their place and position
	marking bool     // visited is in use for the text
	jobs    []job
	slots   []int // two of each group; -1 is none
	inner   []*Matcher
	steps   *int // left for the text
	budget  int
	endAt   int // where a match must end, -1 for anywhere
}

// A job is a choice that was not tried yet, or the old value of a slot.
type job struct {
	at  uint32
	pos int32 // of a choice; of a slot, its value
	old int16 // the slot, -1 for a choice
}

// NewMatcher returns a matcher of p.
func (p *Pattern) NewMatcher() *Matcher {
	m := &Matcher{p: p, slots: make([]int, p.slots), endAt: -1}
	m.steps = &m.budget
	m.adopt(p)
	return m
}

// adopt makes the matchers of the lookarounds, which share the steps.
func (m *Matcher) adopt(p *Pattern) {
	m.inner = make([]*Matcher, len(p.checks))
	for i := range p.checks {
		if inner := p.checks[i].inner; inner != nil {
			m.inner[i] = inner.NewMatcher()
			m.inner[i].share(m.steps)
		}
	}
}

func (m *Matcher) share(steps *int) {
	m.steps = steps
	for _, inner := range m.inner {
		if inner != nil {
			inner.share(steps)
		}
	}
}

// Match reports whether text has a match of the pattern, and records the groups of the
// first. A text that takes too long has none, see [Matcher.Exceeded].
func (m *Matcher) Match(text []byte) bool {
	*m.steps = MaxSteps
	if !m.p.fits(len(text)) {
		*m.steps = 0
		return false
	}
	m.reset(text)
	start := uint32(m.p.prog.Start)
	if m.p.anchored {
		return !m.fails(start, 0) && m.try(0)
	}
	for pos := 0; pos <= len(text) && *m.steps > 0; pos += m.lengthAt(pos) {
		if len(m.p.prefix) > 0 {
			hop := bytes.Index(text[pos:], m.p.prefix)
			if hop < 0 {
				return false
			}
			pos += hop
		}
		if !m.fails(start, pos) && m.try(pos) {
			return true
		}
	}
	return false
}

// lengthAt returns the length of the character at pos.
func (m *Matcher) lengthAt(pos int) int {
	if pos >= len(m.text) || m.text[pos] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRune(m.text[pos:])
	return n
}

// Exceeded reports whether the last text was too long or took too many steps, so that Match
// gave up.
func (m *Matcher) Exceeded() bool { return *m.steps <= 0 }

// Group returns the text of a group by its number in the last match, nil if it had no part in
// it.
func (m *Matcher) Group(n int) []byte {
	if n < 0 || m.slots[2*n] < 0 || m.slots[2*n+1] < m.slots[2*n] {
		return nil
	}
	return m.text[m.slots[2*n]:m.slots[2*n+1]:m.slots[2*n+1]]
}

// Span returns where a group begins and ends in the text, -1 if it had no part in the match.
func (m *Matcher) Span(n int) (from, to int) {
	if n < 0 || m.Group(n) == nil {
		return -1, -1
	}
	return m.slots[2*n], m.slots[2*n+1]
}

// reset prepares m for a text.
func (m *Matcher) reset(text []byte) { m.text, m.marking = text, false }

// mark begins to remember choices.
func (m *Matcher) mark() {
	m.marking = true
	size := (m.p.alts<<len(m.p.flags)*(len(m.text)+1) + 63) / 64
	if cap(m.visited) < size {
		m.visited = make([]uint64, size)
		return
	}
	m.visited = m.visited[:size]
	clear(m.visited)
}

// isNew reports whether a choice was not made at pos with the same groups before.
func (m *Matcher) isNew(alt int32, pos int) bool {
	if !m.marking {
		m.mark()
	}
	bit := int(alt)*(len(m.text)+1) + pos
	for _, group := range m.p.flags {
		bit <<= 1
		if m.slots[2*group+1] >= 0 {
			bit |= 1
		}
	}
	word, mask := &m.visited[bit/64], uint64(1)<<(bit%64)
	if *word&mask != 0 {
		return false
	}
	*word |= mask
	return true
}

// try looks for a match that begins at pos.
func (m *Matcher) try(pos int) bool {
	for i := range m.slots {
		m.slots[i] = -1
	}
	m.slots[0] = pos
	m.jobs = append(m.jobs[:0], job{uint32(m.p.prog.Start), int32(pos), -1})
	for len(m.jobs) > 0 {
		j := m.jobs[len(m.jobs)-1]
		m.jobs = m.jobs[:len(m.jobs)-1]
		if j.old >= 0 {
			m.slots[j.old] = int(j.pos)
		} else if m.follow(j.at, int(j.pos)) {
			return true
		}
	}
	return false
}

// follow follows the program from an instruction up to a match, or to where it fails.
func (m *Matcher) follow(at uint32, pos int) bool {
	for {
		i := &m.p.insts[at]
		switch i.op {
		case syntax.InstRune:
			n := len(i.text)
			if n > 0 && !bytes.HasPrefix(m.text[pos:], i.text) {
				return false
			}
			if n == 0 {
				n = m.runeAt(i, at, pos)
			}
			if n == 0 {
				return false
			}
			pos += n
		case syntax.InstAlt:
			if *m.steps--; *m.steps < MaxSteps-m.p.freeSteps && (*m.steps <= 0 || !m.isNew(i.alt, pos)) {
				return false
			}
			if i.loops {
				pos = m.run(i, pos)
			}
			if m.fails(i.out, pos) {
				at = i.arg
				continue
			}
			if !m.fails(i.arg, pos) {
				m.jobs = append(m.jobs, job{i.arg, int32(pos), -1})
			}
		case syntax.InstCapture:
			if i.check >= 0 {
				n, ok := m.check(int(i.check), pos)
				if !ok {
					return false
				}
				pos += n
			} else if i.slot >= 0 {
				m.jobs = append(m.jobs, job{0, int32(m.slots[i.slot]), i.slot})
				m.slots[i.slot] = pos
			}
		case syntax.InstEmptyWidth:
			if !m.holds(syntax.EmptyOp(i.arg), pos) {
				return false
			}
		case syntax.InstMatch:
			if m.endAt >= 0 && pos != m.endAt {
				return false
			}
			m.slots[1] = pos
			return true
		case syntax.InstFail:
			return false
		}
		at = i.out
	}
}

// run goes past the characters of a loop such as \S*, and leaves a choice at each of them where
// what follows the loop does not fail at once. While choices are remembered it does nothing.
func (m *Matcher) run(i *inst, pos int) int {
	set := &m.p.insts[i.out].ascii
	for pos < len(m.text) && *m.steps > MaxSteps-m.p.freeSteps {
		c := m.text[pos]
		if c >= utf8.RuneSelf || set[c/64]>>(c%64)&1 == 0 {
			break
		}
		if !m.fails(i.arg, pos) {
			*m.steps--
			m.jobs = append(m.jobs, job{i.arg, int32(pos), -1})
		}
		pos++
	}
	return pos
}

// fails reports whether no match from an instruction on may begin at pos, by the byte there: this
// makes most choices.
func (m *Matcher) fails(at uint32, pos int) bool {
	b := &m.p.insts[at].begin
	if pos >= len(m.text) {
		return !b.empty
	}
	c := m.text[pos]
	return b.bytes[c/64]>>(c%64)&1 == 0
}

// runeAt returns the length of the character at pos if it is one of the instruction, else 0.
func (m *Matcher) runeAt(i *inst, at uint32, pos int) int {
	if pos >= len(m.text) {
		return 0
	}
	c := m.text[pos]
	if c < utf8.RuneSelf {
		return int(i.ascii[c/64] >> (c % 64) & 1)
	}
	r, n := utf8.DecodeRune(m.text[pos:])
	if i.any || m.p.prog.Inst[at].MatchRune(r) {
		return n
	}
	return 0
}

// holds reports whether all conditions of op hold between text[:pos] and text[pos:].
func (m *Matcher) holds(op syntax.EmptyOp, pos int) bool {
	before, after := rune(-1), rune(-1)
	if pos > 0 {
		before = rune(m.text[pos-1])
	}
	if pos < len(m.text) {
		after = rune(m.text[pos])
	}
	return op&^syntax.EmptyOpContext(before, after) == 0
}

// check reports whether a check holds at pos, and how many bytes it takes.
func (m *Matcher) check(n, pos int) (length int, ok bool) {
	c := &m.p.checks[n]
	switch c.kind {
	case same:
		text := m.Group(c.group)
		return len(text), text != nil && bytes.HasPrefix(m.text[pos:], text)
	case isSet, notSet:
		return 0, m.slots[2*c.group+1] >= 0 == (c.kind == isSet)
	}
	from, end := pos, -1
	if c.kind == behind || c.kind == notBehind {
		from, end = pos-c.width, pos
	}
	if !c.inner.fits(len(m.text)) {
		*m.steps = 0
		return 0, false
	}
	found := false
	if from >= 0 {
		inner := m.inner[n]
		inner.endAt = end
		inner.reset(m.text)
		if *m.steps--; *m.steps < MaxSteps-m.p.freeSteps {
			*m.steps -= len(inner.visited) // which are cleared
		}
		found = inner.try(from)
	}
	return 0, found == (c.kind == ahead || c.kind == behind)
}
