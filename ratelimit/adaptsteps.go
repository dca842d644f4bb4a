package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// An AdaptStep is one row of an [Adapt]: while the average is less than Below
// events a second, the limit is Limit.
type AdaptStep struct {
	Below float64
	Limit uint64
}

const defaultHysteresis = 0.1

// A stepTable picks a limit by an average that is measured from time to time.
// An average that reaches the Below of a row leaves that row at once. To return
// to the row it must fall below its entry in back, so an average that
// oscillates around a threshold by less than the hysteresis changes the limit
// once. A table with two thresholds is known as a Schmitt trigger.
//
// A stepTable is not safe for concurrent use.
type stepTable struct {
	steps []AdaptStep // the last row has an infinite Below
	back  []float64   // of each row but the last: the row holds again below this average
	row   int
}

// newStepTable returns the table of a at its first row, or an error that names
// the field that is wrong.
func newStepTable(a *Adapt) (*stepTable, error) {
	share := a.Hysteresis
	switch {
	case share == 0:
		share = defaultHysteresis
	case share < 0:
		share = 0
	case !(share < 1): // NaN as well
		return nil, fmt.Errorf("adapt: hysteresis %v: must be less than 1", share)
	}
	if len(a.Steps) == 0 {
		return nil, errors.New("adapt: no steps: must be 1 or more")
	}
	t := &stepTable{steps: append(slices.Clone(a.Steps), AdaptStep{math.Inf(1), a.Above})}
	last := 0.0
	for i, step := range a.Steps {
		if !(step.Below > last) || math.IsInf(step.Below, 1) {
			return nil, fmt.Errorf("adapt: step %d is below %v: must be a finite number greater than %v, the step before", i+1, step.Below, last)
		}
		last = step.Below
		t.back = append(t.back, step.Below*(1-share))
	}
	return t, nil
}

// follow returns the limit for an average that was measured now. An average
// that is not a number changes nothing.
func (t *stepTable) follow(average float64) uint64 {
	for t.row < len(t.back) && average >= t.steps[t.row].Below {
		t.row++
	}
	for t.row > 0 && average < t.back[t.row-1] {
		t.row--
	}
	return t.limit()
}

// limit returns the limit of the current row.
func (t *stepTable) limit() uint64 { return t.steps[t.row].Limit }

// moveTo makes the first row with this limit the current one, if there is one.
func (t *stepTable) moveTo(limit uint64) {
	if i := slices.IndexFunc(t.steps, func(s AdaptStep) bool { return s.Limit == limit }); i >= 0 {
		t.row = i
	}
}
