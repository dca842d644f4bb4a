package latelyredis

import (
	"fmt"

	"github.com/lately-go/lately/ratelimit"
)

// A RuleError says that a rule cannot be kept in Redis.
type RuleError struct {
	Rule string // its name
	Err  error  // what cannot be kept
}

// Error names the rule and what cannot be kept.
func (e *RuleError) Error() string { return fmt.Sprintf("latelyredis: rule %q: %v", e.Rule, e.Err) }

// Unwrap returns e.Err.
func (e *RuleError) Unwrap() error { return e.Err }

// Validate returns the error that [New] would return for the rules of set, a [*RuleError].
func Validate(set *ratelimit.Set) error {
	for i := range set.Len() {
		if _, err := newRule(set.Rule(i)); err != nil {
			return &RuleError{set.Rule(i).Name, err}
		}
	}
	return nil
}
