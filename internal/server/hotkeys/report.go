package hotkeys

import (
	"errors"
	"time"
	"unsafe"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/keys"
)

// A Report is records of keys that a client has counted, under one hot rule. All of
// them are validated before any is counted:
//
//	var r hotkeys.Report
//	err := keys.Begin(&r, "product")
//	...
//	err = r.Add(3, 40*time.Millisecond, "/product/1")
//	...
//	n := r.Count("svc-1")
//
// Its memory is used again; then it does not allocate, except for keys that become hot. It is not safe for concurrent use.
type Report struct {
	k       *Keys
	rule    *hotRule
	keys    []byte // of all records
	id      []byte // memory for one in the table of processes
	records []counted
}

// counted is one record of a Report.
type counted struct {
	end int // of its key
	n   uint64
	age time.Duration
}

// Begin begins a report of keys under a rule in r.
func (k *Keys) Begin(r *Report, rule string) (err error) {
	r.k, r.keys, r.records = k, r.keys[:0], r.records[:0]
	r.rule, err = k.rules.Load().named(rule)
	return err
}

// Fields returns how many values a key of the rule has.
func (r *Report) Fields() int { return r.rule.fields }

// Add adds n events of a key, which were that long ago, to the report.
func (r *Report) Add(n uint64, age time.Duration, key ...string) (err error) {
	if r.keys, err = keys.Join(r.keys, &r.rule.Key, key); err == nil {
		r.records = append(r.records, counted{len(r.keys), n, age})
	}
	return err
}

// Count counts the records, which the process of that name reports, and returns how many
// it has counted. Skipped are records older than the span, of ignored keys, and of
// new keys when memory is full.
func (r *Report) Count(process string) (n int) {
	now, begin := r.k.config.Now(), 0
	var late, ignored, dropped uint64
	for _, record := range r.records {
		key := view(r.keys[begin:record.end])
		begin = record.end
		if record.age >= r.rule.Span { // no window has it any more
			late++
			continue
		}
		switch err := r.count(now, key, record, process); {
		case err == nil:
			n++
		case errors.Is(err, hotkey.ErrNever):
			ignored++
		default:
			dropped++
		}
	}
	u := r.rule.use
	u.counted.Add(uint64(n))
	if late+ignored+dropped > 0 {
		u.late.Add(late)
		u.ignored.Add(ignored)
		u.dropped.Add(dropped)
	}
	return n
}

// count counts one record.
func (r *Report) count(now time.Time, key string, record counted, process string) error {
	edge, hot, err := r.rule.keys.AddAt(now.Add(-record.age), key, record.n)
	if hot {
		r.k.becameHot(r.rule, edge)
	}
	if edge.Until.After(now) {
		r.id = appendID(r.id[:0], r.rule.Name, key, process)
		r.k.past.processes.AddAt(now, view(r.id), record.n)
	}
	return err
}

// view returns b as a string that is valid until b changes.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
