package engine

import (
	"reflect"
	"slices"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/geo"
	"github.com/lately-go/lately/rules"
)

// A ruleSet is the rules in force with the counters and detectors that they count in,
// except the limits, which the limiter has. It does not change; a reload replaces it.
type ruleSet struct {
	file     *rules.File
	counters []*counter // those of the file, then the dynamic ones
	declared []*counter // those of the file: dynamic ones count no events
	hot      []*hotRule
	fields   eventFields
	answers  bool     // a limit or ban counts answers
	geo      *geo.DB  // nil if no rule uses its fields
	hashing  *hashing // nil if no field is hashed
}

// A hotRule is a hot rule with a detector of its own, so that a rule which does not
// change keeps its counts when others change.
type hotRule struct {
	hotkey.Rule
	fields   int  // of its key
	answers  bool // its condition looks at the answer
	detector *hotkey.Detector
	keys     *hotkey.RuleDetector // of detector
	use      *hotUse
}

// newRuleSet returns the rule set of file under the budgets of config. It takes over
// from old, which may be empty, the counters and detectors that stay as they are, and
// dynamic counters.
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
	for i := range file.Hot.Len() {
		h, err := old.hotRule(file.Hot.Rule(i), (config.HotBudget-config.HotBudget/listShare)/int64(file.Hot.Len()))
		if err != nil {
			return nil, err
		}
		r.hot = append(r.hot, h)
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

// hotRule returns the rule of r that is the same as next, or a new one under budget.
func (r *ruleSet) hotRule(next *hotkey.Rule, budget int64) (*hotRule, error) {
	for _, h := range r.hot {
		if reflect.DeepEqual(h.Rule, *next) {
			return h, nil
		}
	}
	set, err := hotkey.NewSet(*next)
	if err != nil {
		return nil, err
	}
	d, err := hotkey.NewDetector(set, hotkey.DetectorConfig{Budget: budget})
	if err != nil {
		return nil, err
	}
	keys, err := d.Rule(next.Name)
	if err != nil {
		return nil, err
	}
	condition, err := next.When.Compile()
	if err != nil {
		return nil, err
	}
	h := &hotRule{Rule: *next, fields: len(next.Key.Fields()), answers: condition.NeedsAnswer(), detector: d, keys: keys}
	if was, err := r.hotNamed(next.Name); err == nil {
		h.use = was.use
	} else if h.use, err = newHotUse(); err != nil {
		return nil, err
	}
	return h, nil
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
