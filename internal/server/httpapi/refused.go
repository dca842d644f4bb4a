package httpapi

import "time"

// A refusedKey is an [engine.RefusedKey] for an answer.
type refusedKey struct {
	Rule string `json:"rule"`
	keyText
	bounds
	PerSecond   float64    `json:"per_second" doc:"the estimate divided by the span"`
	BannedUntil *time.Time `json:"banned_until" doc:"null if the rule does not ban the key"`
}

type refusedList struct {
	Refused []refusedKey `json:"refused"`
}

// listRefused answers with the keys that were refused most.
func listRefused(c *call) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	n, err := number(q, "n", 20, 1, 1000)
	if err != nil {
		return err
	}
	d, err := span(q, time.Minute)
	if err != nil {
		return err
	}
	keys, err := c.s.engine.Refused(n, d)
	if err != nil {
		return err
	}
	list := refusedList{[]refusedKey{}}
	for _, k := range keys {
		r := refusedKey{Rule: k.Rule, keyText: keyTextOf(k.Key), bounds: bounds{k.Lo, k.Hi}, PerSecond: float64(k.Estimate) / d.Seconds()}
		if !k.BannedUntil.IsZero() {
			until := k.BannedUntil.UTC()
			r.BannedUntil = &until
		}
		list.Refused = append(list.Refused, r)
	}
	return c.answer(list)
}
