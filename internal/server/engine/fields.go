package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/spelling"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/counters"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// eventFields has the event fields that a rules file uses. It finds misspelled names, events
// without the fields that rules need, and values that are too long for the key of a rule.
type eventFields struct {
	limits *ratelimit.Set
	custom []string // names that are not well known
	unused []string // of custom: those that only earlier rules use
	uses   []fieldUse

	// The fields in the keys of rules that can refuse an event.
	known []match.Field
	named []string

	answers answerFields
}

// A fieldUse is the fields of one rule or counter: those of its key and its conditions.
type fieldUse struct {
	name      string
	key       match.Key
	when      *match.When
	condition match.Condition
	request   match.Condition // of a request that has no answer yet
	fields    []string        // without all of them, no event matches
	limits    bool            // it is a limit or a ban
	refuses   bool            // and not in shadow mode
}

// newEventFields returns the fields of file. Custom fields of old stay known until a
// restart, so that a rule can be removed before the services that send its field.
func newEventFields(file *rules.File, old *ruleSet) (f eventFields, err error) {
	f.limits = file.Limits
	for _, name := range file.Fields() {
		if _, ok := eventfield.Named(name); !ok && !ofLogs(name) {
			f.custom = append(f.custom, name)
		}
	}
	for _, s := range file.Limits.Internal().Sources() {
		if _, ok := eventfield.Named(s.Field); !ok && !slices.Contains(f.custom, s.Field) {
			f.custom = append(f.custom, s.Field)
		}
	}
	if !slices.Contains(f.custom, eventfield.Duration) { // an outcome may have it
		f.custom = append(f.custom, eventfield.Duration)
	}
	for _, name := range old.fields.custom {
		if !slices.Contains(f.custom, name) {
			f.unused = append(f.unused, name)
		}
	}
	f.custom = append(f.custom, f.unused...)
	slices.Sort(f.custom)

	for _, r := range file.Limits.Rules() {
		f.add(r.Name, r.Key, &r.When, true, !r.Shadow)
	}
	for i := range file.Hot {
		r := &file.Hot[i]
		f.add(r.Name, r.Key, &r.When, false, false)
	}
	for i := range file.Counters {
		c := &file.Counters[i]
		f.add(c.Name, c.Key, &c.When, false, false)
	}
	f.answers, err = newAnswerFields(file, f.uses)
	return f, err
}

func (f *eventFields) add(name string, key match.Key, w *match.When, limits, refuses bool) {
	before := when.Request(w)
	condition, _ := w.Compile() // which was compiled when the file was read
	request, _ := before.Compile()
	fields := slices.Concat(key.Fields(), when.Needs(w))
	slices.Sort(fields)
	f.uses = append(f.uses, fieldUse{name, key, w, condition, request, slices.Compact(fields), limits, refuses})
	if !refuses {
		return
	}
	for _, name := range keyvalue.Fields(key) {
		if field, ok := eventfield.Named(name); !ok {
			f.named = append(f.named, name)
		} else if !slices.Contains(f.known, field) {
			f.known = append(f.known, field)
		}
	}
}

// checkLength returns an error if a value of ev is too long for the key of a rule that
// judges ev. key is memory for keys, and is returned.
func (f *eventFields) checkLength(ev *match.Event, key []byte) ([]byte, error) {
	if !f.hasLong(ev) || f.limits.Internal().Allowed(ev) {
		return key, nil
	}
	for i := range f.uses {
		u := &f.uses[i]
		condition := &u.condition
		if ev.Part == match.Request {
			condition = &u.request
		}
		if !u.refuses || !condition.Holds(ev) {
			continue
		}
		var ok bool
		if key, ok = u.key.Append(key[:0], ev); !ok {
			continue
		}
		if err := keys.Check(&u.key, key); err != nil {
			return key, err
		}
	}
	return key, nil
}

// hasLong reports whether ev may have a value that is too long for a key. It only
// compares a few lengths, since all events need it.
func (f *eventFields) hasLong(ev *match.Event) bool {
	for _, field := range f.known {
		if len(ev.Get(field)) > keys.Max {
			return true
		}
	}
	for _, name := range f.named {
		if len(ev.GetNamed(name)) > keys.Max {
			return true
		}
	}
	return false
}

