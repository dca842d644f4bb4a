package hotkey

import (
	"fmt"
	"slices"

	"github.com/lately-go/lately/match"
)

// A Set is rules compiled together: what a [Detector] counts events under. It
// holds no counts. A Set is immutable and safe for concurrent use.
type Set struct {
	rules []Rule
	conds []match.Condition
}

// NewSet compiles rules, in the order in which they are reported. The error
// names the rule, the bad value and what is allowed.
func NewSet(rules ...Rule) (*Set, error) {
	s := &Set{rules: slices.Clone(rules)}
	seen := make(map[string]bool, len(rules))
	for i := range s.rules {
		r := &s.rules[i]
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("rule %d (%q): %w", i+1, r.Name, err)
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("rule %d: the name %q is taken by an earlier rule", i+1, r.Name)
		}
		seen[r.Name] = true
		cond, err := r.When.Compile()
		if err != nil {
			return nil, fmt.Errorf("rule %d (%q): %w", i+1, r.Name, err)
		}
		s.conds = append(s.conds, cond)
	}
	return s, nil
}

// Len returns the number of rules.
func (s *Set) Len() int { return len(s.rules) }

// Rule returns the i-th rule. It must not be changed.
func (s *Set) Rule(i int) *Rule { return &s.rules[i] }

// Fields returns the names of all event fields that the set looks at.
func (s *Set) Fields() []string {
	var names []string
	for i := range s.rules {
		names = append(names, s.rules[i].Key.EventFields()...)
		names = append(names, s.conds[i].Fields()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
