package engine

import (
	"github.com/lately-go/lately/internal/geo"
	"github.com/lately-go/lately/rules"
)

// A ruleSet is the rules in force, with what decisions need of them. It does not change; a reload replaces it.
type ruleSet struct {
	file    *rules.File
	fields  eventFields
	answers bool     // a limit or ban counts answers
	geo     *geo.DB  // nil if no rule uses its fields
	hashing *hashing // nil if no field is hashed
}

// newRuleSet returns the rule set of file, where old, which may be empty, was in force.
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
	return r, nil
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
