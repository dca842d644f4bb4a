package replay

import "github.com/lately-go/lately/match"

// partField is the name of the column that has the parts of Config.Events: the first one, as its name is before those of fields.
const (
	partField  = "\x00part"
	partColumn = 0
)

// partNames are its values. An event that is whole has none, as events of logs.
var partNames = [...][]byte{match.Request: []byte("request"), match.Answer: []byte("answer")}

// answers returns how many events are answers, which are no events of their own for a report.
func (e *events) answers() (n int64) {
	for i := range e.times {
		if e.part(i) == match.Answer {
			n++
		}
	}
	return n
}

// part returns which part of what happened event i is.
func (e *events) part(i int) match.Part {
	if e.run.Events == nil {
		return match.Whole
	}
	switch e.values[partColumn][e.cols[partColumn][i]] {
	case string(partNames[match.Request]):
		return match.Request
	case string(partNames[match.Answer]):
		return match.Answer
	}
	return match.Whole
}
