package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

// eventFields is the event fields that the rules in force use, by which a field with
// a misspelled name is told from one that means something, and events without the
// fields that rules need are told from events that rules leave alone.
type eventFields struct {
	custom []string // names beyond the well-known fields
	unused []string // of custom, those that only earlier rules use
	needs  []need   // of everything that judges or counts events
}

// A need is the fields without which no event matches a rule or counter: those of its
// key and of its conditions.
type need struct {
	name   string
	fields []string
}

// newEventFields returns the fields of file. Custom fields of old stay known, so that
// a rule can be removed before the services that send its field: until a restart.
func newEventFields(file *rules.File, old *book) (f eventFields) {
	for _, name := range file.Fields() {
		if _, ok := match.FieldNamed(name); !ok {
			f.custom = append(f.custom, name)
		}
	}
	if old != nil {
		for _, name := range old.fields.custom {
			if !slices.Contains(f.custom, name) {
				f.unused = append(f.unused, name)
			}
		}
		f.custom = append(f.custom, f.unused...)
		slices.Sort(f.custom)
	}

	for i := range file.Limits.Len() {
		r := file.Limits.Rule(i)
		f.add(r.Name, r.Key, &r.When)
	}
	for i := range file.Hot.Len() {
		r := file.Hot.Rule(i)
		f.add(r.Name, r.Key, &r.When)
	}
	for i := range file.Counters {
		c := &file.Counters[i]
		f.add(c.Name, c.Key, &c.When)
	}
	return f
}

func (f *eventFields) add(name string, key match.Key, when *match.When) {
	fields := key.Fields()
	if c, err := when.Compile(); err == nil { // the file compiled it before
		fields = append(fields, c.Fields()...)
	}
	slices.Sort(fields)
	f.needs = append(f.needs, need{name, slices.Compact(fields)})
}

// lacks reports whether ev has none of the rules' and counters' sets of fields, so
// that nothing can judge or count it.
func (f *eventFields) lacks(ev *match.Event) bool {
	return !slices.ContainsFunc(f.needs, func(n need) bool {
		return !slices.ContainsFunc(n.fields, func(name string) bool { return len(ev.GetNamed(name)) == 0 })
	})
}

// text returns what the rules need, for the log.
func (f *eventFields) text() string {
	if len(f.needs) == 0 {
		return "no rules are in force"
	}
	const shown = 8
	var parts []string
	for _, n := range f.needs[:min(len(f.needs), shown)] {
		parts = append(parts, n.name+": "+strings.Join(n.fields, ", "))
	}
	if more := len(f.needs) - shown; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// Prepare makes ev, whose fields a client named, what the same request is in a log: a
// path with a query is taken apart, unless the client has set query or object. It returns
// an error that suggests a name if ev has a field that is neither well known nor used
// by any rule or counter: a rule would silently not see it.
func (c *Caller) Prepare(ev *match.Event) error {
	ev.SplitPath()
	if len(ev.Get(match.Object)) == 0 {
		ev.Set(match.Object, ev.Get(match.Path))
	}
	f := &c.e.book.Load().fields
	name, ok := ev.UnknownField(f.custom)
	if !ok {
		return nil
	}
	return f.unknown(name)
}

// checkNames returns an error if one of names, of fields of a key, is unknown. The key of
// counters that were made has the field dynamicField.
func (f *eventFields) checkNames(names []string) error {
	for _, field := range names {
		key, err := match.NewKey(match.Fold{}, field)
		if err != nil {
			return errorf(api.BadArg, "field %.64q: %v", field, err)
		}
		for _, name := range key.EventFields() { // "user | client" is two
			if _, ok := match.FieldNamed(name); !ok && name != dynamicField && !slices.Contains(f.custom, name) {
				return f.unknown(name)
			}
		}
	}
	return nil
}

// unknown is the error for a field of that name.
func (f *eventFields) unknown(name string) error {
	name = strings.Clone(name[:min(len(name), MaxName)])
	all := append(match.FieldNames(), f.custom...)
	if near := match.Suggest(name, all, fieldSlips); near != "" {
		return errorf(api.BadArg, "field %q: unknown; did you mean %s?", name, near)
	}
	return errorf(api.BadArg, "field %q: unknown, as no rule or counter uses it; must be one of %s", name, strings.Join(all[:min(len(all), shownFields)], ", "))
}

const (
	fieldSlips  = 2  // typing errors that a suggestion corrects
	shownFields = 32 // names that an error lists
)

// unmatchedEvery is how often the log has a warning about unmatched events.
const unmatchedEvery = time.Minute

// unmatched is when the log had the last warning about events that match no rule.
type unmatched struct {
	next  atomic.Int64  // when there may be another, in nanoseconds since the start
	since atomic.Uint64 // Totals.Unmatched at the last one
}

// warn logs, at most once a minute, that an event lacks fields that every rule needs.
// It is no mistake if the conditions of rules leave an event alone.
func (u *unmatched) warn(e *Engine, b *book, ev *match.Event) {
	now, next := int64(time.Since(e.started)), u.next.Load()
	if now < next || !b.fields.lacks(ev) || !u.next.CompareAndSwap(next, now+int64(unmatchedEvery)) {
		return
	}
	total := e.Totals().Unmatched
	e.log.Warn("events match no rule, because they lack fields that the rules need, and are admitted",
		"fields", strings.Join(ev.Names(), ", "), "needed", b.fields.text(), "unmatched", total-u.since.Swap(total))
}
