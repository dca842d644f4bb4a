package history

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
)

// A savedHistory is a record of a snapshot: parts of the history that have the same rules.
type savedHistory struct {
	Marks []api.Mark  `json:"marks,omitempty"`
	Rules []string    `json:"names,omitempty"`
	Hot   []string    `json:"hot,omitempty"`
	Parts []savedPart `json:"parts,omitempty"`
}

// A savedPart is a part of the history. Times are milliseconds since 1970.
type savedPart struct {
	From  int64      `json:"from"`
	To    int64      `json:"to"`
	All   Outcomes   `json:"all"`
	Rules []Outcomes `json:"rules,omitempty"`
	Hot   []Outcomes `json:"hot,omitempty"`
}

// savedParts is how many parts a record has at most: its length is bounded.
const savedParts = 64

// Export yields records of the history, for Import.
func (h *History) Export() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		h.mu.Lock()
		record := savedHistory{Marks: slices.Clone(h.marks)}
		parts := h.wholeMinutes()
		h.mu.Unlock()
		for i := range parts {
			p := &parts[i]
			same := slices.Equal(record.Rules, p.Rules.names) && slices.Equal(record.Hot, p.Hot.names)
			if len(record.Parts) == savedParts || len(record.Parts) > 0 && !same {
				if !yield(record.encode()) {
					return
				}
				record = savedHistory{}
			}
			record.Rules, record.Hot = p.Rules.names, p.Hot.names
			record.Parts = append(record.Parts, savedPart{p.from.UnixMilli(), p.to.UnixMilli(), p.All, p.Rules.counts, p.Hot.counts})
		}
		yield(record.encode())
	}
}

func (r *savedHistory) encode() []byte {
	data, _ := json.Marshal(r) // texts, numbers and times of this era have no errors
	return data
}

// Import restores a record, before what this process has decided.
func (h *History) Import(data []byte) error {
	var record savedHistory
	if err := json.Unmarshal(data, &record); err != nil {
		return fmt.Errorf("record of the history: %w", err)
	}
	if len(record.Rules) > MaxRules || len(record.Hot) > MaxHot {
		return fmt.Errorf("record of the history: %d rules and %d hot rules: must be at most %d and %d", len(record.Rules), len(record.Hot), MaxRules, MaxHot)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range record.Marks {
		if last := len(h.marks) - 1; len(h.marks) < keptMarks && m.Time.Before(h.marks[last].Time) {
			h.marks = slices.Insert(h.marks, last, m) // before that of this start
		}
	}
	for _, p := range record.Parts {
		if len(p.Rules) != len(record.Rules) || len(p.Hot) != len(record.Hot) {
			return fmt.Errorf("record of the history: the outcomes of %d rules and %d hot rules: must be %d and %d", len(p.Rules), len(p.Hot), len(record.Rules), len(record.Hot))
		}
		h.restore(part{time.UnixMilli(p.From), time.UnixMilli(p.To), Sample{p.All, Rules{record.Rules, p.Rules}, Rules{record.Hot, p.Hot}}})
	}
	return nil
}

// restore appends p to what was restored before, unless it is not older than this process,
// since the clock was set back, or this process has added minutes.
func (h *History) restore(p part) {
	if len(h.minutes) > h.restored || p.to.After(h.began) || h.restored > 0 && p.from.Before(h.minutes[h.restored-1].to) {
		return
	}
	h.minutes = keep(h.minutes, p, MaxMinutes)
	h.restored = len(h.minutes)
}
