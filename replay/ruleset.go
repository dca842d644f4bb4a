package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A ruleset is rules that are judged together: those of a rules file, or a what-if as
// a set of one rule. Limits and bans judge first; hot rules count the events that these
// allow. The rulesets of a replay know nothing of each other.
type ruleset struct {
	limits *ratelimit.Set // and bans
	hot    []hotkey.Rule
	allows bool            // there is an allow list
	option string          // the option that a what-if was given by, "--limit 60/1m"; "" for a rules file
	absent map[string]bool // names of the rules that can match no event of the log

	compared *comparison // the ruleset is reported in Report.Compared only
	diffed   bool        // nobody asks what single rules decided, only for their bans

	// trace, if not nil, is called for each event in the order of judging, with what
	// all its rules decided and the outcome of each.
	trace func(event int, d ratelimit.Decision, own []ratelimit.Outcome)
}

// rulesOf returns the ruleset of a rules file.
func rulesOf(f *rules.File) ruleset {
	return ruleset{limits: f.Limits, hot: f.Hot, allows: len(f.Allow.Clients)+len(f.Allow.Files) > 0, absent: make(map[string]bool)}
}

// limitsOf returns the limits and bans of a rules file, without its hot rules.
func limitsOf(f *rules.File) ruleset {
	rs := rulesOf(f)
	rs.hot = nil
	return rs
}

// newRuleset returns the ruleset of these rules, at most one of them.
func newRuleset(option string, limits []ratelimit.Rule, hot []hotkey.Rule) (rs ruleset, err error) {
	rs.option, rs.absent, rs.hot = option, make(map[string]bool), hot
	if rs.limits, err = ratelimit.NewSet(ratelimit.SetConfig{}, limits...); err == nil {
		err = hotkey.Validate(hot...)
	}
	return rs, err
}

// requires reports whether limits and bans refuse events that lack a field of key.
func (rs *ruleset) requires(key match.Key) bool {
	names := keyvalue.Fields(key)
	return slices.ContainsFunc(rs.limits.Internal().Sources(), func(s match.Source) bool { return s.Refuse && slices.Contains(names, s.Field) })
}

// fields returns the names of the event fields that the rules look at.
func (rs *ruleset) fields() []string {
	names := rs.limits.Internal().Fields()
	for i := range rs.hot {
		names = append(names, rs.hot[i].Fields()...)
	}
	return names
}

// A commonRule is what limits, bans and hot rules have in common.
type commonRule struct {
	name    string
	key     match.Key
	when    match.When
	windows []time.Duration // lengths that must be multiples of the resolution
}

// rules returns the limits and bans, and then the hot rules.
func (rs *ruleset) rules() (all []commonRule) {
	for _, r := range rs.limits.Rules() {
		c := commonRule{name: r.Name, key: r.Key, when: r.When}
		for _, l := range r.Limits {
			c.windows = append(c.windows, edges(r.Algorithm, l, r.Zone))
		}
		if r.Ban != nil {
			c.windows = append(c.windows, r.Ban.Span)
		}
		all = append(all, c)
	}
	for i := range rs.hot {
		r := &rs.hot[i]
		all = append(all, commonRule{r.Name, r.Key, r.When, []time.Duration{r.Span}})
	}
	return all
}

// title names a rule in messages.
func (rs *ruleset) title(rule string) string {
	if rs.option != "" {
		return rs.option
	}
	return fmt.Sprintf("rule %q", rule)
}

// checkWindows returns an error if the window of a rule is not a multiple of the
// resolution.
func (rs *ruleset) checkWindows(resolution time.Duration) error {
	for _, r := range rs.rules() {
		for _, window := range r.windows {
			if resolution != 0 && window%resolution != 0 {
				return fmt.Errorf("%s: window %v: must be a multiple of the resolution %v", rs.title(r.name), window, resolution)
			}
		}
	}
	return nil
}

// edges returns what the edges of l's windows are multiples of, under a: the
// span, or for the calendar a day at most. Clocks of a zone are some quarters of
// an hour apart from those of UTC.
func edges(a ratelimit.Algorithm, l ratelimit.Limit, zone *time.Location) time.Duration {
	const quarter, day = 15 * time.Minute, 24 * time.Hour
	switch {
	case a != ratelimit.Calendar:
		return l.Span
	case zone != nil && zone != time.UTC:
		return min(l.Window(), quarter)
	}
	return min(l.Window(), day)
}

// separable reports whether the limits and bans judge each key without the others: all
// count by the same key, and none adapts to the traffic of all keys.
func (rs *ruleset) separable() bool {
	for _, r := range rs.limits.Rules() {
		if r.Adapt != nil || !keyvalue.Equal(r.Key, rs.limits.Rules()[0].Key) {
			return false
		}
	}
	return true
}

// A keyColumn has for each event of the chunk the number of the key that rules count it
// by, and the keys of these numbers. Number 0 is none.
type keyColumn struct {
	ids   []uint32
	texts []string

	key    match.Key
	reader *eventReader // of the fields of the key; nil if it is one field
	column int          // of that field
	own    *interner    // of the keys; nil while each value of the field is its own key
	number []uint32     // of the keys, by number of the value, if the key is one field
	seen   int          // values of the field
}

