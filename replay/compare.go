package replay

import (
	"cmp"
	"errors"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

// An AlgorithmReport contains the decisions of one algorithm under a limit.
type AlgorithmReport struct {
	Algorithm   string `json:"algorithm"`
	Allowed     int64  `json:"allowed"`
	Refused     int64  `json:"refused"`
	KeysRefused int64  `json:"keys_refused"`

	// MostInWindow is the largest number of events of one key that were allowed in any
	// window (t - span, t].
	MostInWindow int64 `json:"most_in_window"`

	// BytesPerKey is the memory of the limit at the end, over the keys that had an event.
	// It is larger for few keys, since memory is allocated for many at once.
	BytesPerKey float64 `json:"bytes_per_key"`

	// Problem is the reason why the algorithm cannot count the limit; all numbers
	// are then 0.
	Problem string `json:"problem,omitempty"`
}

// A comparison is a limit under one algorithm.
type comparison struct {
	algorithm string
	problem   string
	allowed   *keyCounts // nil if there is a problem
}

// compareRulesets returns the only limit under each algorithm.
func (c *Config) compareRulesets(fields []string) (rulesets []ruleset, err error) {
	if c.Rules != nil || len(c.WhatIfs) != 1 || c.WhatIfs[0].Kind != Limit || c.WhatIfs[0].Per != 0 {
		return nil, errors.New("--compare: must be given with one --limit N/SPAN, and without --ban, --hot and --rules")
	}
	w := c.WhatIfs[0]
	key, err := parseKey(w.option(), cmp.Or(w.Key, c.Key), fields)
	if err != nil {
		return nil, err
	}
	for i, name := range limit.Algorithms() {
		a := limit.Algorithm(i)
		rs, err := w.ruleset(key, a, c.CountRefused)
		if c.CountRefused && a == ratelimit.InFlight {
			err = errors.New("a refused event is never under way")
		}
		if err == nil {
			err = rs.checkWindows(c.Resolution)
		}
		rs.compared = &comparison{algorithm: name}
		if err != nil {
			rs, _ = newRuleset(w.option(), nil, nil)
			rs.compared = &comparison{algorithm: name, problem: err.Error()}
		}
		rulesets = append(rulesets, rs)
	}
	return rulesets, nil
}

// countAllowed counts the events of the chunk that each compared algorithm allowed.
func (e *events) countAllowed() {
	for _, j := range e.judgings {
		if j.compared != nil && j.compared.allowed != nil {
			e.countKeys(j.compared.allowed, func(event int) bool { return j.outcomes[event] == allowed })
		}
	}
}

// reportCompared reports what the algorithm of j did.
func (j *judging) reportCompared() AlgorithmReport {
	rep := AlgorithmReport{Algorithm: j.compared.algorithm, Problem: j.compared.problem}
	if j.compared.allowed == nil {
		return rep
	}
	rule, keys := &j.rules[0], int64(0)
	for id, n := range rule.judged {
		keys += min(n, 1)
		rep.Allowed += n - rule.refused[id]
		rep.Refused += rule.refused[id]
		rep.KeysRefused += min(rule.refused[id], 1)
		rep.MostInWindow = max(rep.MostInWindow, j.compared.allowed.peaks[0][id])
	}
	bytes := int64(0)
	for _, judge := range j.judges {
		if judge != nil {
			bytes += judge.limiter.Stats().Bytes
		}
	}
	rep.BytesPerKey = float64(bytes) / float64(max(keys, 1))
	return rep
}
