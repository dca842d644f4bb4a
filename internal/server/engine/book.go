package engine

import (
	"reflect"
	"slices"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

// A book is the rules in force with what they count in, but for the limits, which
// are the limiter's. It does not change; another takes its place.
type book struct {
	file     *rules.File
	counters []*counter // those of the file, then those that were made
	byName   map[string]*counter
	hot      []*hotRule
	counting []*counter // those of the file: the others count no events
	keys     ruleKeys
	fields   eventFields
}

// A hotRule is a hot rule with a detector of its own, so that a rule that stays
// keeps its counts when others change.
type hotRule struct {
	hotkey.Rule
	detector *hotkey.Detector
}

// newBook returns the book of file, with what stays of old.
func newBook(file *rules.File, old *book, budget int64) (*book, error) {
	b := &book{file: file, byName: make(map[string]*counter), fields: newEventFields(file, old)}
	var err error
	if b.keys, err = newRuleKeys(file.Limits); err != nil {
		return nil, err
	}
	for i := range file.Counters {
		c := old.same(&file.Counters[i])
		if c == nil {
			if c, err = newCounter(file.Counters[i], budget/2/int64(len(file.Counters))); err != nil {
				return nil, err
			}
		}
		b.counters = append(b.counters, c)
		b.byName[c.Name] = c
	}
	b.counting = slices.Clip(b.counters)
	for _, c := range old.dynamic() {
		if b.byName[c.Name] == nil {
			b.counters = append(b.counters, c)
			b.byName[c.Name] = c
		}
	}
	for i := range file.Hot.Len() {
		r := file.Hot.Rule(i)
		h := old.sameHot(r)
		if h == nil {
			set, err := hotkey.NewSet(*r)
			if err != nil {
				return nil, err
			}
			d, err := hotkey.NewDetector(set, hotkey.DetectorConfig{})
			if err != nil {
				return nil, err
			}
			h = &hotRule{*r, d}
		}
		b.hot = append(b.hot, h)
	}
	return b, nil
}

// with returns b with one more counter that was made.
func (b *book) with(c *counter) *book {
	n := *b
	n.counters = append(slices.Clip(b.counters), c)
	n.byName = make(map[string]*counter, len(n.counters))
	for _, c := range n.counters {
		n.byName[c.Name] = c
	}
	return &n
}

func (b *book) counter(name string) *counter { return b.byName[name] }

func (b *book) same(c *rules.Counter) *counter {
	if b == nil {
		return nil
	}
	if old := b.byName[c.Name]; old != nil && !old.dynamic && old.counts(c) {
		return old
	}
	return nil
}

func (b *book) dynamic() (made []*counter) {
	if b == nil {
		return nil
	}
	for _, c := range b.counters {
		if c.dynamic {
			made = append(made, c)
		}
	}
	return made
}

func (b *book) sameHot(r *hotkey.Rule) *hotRule {
	if b == nil {
		return nil
	}
	for _, h := range b.hot {
		if h.Name == r.Name && h.Key.Equal(r.Key) && h.Threshold == r.Threshold && h.Span == r.Span && h.Hold == r.Hold &&
			reflect.DeepEqual(h.When, r.When) {
			return h
		}
	}
	return nil
}

// noRules is the file of an engine without one.
func noRules() *rules.File {
	f, err := rules.Parse("no rules", []byte("version: 1\n"))
	if err != nil {
		panic("engine: an empty rules file is not accepted: " + err.Error())
	}
	return f
}

// split makes c.values the values of a key of k that arg has: that of its one field, or
// those of several with separators between them.
func (c *Caller) split(k match.Key, arg string) (err error) {
	if len(arg) > (MaxKey+1)*match.MaxKeyFields {
		return errorf(api.BadArg, "key has %d bytes; allowed are %d for each value", len(arg), MaxKey)
	}
	if c.values, err = k.Split(c.values[:0], arg, KeySeparator); err != nil {
		return &Error{api.BadArg, err.Error()}
	}
	if len(arg) <= MaxKey {
		return nil
	}
	return c.join(k)
}

// join makes c.key the key of c.values.
func (c *Caller) join(k match.Key) (err error) {
	if c.key, err = k.Join(c.key[:0], c.values...); err != nil {
		return &Error{api.BadArg, err.Error()}
	}
	return checkLengths(k, c.key)
}

// CheckRuleKey returns an error if the key of a rule is not of n values: joined by
// KeySeparator, several would pass for one that has the separator in it. Of a rule that
// there is not, Take has more to say.
func (e *Engine) CheckRuleKey(rule string, n int) error {
	if r, err := e.limiter.Load().Set().Named(rule); err == nil {
		return checkValues(r.Key, n)
	}
	return nil
}

// CheckCounterKey is to counters what CheckRuleKey is to rules.
func (e *Engine) CheckCounterKey(name string, n int) error {
	if c := e.book.Load().counter(name); c != nil {
		return checkValues(c.Key, n)
	}
	return e.noCounter(name)
}

func checkValues(k match.Key, n int) error {
	if fields := k.Fields(); n != len(fields) {
		return errorf(api.BadArg, "number of key values: %d: must be %d: %s", n, len(fields), strings.Join(fields, ", "))
	}
	return nil
}

// joined returns the key that k makes of these values.
func joined(k match.Key, values []string) ([]byte, error) {
	key, err := k.Join(nil, values...)
	if err != nil {
		return nil, &Error{api.BadArg, err.Error()}
	}
	return key, checkLengths(k, key)
}

// checkLengths returns an error if a value in key, which k has made, is too long.
func checkLengths(k match.Key, key []byte) error {
	if field, n := longValue(k, key); n > 0 {
		return errorf(api.BadArg, "%s has %d bytes; allowed in a key are %d", field, n, MaxKey)
	}
	return nil
}
