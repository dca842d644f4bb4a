package engine

import (
	"fmt"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// ruleKeys is by what the limits and bans of a rules file count, for events whose
// values are too long for that. Rules in shadow mode are left out: they refuse
// nothing.
type ruleKeys struct {
	set   *ratelimit.Set
	rules []ruleKey
	known []match.Field // all that are in keys
	named []string
}

// A ruleKey is the key of one rule.
type ruleKey struct {
	*ratelimit.Rule
	condition match.Condition
}

func newRuleKeys(set *ratelimit.Set) (ruleKeys, error) {
	ks := ruleKeys{set: set}
	seen := make(map[string]bool)
	for i := range set.Len() {
		r := set.Rule(i)
		if r.Shadow {
			continue
		}
		condition, err := r.When.Compile()
		if err != nil {
			return ks, fmt.Errorf("rule %q: %w", r.Name, err)
		}
		ks.rules = append(ks.rules, ruleKey{r, condition})
		for _, name := range r.Key.EventFields() {
			if seen[name] {
				continue
			}
			seen[name] = true
			if f, ok := match.FieldNamed(name); ok {
				ks.known = append(ks.known, f)
			} else {
				ks.named = append(ks.named, name)
			}
		}
	}
	return ks, nil
}

// long reports whether ev may have a value that is too long for a key: a look at a
// few lengths, for all events.
func (ks *ruleKeys) long(ev *match.Event) bool {
	for _, f := range ks.known {
		if len(ev.Get(f)) > MaxKey {
			return true
		}
	}
	for _, name := range ks.named {
		if len(ev.GetNamed(name)) > MaxKey {
			return true
		}
	}
	return false
}

// check returns an error if a value is too long for the key of a rule that judges
// ev. key is memory for keys, and is returned.
func (ks *ruleKeys) check(ev *match.Event, key []byte) ([]byte, error) {
	if ks.set.Allowed(ev) {
		return key, nil
	}
	for i := range ks.rules {
		r := &ks.rules[i]
		if !r.condition.Holds(ev) {
			continue
		}
		var ok bool
		if key, ok = r.Key.Append(key[:0], ev); !ok {
			continue
		}
		if field, n := longValue(r.Key, key); n > 0 {
			return key, errorf(api.BadArg, "%s has %d bytes; allowed are %d where a rule counts by it, as %q does", field, n, MaxKey, r.Name)
		}
	}
	return key, nil
}

// longValue returns the first field of k whose value in key, which k has made, is too
// long, and how long it is; 0 if none is.
func longValue(k match.Key, key []byte) (field string, length int) {
	i := 0
	for value := range k.Parts(key) {
		if len(value) > MaxKey {
			return k.Fields()[i], len(value)
		}
		i++
	}
	return "", 0
}
