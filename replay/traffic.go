package replay

import (
	"slices"
	"strconv"

	"github.com/lately-go/lately/api"
)

// Traffic has the most frequent values of a few fields.
type Traffic struct {
	Bytes  *int64         `json:"bytes,omitempty"` // of all responses, if the log has sizes
	Fields []FieldTraffic `json:"fields"`          // fields that an event has
}

// FieldTraffic has the most frequent values of one field. For a field that no rule uses, up to
// 65,536 distinct values are counted exactly. If there are more, every value with more than one
// event in 65,536 is still counted.
type FieldTraffic struct {
	Field  string       `json:"field"`
	Values int          `json:"values"`         // distinct ones
	More   bool         `json:"more,omitempty"` // there are more values, and counts have an error
	Top    []ValueCount `json:"top"`            // the most frequent
}

// A ValueCount is a value and its number of events.
type ValueCount struct {
	api.Key
	Count int64 `json:"count"`
	Over  int64 `json:"over,omitempty"` // largest error of Count: too high, or for one key too low
}

// trafficFields are the fields of [Traffic], and sizeField the one that it adds up.
var trafficFields = []string{"status", "method", "path", "agent", "referer", "reason"}

const sizeField = "size"

// A tally counts the values that events have in the fields of [Traffic].
type tally struct {
	events int64
	fields []fieldTally
	sizes  fieldTally
}

// A fieldTally counts the values of one field.
type fieldTally struct {
	name   string
	column int
	counts []int64  // by number of the value
	seen   []uint32 // the values that were counted
}

func (r *run) newTally() *tally {
	t := &tally{sizes: fieldTally{column: r.column(sizeField)}}
	for _, name := range trafficFields {
		t.fields = append(t.fields, fieldTally{name: name, column: r.column(name)})
	}
	return t
}

// reset makes t count from 0.
func (t *tally) reset() {
	t.events = 0
	t.sizes.reset()
	for i := range t.fields {
		t.fields[i].reset()
	}
}

func (f *fieldTally) reset() {
	for _, id := range f.seen {
		f.counts[id] = 0
	}
	f.seen = f.seen[:0]
}

// add counts events of the chunk; all of them if own is nil.
func (t *tally) add(e *events, own []int32) {
	if own == nil {
		own = make([]int32, len(e.times))
		for i := range own {
			own[i] = int32(i)
		}
	}
	t.events += int64(len(own))
	t.sizes.add(e, own)
	for i := range t.fields {
		t.fields[i].add(e, own)
	}
}

func (f *fieldTally) add(e *events, own []int32) {
	ids := e.cols[f.column]
	f.counts = grown(f.counts, len(e.values[f.column]))
	for _, event := range own {
		id := ids[event]
		if id == 0 {
			continue
		}
		if f.counts[id] == 0 {
			f.seen = append(f.seen, id)
		}
		f.counts[id]++
	}
}

// field returns the tally of a field of trafficFields.
func (t *tally) field(name string) *fieldTally { return &t.fields[slices.Index(trafficFields, name)] }

// top returns the most frequent value and how many events have it.
func (f *fieldTally) top(e *events) (value string, n int64) {
	for _, id := range f.seen {
		if c := f.counts[id]; c > n || c == n && e.values[f.column][id] < value {
			value, n = e.values[f.column][id], c
		}
	}
	return value, n
}

// count returns how many events have a value for which is is true.
func (f *fieldTally) count(e *events, is func(value string) bool) (n int64) {
	for _, id := range f.seen {
		if is(e.values[f.column][id]) {
			n += f.counts[id]
		}
	}
	return n
}

// reportTraffic reports what all events are like, and, without a lateness, those of each of the
// busiest keys.
func (e *events) reportTraffic() {
	if e.traffic == nil {
		return
	}
	e.report.Traffic = e.traffic.report(e, e.run.Top)
	if e.run.Lateness > 0 { // the events of the keys are not kept
		return
	}
	t := e.run.newTally()
	from, own := e.top.keys.byKey(nil)
	for i, id := range e.top.keys.largest(e.run.Top, e.order()) {
		t.reset()
		t.add(e, own[from[id]:from[id+1]])
		e.report.Top[i].Traffic = t.report(e, keyTraffic)
	}
}

// keyTraffic is how many values of each field are reported for one key.
const keyTraffic = 3

// report returns the n most frequent values of each field.
func (t *tally) report(e *events, n int) *Traffic {
	out := &Traffic{Fields: []FieldTraffic{}}
	if len(t.sizes.seen) > 0 {
		sum := int64(0)
		for _, id := range t.sizes.seen {
			size, _ := strconv.ParseInt(e.values[t.sizes.column][id], 10, 64) // "-" has none
			sum += size * t.sizes.counts[id]
		}
		out.Bytes = &sum
	}
	for i := range t.fields {
		f := &t.fields[i]
		if len(f.seen) == 0 {
			continue
		}
		values := FieldTraffic{Field: f.name, Values: len(f.seen)}
		var over []int64 // by number
		if e.timeline.top != nil && e.timeline.top[f.column] != nil {
			over, values.More = e.timeline.top[f.column].over, e.timeline.top[f.column].full
		}
		column, least := keyColumn{texts: e.values[f.column]}, f.counts
		if values.More {
			least = slices.Clone(f.counts)
			for _, id := range f.seen {
				least[id] = max(0, least[id]-over[id])
			}
		}
		for _, id := range column.largest(n, least) {
			v := ValueCount{Key: api.KeyOf(column.texts[id]), Count: f.counts[id]}
			if values.More {
				v.Over = over[id]
			}
			values.Top = append(values.Top, v)
		}
		out.Fields = append(out.Fields, values)
	}
	return out
}
