package lately

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// A Step is one row of a [Steps] table: below that average, that limit. Their
// units are the caller's; Below is in that of what [Steps.Follow] is given.
type Step struct {
	Below float64
	Limit uint64
}

// StepsConfig is a table of limits by measured traffic. Only Steps has no
// default.
type StepsConfig struct {
	// Steps are the rows, with Below growing from row to row, positive and
	// finite. There is at least one.
	Steps []Step

	// Above is the limit from the last Below on.
	Above uint64

	// Hysteresis is by what share of Below an average must have fallen under it
	// before the row holds again, less than 1; 0 means 0.1, and a negative
	// number means none.
	Hysteresis float64
}

// Steps picks a limit by an average that is measured from time to time, from a
// table: below 1000 a second, 2000; below 5000, 1000; else 500. It is for
// limits that follow the traffic.
//
// It does not flap. An average that reaches a row's Below leaves that row at
// once. To come back it must fall under Below by a share, the hysteresis. An
// average that goes to and fro around a threshold by less than that changes the
// limit once.
//
// Follow costs a few nanoseconds. All methods may be called at any time by any
// number of goroutines. The zero Steps is not usable: it panics; call [NewSteps].
// A Steps must not be copied.
//
// The table with two thresholds is what is known as a Schmitt trigger.
type Steps struct {
	steps   []Step // and the row for all above, whose Below is infinite
	back    []float64
	row     atomic.Int64
	changes atomic.Uint64
}

const defaultHysteresis = 0.1

// NewSteps returns the table of config, at its first row. The error names the
// field that is wrong, its value and what is allowed.
func NewSteps(config StepsConfig) (*Steps, error) {
	share := config.Hysteresis
	switch {
	case share == 0:
		share = defaultHysteresis
	case share < 0:
		share = 0
	case !(share < 1):
		return nil, fmt.Errorf("lately: steps hysteresis %v: must be less than 1, a share of the threshold", share)
	}
	if len(config.Steps) == 0 {
		return nil, fmt.Errorf("lately: steps: no rows, at least one is needed")
	}
	s := &Steps{steps: append(slices.Clone(config.Steps), Step{math.Inf(1), config.Above})}
	last := 0.0
	for i, step := range config.Steps {
		if !(step.Below > last) || math.IsInf(step.Below, 1) {
			return nil, fmt.Errorf("lately: steps: row %d is below %v, must be a finite number greater than %v, the one before", i, step.Below, last)
		}
		last = step.Below
		s.back = append(s.back, step.Below*(1-share))
	}
	return s, nil
}

// Follow takes the average as measured now and returns the limit for it.
// Without hysteresis, and the first time, that is the limit of the first row
// that the average is below. An average that is not a number changes nothing.
func (s *Steps) Follow(average float64) uint64 {
	if math.IsNaN(average) {
		return s.Limit()
	}
	// The row is at least where a rising average belongs, and at most where a
	// falling one does.
	least, most := int64(0), int64(0)
	for i := range s.back {
		if average >= s.steps[i].Below {
			least = int64(i) + 1
		}
		if average >= s.back[i] {
			most = int64(i) + 1
		}
	}
	for {
		row := s.row.Load()
		next := min(max(row, least), most)
		if next == row {
			return s.limit(row)
		}
		if s.row.CompareAndSwap(row, next) {
			s.changes.Add(1)
			return s.limit(next)
		}
	}
}

// Limit returns the limit that the last Follow came to, that of the first row if
// there was none.
func (s *Steps) Limit() uint64 { return s.limit(s.row.Load()) }

// limit returns the limit of a row, which every Steps that was made has.
func (s *Steps) limit(row int64) uint64 {
	if uint64(row) >= uint64(len(s.steps)) {
		panic(zeroValue)
	}
	return s.steps[row].Limit
}

// Changes returns how often the row has changed since s was made.
func (s *Steps) Changes() uint64 { return s.changes.Load() }
