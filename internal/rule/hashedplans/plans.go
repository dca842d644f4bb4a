// Package hashedplans makes digests of the keys of plans that are values of a hashed field.
package hashedplans

import (
	"fmt"

	"github.com/lately-go/lately/ratelimit"
)

// keyed are plans whose values are digests.
type keyed interface {
	Rekey(key [32]byte) (use func(), err error)
}

// Rekey makes the digests of all plans of set under key, where they are of another, and use puts them in
// force. It reads the files of such plans.
func Rekey(set *ratelimit.Set, key [32]byte) (use func(), err error) {
	var all []func()
	for _, r := range set.Rules() {
		if r.LimitBy == nil {
			continue
		}
		if plans, ok := r.LimitBy.Plans.(keyed); ok {
			one, err := plans.Rekey(key)
			if err != nil {
				return nil, fmt.Errorf("rule %q: plans: %w", r.Name, err)
			}
			all = append(all, one)
		}
	}
	return func() {
		for _, one := range all {
			one()
		}
	}, nil
}
