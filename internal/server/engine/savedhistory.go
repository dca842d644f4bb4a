package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
)

// A savedHistory is a part of the history in a record of a snapshot: samples of whole
// minutes whose rules are the same.
type savedHistory struct {
	Marks []api.Mark `json:"marks,omitempty"`
	Names []string   `json:"names,omitempty"`
	// A sample is its milliseconds since 1970, 5 totals, and 5 of each rule. Totals are
	// less those of the newest sample, so that a process that begins at 0 goes on from there.
	Samples [][]int64 `json:"samples,omitempty"`
}

const (
	savedAhead   = 6  // numbers of a sample before those of rules
	savedPerRule = 5  // numbers of a rule
	savedSamples = 64 // in a record, which must be smaller than a record may be
)

// saveHistory writes the history down.
func (e *Engine) saveHistory(add func(typ byte, data []byte) error) error {
	h := &e.history
	h.mu.Lock()
	part := savedHistory{Marks: slices.Clone(h.marks)}
	all := append(h.minutes.all(), *h.seconds.newest())
	h.mu.Unlock()
	all = all[max(0, len(all)-maxRestored):]
	levelled(all)
	flush := func() error {
		data, err := json.Marshal(part)
		if err != nil {
			return err
		}
		return add(recordHistory, data)
	}
	for i := range all {
		x := &all[i]
		if len(part.Samples) == savedSamples || len(part.Samples) > 0 && !slices.Equal(part.Names, x.names) {
			if err := flush(); err != nil {
				return err
			}
			part = savedHistory{}
		}
		part.Names = x.names
		part.Samples = append(part.Samples, x.numbers())
	}
	return flush()
}

// levelled changes samples, oldest first, so that the newest has totals of 0 and a rule
// that began again at 0 did not.
func levelled(all []sample) {
	sums := make(map[string]api.RuleTotals)
	newest := all[len(all)-1].all
	before := sample{}
	for i := range all {
		x := all[i]
		all[i].all = x.all.Minus(newest)
		all[i].rules = make([]api.RuleTotals, len(x.rules))
		for j, name := range x.names {
			sums[name] = ruleSum(sums[name], ruleDifference(x.rules[j], before.rule(x.names, j)))
			all[i].rules[j] = sums[name]
		}
		before = x
	}
	for i := range all {
		for j, name := range all[i].names {
			r, s := &all[i].rules[j], sums[name]
			*r = ruleSum(*r, api.RuleTotals{Allowed: -s.Allowed, Refused: -s.Refused, Banned: -s.Banned, Shadow: -s.Shadow, Bans: -s.Bans})
		}
	}
}

// ruleSum returns the sum of t and o, modulo 2^64.
func ruleSum(t, o api.RuleTotals) api.RuleTotals {
	return api.RuleTotals{Allowed: t.Allowed + o.Allowed, Refused: t.Refused + o.Refused, Banned: t.Banned + o.Banned, Shadow: t.Shadow + o.Shadow, Bans: t.Bans + o.Bans}
}

func (x *sample) numbers() []int64 {
	n := make([]int64, 0, savedAhead+savedPerRule*len(x.rules))
	n = append(n, x.at.UnixMilli(), int64(x.all.Allowed), int64(x.all.Refused), int64(x.all.Banned), int64(x.all.Unmatched), int64(x.all.Errors))
	for _, r := range x.rules {
		n = append(n, int64(r.Allowed), int64(r.Refused), int64(r.Banned), int64(r.Shadow), int64(r.Bans))
	}
	return n
}

// sampleOf is the inverse of numbers.
func sampleOf(n []int64, names []string) (sample, error) {
	if want := savedAhead + savedPerRule*len(names); len(n) != want {
		return sample{}, fmt.Errorf("record of the history: a sample of %d rules has %d numbers: must be %d", len(names), len(n), want)
	}
	u := func(i int) uint64 { return uint64(n[i]) }
	x := sample{at: time.UnixMilli(n[0]), all: api.Totals{Allowed: u(1), Refused: u(2), Banned: u(3), Unmatched: u(4), Errors: u(5)}, names: names}
	for i := savedAhead; i < len(n); i += savedPerRule {
		x.rules = append(x.rules, api.RuleTotals{Allowed: u(i), Refused: u(i + 1), Banned: u(i + 2), Shadow: u(i + 3), Bans: u(i + 4)})
	}
	return x, nil
}

// history puts a part of a saved history before what the engine has decided itself.
func (r *Restorer) history(data []byte) error {
	var part savedHistory
	if err := json.Unmarshal(data, &part); err != nil {
		return fmt.Errorf("record of the history: %w", err)
	}
	if len(part.Names) > keptRules {
		return fmt.Errorf("record of the history: %d rules: must be at most %d", len(part.Names), keptRules)
	}
	h := &r.e.history
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range part.Marks {
		if last := len(h.marks) - 1; len(h.marks) < keptMarks && m.Time.Before(h.marks[last].Time) {
			h.marks = slices.Insert(h.marks, last, m) // before that of this start
		}
	}
	for _, n := range part.Samples {
		x, err := sampleOf(n, part.Names)
		if err != nil {
			return err
		}
		h.restore(x)
	}
	return nil
}

// maxRestored is how many samples are saved and restored at most, so that the first of
// this process still fits the ring.
const maxRestored = keptMinutes - 1

// restore puts x between what was restored before and the first sample of this process.
// It is left out if it does not belong there, since a clock was set back, or if minutes
// have passed and there is more than one sample of this process.
func (h *history) restore(x sample) {
	ring, own := h.minutes.ring, h.restored
	if h.minutes.full || h.minutes.next != own+1 || own == maxRestored ||
		!x.at.Before(ring[own].at) || own > 0 && !x.at.After(ring[own-1].at) {
		return
	}
	h.minutes.next = own
	first := ring[own]
	h.minutes.add(x)
	h.minutes.add(first)
	h.restored++
}
