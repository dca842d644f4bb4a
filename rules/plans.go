package rules

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/sentence"
)

const (
	maxPlanFile = 64 << 20 // bytes
	maxPlans    = 2 << 20  // lines of a file with a plan
)

// A planTable is a file of plans: a key, such as a customer, and its number in each line. It is
// a hash table of places in the text, so it costs the text and 8 bytes for each of 1.5 to 3
// times as many slots as lines, and has no pointers that a garbage collector follows.
type planTable struct {
	planLines
	name string // as in the rules file

	version
	atMost uint64

	hashed *hashedPlans // instead of the text and the slots, if the keys are values of a hashed field; or nil
}

// planLines is the lines of a file of plans.
type planLines struct {
	count int
	text  []byte
	slots []planSlot // a power of two of them, and a third at least are empty
}

// planSeed is that of all tables of the process, so that two of one text are equal.
var planSeed = maphash.MakeSeed()

// A planSlot is where a key begins in the text, and its number, which is 0 in an empty slot.
type planSlot struct{ at, n uint32 }

// N implements the Plans of [ratelimit.LimitBy].
func (t *planTable) N(key []byte) (n uint64, ok bool) {
	lines := &t.planLines
	if t.hashed != nil {
		lines = &t.hashed.digests.Load().planLines
	}
	slot, found := lines.find(key)
	return uint64(slot.n), found
}

// Words implements [sentence.Plans].
func (t *planTable) Words(field string) string {
	return fmt.Sprintf("%s has for the field %s (%s)", t.name, field, sentence.Count(uint64(t.count), "line"))
}

// find returns the slot of key, or the empty one where it would be.
func (l *planLines) find(key []byte) (slot *planSlot, found bool) {
	if len(l.slots) == 0 {
		return new(planSlot), false
	}
	mask := uint64(len(l.slots) - 1)
	for i := maphash.Bytes(planSeed, key) & mask; ; i = (i + 1) & mask {
		slot = &l.slots[i]
		if slot.n == 0 || bytes.Equal(planKey(l.text[slot.at:]), key) {
			return slot, slot.n != 0
		}
	}
}

// planKey returns the key at the beginning of a line.
func planKey(line []byte) []byte {
	for i, c := range line {
		if isBlank(c) {
			return line[:i]
		}
	}
	return line
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// readPlanFile reads the file of plans of that name, whose numbers parse reads, or takes it as
// it was read before. It notes which version it has read, also after a mistake. The keys are plain if hashed is nil.
func (r *reader) readPlanFile(at ast.Node, name string, atMost uint64, hashed *hashedPlans, parse func(string) (uint64, error)) *planTable {
	t := &planTable{name: name, atMost: atMost}
	if !r.onDisk {
		for _, known := range r.plansBefore {
			if known.name == name && (known.hashed != nil) == (hashed != nil) {
				return known
			}
		}
		r.Warn(at, "plans: %q: not read: the rules in force do not name it, and only a rules file on disk reads files", rulevalue.Clip(name))
		return t
	}
	t.hashed = hashed
	if data := r.readListed(at, "plans", name, maxPlanFile, &t.version); data != nil {
		for _, known := range r.plansBefore { // the rules have changed, or another file
			if known.version == t.version && known.atMost == atMost && known.name == name && known.hashed.alike(hashed) {
				t, data = known, nil
			}
		}
		if data != nil {
			r.errs = append(r.errs, t.parse(data, parse)...)
			t.seal(r.plansBefore)
		}
	}
	r.plans = append(r.plans, t)
	return t
}

// parse fills t with the lines of data, which t keeps: a key, and after blanks its number, as
// parse reads it. Lines that are empty or begin with '#' are comments.
func (t *planTable) parse(data []byte, parse func(string) (uint64, error)) (errs Errors) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	lines := bytes.Count(data, []byte("\n")) + 1
	if lines > maxPlans+1 {
		return Errors{{t.path, maxPlans + 2, 1, fmt.Sprintf("more than %d lines: must be fewer", maxPlans)}}
	}
	t.text = data
	t.slots = make([]planSlot, 1<<bits.Len(uint(lines+lines/2)))
	errs = eachLine(t.path, data, func(at int, line []byte) (int, error) { return t.add(at, line, parse) })
	if t.count == 0 && len(errs) == 0 { // as after a download that failed
		errs = Errors{{t.path, 1, 1, "no plan: must be a key and its number in each line, such as \"acme 600\""}}
	}
	return errs
}

// add adds the line that begins at that place of the text. The error says what is wrong in that
// column.
func (t *planTable) add(at int, line []byte, parse func(string) (uint64, error)) (column int, err error) {
	skipped := len(line) - len(bytes.TrimLeft(line, " \t\r"))
	line = bytes.TrimRight(line[skipped:], " \t\r")
	if len(line) == 0 || line[0] == '#' {
		return 0, nil
	}
	key := planKey(line)
	value := bytes.TrimLeft(line[len(key):], " \t")
	column = 1 + skipped + utf8.RuneCount(line[:len(line)-len(value)])
	if len(value) == 0 {
		return column, fmt.Errorf("%sno number: must be a key and its number, such as \"acme 600\"", t.quoted(key))
	}
	n := digits(value)
	if n == 0 {
		if n, err = parse(string(value)); err != nil {
			return column, fmt.Errorf("%s%w", t.quoted(value), err)
		}
	}
	if n > t.atMost {
		return column, fmt.Errorf("%smust be at most %d, which is at_most", t.quoted(value), t.atMost)
	}
	slot, found := t.find(key)
	if found {
		return 1 + skipped, fmt.Errorf("key %stwice: must be given once, and line %d has it", strings.Replace(t.quoted(key), ":", "", 1), 1+bytes.Count(t.text[:slot.at], []byte("\n")))
	}
	*slot = planSlot{uint32(at + skipped), uint32(n)}
	t.count++
	return 0, nil
}

// quoted returns a part of a line and a colon, for a mistake, or nothing if it may be a secret.
func (t *planTable) quoted(part []byte) string {
	if t.hashed != nil {
		return ""
	}
	return fmt.Sprintf("%q: ", rulevalue.Clip(string(part)))
}

// digits returns the number of up to nine digits that is value, or 0 if it is something else.
func digits(value []byte) (n uint64) {
	if len(value) > 9 {
		return 0
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}
