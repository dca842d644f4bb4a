package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A RuleError says that a Set has no rule of that name.
type RuleError struct {
	// Name is what was asked for, at most its first 64 bytes.
	Name string

	// Nearest are the names of the Set that are most like it, at most three.
	// It is empty if none is like it.
	Nearest []string

	some []string // of the Set's names, if none is near
	more int      // others
}

// Error names the rule that there is not, and those that come nearest, or if none
// does some that there are.
func (e *RuleError) Error() string {
	s := fmt.Sprintf("ratelimit: rule is %q; allowed is the name of a rule of the set", e.Name)
	switch {
	case len(e.Nearest) == 1:
		return s + "; the nearest is " + quoted(e.Nearest)
	case len(e.Nearest) > 1:
		return s + "; the nearest are " + quoted(e.Nearest)
	case len(e.some) == 0:
		return s + ", which has none"
	case e.more > 0:
		return s + ": " + quoted(e.some) + " and " + strconv.Itoa(e.more) + " more"
	}
	return s + ": " + quoted(e.some)
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(n)
	}
	return strings.Join(q, ", ")
}

const (
	shownName  = 64 // bytes of a name
	shownNames = 3
	mostEdits  = 2 // by which a name differs that is near
)

// noRule returns the error for a name that no rule of s has. It looks at all names,
// and is for a caller who has been told that there is no such rule.
func (s *Set) noRule(name string) *RuleError {
	e := &RuleError{Name: strings.Clone(name[:min(len(name), shownName)])}
	type near struct {
		name string
		by   int
	}
	var nearest []near
	for i := range s.rules {
		if by, ok := unlike(e.Name, s.rules[i].Name); ok {
			nearest = append(nearest, near{s.rules[i].Name, by})
		}
	}
	slices.SortStableFunc(nearest, func(a, b near) int { return cmp.Compare(a.by, b.by) })
	for _, n := range nearest[:min(len(nearest), shownNames)] {
		e.Nearest = append(e.Nearest, n.name)
	}
	if len(nearest) == 0 {
		for i := range min(len(s.rules), shownNames) {
			e.some = append(e.some, s.rules[i].Name)
		}
		e.more = len(s.rules) - len(e.some)
	}
	return e
}

// unlike returns how far a is from b; ok is false if that is far: they differ in
// more than the case, a few edits, or what one has around the other.
func unlike(a, b string) (by int, ok bool) {
	b = b[:min(len(b), shownName)]
	if strings.EqualFold(a, b) {
		return 0, true
	}
	if by, ok = edits(a, b); ok && by < max(len(a), len(b)) {
		return by, true
	}
	short, long := a, b
	if len(a) > len(b) {
		short, long = b, a
	}
	return mostEdits + 1, len(short) >= 3 && strings.Contains(long, short)
}

// edits returns how many bytes have to be put in, taken out or changed to make b
// of a (Levenshtein, 1965), if that is no more than mostEdits. It gives up as soon
// as it is more: most names differ from the start.
func edits(a, b string) (n int, ok bool) {
	if len(a)-len(b) > mostEdits || len(b)-len(a) > mostEdits {
		return 0, false
	}
	var rows [2][shownName + 1]int
	row, next := &rows[0], &rows[1]
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		least := next[0]
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			least = min(least, next[j+1])
		}
		if least > mostEdits {
			return 0, false
		}
		row, next = next, row
	}
	return row[len(b)], row[len(b)] <= mostEdits
}

// ErrBadKey is the error of values that are not a key of the rule that is to judge
// them: [errors.Is] reports it, and the error says what is wrong.
var ErrBadKey = errors.New("ratelimit: bad key")

// A keyError is an ErrBadKey.
type keyError struct {
	rule string
	err  error
}

func (e *keyError) Error() string        { return fmt.Sprintf("ratelimit: rule %q: %v", e.rule, e.err) }
func (e *keyError) Unwrap() error        { return e.err }
func (e *keyError) Is(target error) bool { return target == ErrBadKey }
