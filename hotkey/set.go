package hotkey

import (
	"fmt"
	"slices"

	"github.com/lately-go/lately/internal/invalid"
	"github.com/lately-go/lately/internal/keyvalue"
	"github.com/lately-go/lately/internal/when"
	"github.com/lately-go/lately/match"
)

// A Set is a list of compiled rules, under which a [Detector] counts events. It
// holds no counts. A Set is immutable and safe for concurrent use.
type Set struct {
	rules []Rule
	conds []match.Condition
	names map[string]int // the index of each rule
}

// NewSet validates and compiles rules. Edges are reported in their order. The error has
// all that is wrong: the rule, the field, its value and what it must be.
func NewSet(rules ...Rule) (*Set, error) {
	s := &Set{names: make(map[string]int, len(rules))}
	for i := range rules {
		s.rules = append(s.rules, rules[i].clone())
	}
	var wrong invalid.Fields
	for i := range s.rules {
		r := &s.rules[i]
		found := r.validate()
		_, taken := s.names[r.Name]
		found.Check(!taken, "name", nil, "must be unique among the rules")
		s.names[r.Name] = i
		cond, err := r.When.Compile()
		found.CheckNil(err, "when")
		s.conds = append(s.conds, cond)
		wrong = append(wrong, found.Of(i, r.Name)...)
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("hotkey: %w", wrong)
	}
	return s, nil
}

// fewRules is how many rules are found sooner one by one than in a map.
const fewRules = 4

// index returns the index of the rule of that name, and whether there is one.
func (s *Set) index(name string) (i int, ok bool) {
	for i := range s.rules[:min(len(s.rules), fewRules)] {
		if s.rules[i].Name == name {
			return i, true
		}
	}
	if len(s.rules) <= fewRules {
		return 0, false
	}
	i, ok = s.names[name]
	return i, ok
}

// Len returns the number of rules.
func (s *Set) Len() int { return len(s.rules) }

// Rule returns the i-th rule, which must not be changed.
func (s *Set) Rule(i int) *Rule { return &s.rules[i] }

// Named returns the rule of that name, which must not be changed, and whether
// there is one.
func (s *Set) Named(name string) (r *Rule, ok bool) {
	i, ok := s.index(name)
	if !ok {
		return nil, false
	}
	return &s.rules[i], true
}

// Fields returns the names of the event fields that the rules read, sorted.
func (s *Set) Fields() []string {
	var names []string
	for i := range s.rules {
		names = append(names, keyvalue.Fields(s.rules[i].Key)...)
		names = append(names, when.Fields(&s.rules[i].When)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
