package engine

import (
	"reflect"
	"slices"

	"github.com/lately-go/lately/internal/geo"
	"github.com/lately-go/lately/rules"
)

// A ruleSet is the rules in force with the counters. It does not change; a reload replaces it.
type ruleSet struct {
	file     *rules.File
	counters []*counter // those of the file, then the dynamic ones
	declared []*counter // those of the file: dynamic ones count no events
	fields   eventFields
	answers  bool     // a limit or ban counts answers
	geo      *geo.DB  // nil if no rule uses its fields
	hashing  *hashing // nil if no field is hashed
}

// newRuleSet returns the rule set of file under the budgets of config. It takes over
// from old, which may be empty, the counters that stay as they are, and dynamic ones.
func newRuleSet(config *Config, file *rules.File, old *ruleSet) (*ruleSet, error) {
	fields, err := newEventFields(file, old)
	if err != nil {
		return nil, err
	}
	if err := config.Geo.Check(file.Fields()); err != nil {
		return nil, err
	}
	r := &ruleSet{file: file, fields: fields, answers: file.Limits.CountsAnswers(), hashing: newHashing(file.Limits.Sources())}
	if geo.Uses(file.Fields()) {
		r.geo = config.Geo
	}
	for _, next := range file.Counters {
		c := old.counter(next.Name)
		if c == nil || c.dynamic || !reflect.DeepEqual(c.Counter, next) {
			if c, err = newCounter(next, config.CounterBudget/2/int64(len(file.Counters))); err != nil {
				return nil, err
			}
		}
		r.counters = append(r.counters, c)
	}
	r.declared = slices.Clip(r.counters)
	for _, c := range old.counters[len(old.declared):] {
		if r.counter(c.Name) == nil {
			r.counters = append(r.counters, c)
		}
	}
	return r, nil
}

// counter returns the counter of that name, or nil.
func (r *ruleSet) counter(name string) *counter {
	for _, c := range r.counters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// noRules returns the file of an engine without one.
func noRules() *rules.File {
	f, err := rules.Parse("no rules", []byte("version: 1\n"))
	if err != nil {
		panic("engine: an empty rules file is not accepted: " + err.Error())
	}
	f.Text = nil // no operator wrote it
	return f
}
