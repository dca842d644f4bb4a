package replay

import (
	"fmt"
	"iter"
)

// AssumedTimes lists assumptions about times in logs that lack a year, a zone or an order. Its
// fields are part of each report.
type AssumedTimes struct {
	AssumedYears []FileYear `json:"assumed_years,omitempty"`
	ByClock      bool       `json:"years_by_clock,omitempty"` // some times that patterns found lack a year: that of the clock, or the one before
	Zoneless     bool       `json:"zoneless,omitempty"`       // some times lack a zone, and are read as UTC
	EitherOrder  bool       `json:"either_order,omitempty"`   // some dates may begin with the day or with the month
}

// LogEvents describes the events that a report is about: those of files that are in a cut.
type LogEvents struct {
	Files  []string   `json:"files"`
	Cut    *CutReport `json:"cut,omitempty"`
	Events int64      `json:"events"`
	First  *Epoch     `json:"first,omitempty"`
	Last   *Epoch     `json:"last,omitempty"`
	AssumedTimes
}

// described returns what a report is about that has so many events.
func (e *events) described(n int64) LogEvents {
	d := LogEvents{Files: e.run.Files, Cut: e.report.Cut, Events: n, AssumedTimes: e.report.AssumedTimes}
	if first, last, ok := e.span(); ok {
		d.First, d.Last = new(epoch(first)), new(epoch(last))
	}
	return d
}

// A FileYear is the assumed year of the first line of a file whose times lack the year,
// if Config.Year is not set: from the modification time of the file, or the current
// time for standard input.
type FileYear struct {
	File string `json:"file"`
	Year int    `json:"year"`
}

// notes yields clauses for people.
func (a *AssumedTimes) notes() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, f := range a.AssumedYears {
			if !yield(fmt.Sprintf("%s has no years: the assumed year of its first line is %d; --year gives another", visible(f.File), f.Year)) {
				return
			}
		}
		if a.ByClock && !yield("some times have no year: each is read as the latest that is not more than a day ahead of the clock, whatever --year is") {
			return
		}
		if a.Zoneless && !yield("the times name no zone: they are read as UTC") {
			return
		}
		if a.EitherOrder {
			yield("the dates may begin with the day or with the month: name --format text-dmy or text-mdy")
		}
	}
}
