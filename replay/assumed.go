package replay

import (
	"fmt"
	"iter"
)

// AssumedTimes is what was assumed about the times of logs that do not say it. Its fields are part of each report.
type AssumedTimes struct {
	AssumedYears []FileYear `json:"assumed_years,omitempty"`
	Zoneless     bool       `json:"zoneless,omitempty"`     // some times name no zone, and are read as UTC
	EitherOrder  bool       `json:"either_order,omitempty"` // some dates may begin with the day or with the month
}

// A FileYear is the year that was assumed for the first line of a file whose times have
// none, if Config.Year gives none: by the time when the file was last modified, or by
// the present time for standard input.
type FileYear struct {
	File string `json:"file"`
	Year int    `json:"year"`
}

// notes yields clauses for people.
func (a *AssumedTimes) notes() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, f := range a.AssumedYears {
			if !yield(fmt.Sprintf("%s has no years: its first line is taken to be of %d; --year gives another", visible(f.File), f.Year)) {
				return
			}
		}
		if a.Zoneless && !yield("the times name no zone: they are read as UTC") {
			return
		}
		if a.EitherOrder {
			yield("the dates may begin with the day or with the month: name --format text-dmy or text-mdy")
		}
	}
}