// keyColumn returns the column of a key. Equal keys share one.
func (e *events) keyColumn(key match.Key) *keyColumn {
	if i := slices.IndexFunc(e.columns, func(c *keyColumn) bool { return keyvalue.Equal(c.key, key) }); i >= 0 {
		return e.columns[i]
	}
	c := &keyColumn{key: key, texts: []string{""}, seen: 1}
	if names := keyvalue.Fields(key); len(names) == 1 {
		c.column = e.run.column(names[0])
	} else {
		c.reader, c.own = e.newEventReader(names), newInterner()
	}
	e.columns = append(e.columns, c)
	return c
}

// keyFields returns the fields of k as an option names them: "client/24" for a network.
func keyFields(k match.Key) []string {
	names, fold := slices.Clone(k.Fields()), k.Fold()
	if i := keyvalue.ClientIndex(k); i >= 0 && !fold.Off && (fold.IPv4 != 32 || fold.IPv6 != 64) {
		network := fmt.Sprintf("client/%d", fold.IPv4)
		if fold.IPv6 != 64 {
			network += fmt.Sprintf(",%d", fold.IPv6)
		}
		names[i] = strings.Replace(names[i], match.Client.String(), network, 1)
	}
	return names
}

// keyOf returns the key of that number.
func (c *keyColumn) keyOf(id uint32) api.Key { return api.KeyOf(keyvalue.All(c.key, c.texts[id])...) }

// fill makes c the column of the chunk, or a part of it if ctx is done.
func (e *events) fill(ctx context.Context, c *keyColumn) {
	if c.reader == nil {
		e.fillOfField(c)
		return
	}
	c.ids = make([]uint32, len(e.times))
	var buf []byte
	for i := range c.ids {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return
		}
		var ok bool
		if buf, ok = c.key.Append(buf[:0], c.reader.event(i)); ok {
			c.ids[i] = c.own.id(buf)
		}
	}
	c.texts = c.own.values
}

// fillOfField fills the column of a key that depends on one field only: each distinct
// value has one key. Often the values are the keys.
func (e *events) fillOfField(c *keyColumn) {
	var ev match.Event
	var buf []byte
	name, values := e.run.fields[c.column], e.values[c.column]
	for id := c.seen; id < len(values); id++ {
		ev.SetNamedString(name, values[id])
		var ok bool
		buf, ok = c.key.Append(buf[:0], &ev)
		if c.own == nil && (!ok || string(buf) != values[id]) {
			c.numberAlike(values[:id])
		}
		if c.own == nil {
			continue
		}
		n := uint32(0)
		if ok {
			n = c.own.id(buf)
		}
		c.number = append(c.number, n)
	}
	c.seen = len(values)
	if c.own == nil {
		c.ids, c.texts = e.cols[c.column], values
		return
	}
	c.ids = make([]uint32, len(e.times))
	for i, id := range e.cols[c.column] {
		c.ids[i] = c.number[id]
	}
	c.texts = c.own.values
}

// numberAlike gives c numbers of its own, for values that are their own keys.
func (c *keyColumn) numberAlike(values []string) {
	c.own, c.number = newInterner(), make([]uint32, len(values), 2*len(values))
	for id := 1; id < len(values); id++ {
		c.number[id] = c.own.add(values[id])
	}
}

// byKey returns the numbers of the events of each key, in the order of judging: those
// of key id are events[from[id]:from[id+1]]. If there is a keep, events for which it is
// false are left out.
func (c *keyColumn) byKey(keep func(event int) bool) (from []int, events []int32) {
	ids := c.ids
	if keep != nil {
		ids = kept(ids, keep)
	}
	from = make([]int, len(c.texts)+1)
	for _, id := range ids {
		if id != 0 {
			from[id+1]++
		}
	}
	for id := range c.texts {
		from[id+1] += from[id]
	}
	events, next := make([]int32, from[len(c.texts)]), slices.Clone(from)
	for i, id := range ids {
		if id != 0 {
			events[next[id]] = int32(i)
			next[id]++
		}
	}
	return from, events
}

// kept returns the keys of the events for which keep is true, and 0 for the others.
func kept(ids []uint32, keep func(event int) bool) []uint32 {
	ids = slices.Clone(ids)
	for i := range ids {
		if !keep(i) {
			ids[i] = 0
		}
	}
	return ids
}

// eventReader makes events of the records again, with some of their fields.
type eventReader struct {
	*events
	ev     match.Event
	fields []readerField
}

type readerField struct {
	column int
	field  match.Field
	name   string // of a field that is not well known
}

// newEventReader returns a reader of the fields of these names.
func (e *events) newEventReader(names []string) *eventReader {
	r := &eventReader{events: e}
	for _, name := range names {
		f := readerField{column: e.run.column(name)}
		var known bool
		if f.field, known = eventfield.Named(name); !known {
			f.name = name
		}
		r.fields = append(r.fields, f)
	}
	return r
}

// event returns event i, until the next call.
func (r *eventReader) event(i int) *match.Event {
	r.ev.Part = r.part(i)
	for j := range r.fields {
		f := &r.fields[j]
		value := r.values[f.column][r.cols[f.column][i]]
		if f.name != "" {
			r.ev.SetNamedString(f.name, value)
		} else {
			r.ev.SetString(f.field, value)
		}
	}
	return &r.ev
}
