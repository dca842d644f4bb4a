package ratelimit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lately-go/lately/match"
)

// A RuleError says that a Set has no rule of that name.
type RuleError struct {
	Name    string // what was asked for, at most its first 64 bytes
	Nearest string // the name in the Set that was probably meant, or ""

	others []string // the names in the Set
}

// Error names the unknown rule, and the one that was probably meant or some of those
// that there are.
func (e *RuleError) Error() string {
	const shown = 3
	switch n := len(e.others); {
	case e.Nearest != "":
		return fmt.Sprintf("ratelimit: unknown rule %q: did you mean %q?", e.Name, e.Nearest)
	case n == 0:
		return fmt.Sprintf("ratelimit: unknown rule %q: there are no rules", e.Name)
	case n > shown:
		return fmt.Sprintf("ratelimit: unknown rule %q: must be one of %q and %d more", e.Name, e.others[:shown], n-shown)
	}
	return fmt.Sprintf("ratelimit: unknown rule %q: must be one of %q", e.Name, e.others)
}

// noRule returns the error for a name that no rule of s has. It compares all names.
func (s *Set) noRule(name string) *RuleError {
	e := &RuleError{Name: strings.Clone(name[:min(len(name), 64)])}
	for i := range s.rules {
		e.others = append(e.others, s.rules[i].Name)
	}
	e.Nearest = match.Suggest(e.Name, e.others, 2)
	return e
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