// lacks reports whether no rule and no counter can match ev, because it lacks fields.
func (f *eventFields) lacks(ev *match.Event) bool {
	return !slices.ContainsFunc(f.uses, func(u fieldUse) bool {
		return !slices.ContainsFunc(u.fields, func(name string) bool { return len(ev.GetNamed(name)) == 0 })
	})
}

// needed returns the fields that the rules need, for the log.
func (f *eventFields) needed() string {
	if len(f.uses) == 0 {
		return "no rules are in force"
	}
	const shown = 8
	var parts []string
	for _, u := range f.uses[:min(len(f.uses), shown)] {
		parts = append(parts, u.name+": "+strings.Join(u.fields, ", "))
	}
	if more := len(f.uses) - shown; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// Prepare makes ev, whose fields a client has named, like the same request in a log: a path
// with a query is split, unless the client has set query or object. A field that is neither
// well known nor used by a rule or counter is an error, which suggests a name. So is one that says
// which log an event is from.
func (s *Session) Prepare(ev *match.Event) error {
	eventfield.SplitPath(ev)
	if len(ev.Get(match.Object)) == 0 {
		ev.Set(match.Object, ev.Get(match.Path))
	}
	f := &s.e.rules.Load().fields
	if name, ok := eventfield.Unknown(ev, f.custom); ok {
		return f.unknown(name)
	}
	return nil
}

// checkNames returns an error if one of names, of fields of a key, is unknown.
func (f *eventFields) checkNames(names []string) error {
	for _, field := range names {
		key, err := match.NewKey(match.Fold{}, field)
		if err != nil {
			return apierror.New(api.BadArg, "field %.64q: %v", field, err)
		}
		for _, name := range keyvalue.Fields(key) { // "user | client" is two
			if _, ok := eventfield.Named(name); !ok && name != counters.DynamicField && !ofLogs(name) && !slices.Contains(f.custom, name) {
				return f.unknown(name)
			}
		}
	}
	return nil
}

// ofLogs reports whether only what reads logs sets the field of that name.
func ofLogs(name string) bool { return name == eventfield.Log || name == eventfield.Format }

// unknown returns the error for an unknown field.
func (f *eventFields) unknown(name string) error {
	if ofLogs(name) {
		return apierror.New(api.BadArg, "field %q: must be left out, as only events of logs have it", name)
	}
	const typos, listed = 2, 32 // that a suggestion corrects, and names in an error
	name = strings.Clone(name[:min(len(name), counters.MaxName)])
	all := append(eventfield.WellKnown(), f.custom...)
	if near := spelling.Nearest(name, all, typos); near != "" {
		return apierror.New(api.BadArg, "field %q: unknown; did you mean %s?", name, near)
	}
	return apierror.New(api.BadArg, "field %q: unknown: must be declared under fields in the rules file, or be one of %s", name, strings.Join(all[:min(len(all), listed)], ", "))
}

// unmatchedEvery is how often the log has a warning about unmatched events.
const unmatchedEvery = time.Minute

// unmatchedWarning is the state of the warning about events that match no rule.
type unmatchedWarning struct {
	next  atomic.Int64  // when the next one may be logged, in nanoseconds since the start
	since atomic.Uint64 // Totals.Unmatched at the last one
}

// warn logs, at most once a minute, that an event lacks fields that every rule needs.
func (w *unmatchedWarning) warn(e *Engine, f *eventFields, ev *match.Event) {
	now, next := int64(time.Since(e.started)), w.next.Load()
	if now < next || !f.lacks(ev) || !w.next.CompareAndSwap(next, now+int64(unmatchedEvery)) {
		return
	}
	total := e.Totals().Unmatched
	e.log.Warn("events match no rule, because they lack fields that the rules need, and are allowed",
		"fields", strings.Join(eventfield.Names(ev), ", "), "needed", f.needed(), "unmatched", total-w.since.Swap(total))
}
