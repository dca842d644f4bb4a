package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/keyvalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/refused"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
	"github.com/lately-go/lately/window"
)

// A counter is a table of windows with the rule that says what it counts.
type counter struct {
	rules.Counter
	table   *window.Table
	shared  *latelyredis.Counter // instead of table, or nil
	budget  int64
	dynamic bool // created by adding to it, not by the rules file
}

// counterSlots is how many slots each window of a counter has.
const counterSlots = 10

// dynamicField is the field of the keys of dynamic counters.
const dynamicField = "key"

// dynamicSpans are the windows of dynamic counters.
var dynamicSpans = [...]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}

func newCounter(of rules.Counter, budget int64) (*counter, error) {
	c := &counter{Counter: of, budget: budget}
	config, windows := c.tableOf()
	var err error
	if c.table, err = window.NewTable(config, windows...); err != nil {
		return nil, fmt.Errorf("counter %q: %w", c.Name, err)
	}
	return c, nil
}

// tableOf returns what the table of c is made of.
func (c *counter) tableOf() (window.TableConfig, []window.Window) {
	windows := make([]window.Window, len(c.Spans))
	for i, span := range c.Spans {
		windows[i] = window.Window{Span: span, Slot: slotOf(span)}
	}
	return window.TableConfig{Budget: c.budget}, windows
}

// slotOf cuts a span of whole milliseconds into slots of whole nanoseconds.
func slotOf(span time.Duration) time.Duration { return span / counterSlots }

// add counts e at t if c counts such events. key is memory for the event's key.
func (c *counter) add(e *match.Event, t time.Time, key []byte) []byte {
	if !c.Condition.Holds(e) {
		return key
	}
	key, ok := c.Key.Append(key[:0], e)
	if ok {
		c.addAt(t, key, 1) // a full table counts the adds that it refuses
	}
	return key
}

// addAt adds n to a key: at t, or now if c is shared. It reports false if there is no memory.
func (c *counter) addAt(t time.Time, key []byte, n uint64) bool {
	if c.shared != nil {
		return c.shared.Add(view(key), n)
	}
	return c.table.AddAt(t, view(key), n)
}

// counts returns the table of c, and the time at which to read it: t, or now if c is shared.
func (c *counter) counts(t time.Time) (*window.Table, time.Time) {
	if c.shared != nil {
		return c.shared.Counts()
	}
	return c.table, t
}

// Counters returns the counters, those of the rules file first.
func (e *Engine) Counters() []api.Counter {
	list := []api.Counter{}
	for _, c := range e.rules.Load().counters {
		table, _ := c.counts(time.Time{})
		info := api.Counter{
			Name: c.Name, Fields: c.Key.Fields(), Spans: []api.Millis{}, Dynamic: c.dynamic, Sentence: c.Sentence(), Keys: table.Len(), Bytes: table.Stats().Bytes,
		}
		for _, span := range c.Spans {
			info.Spans = append(info.Spans, api.MillisOf(span))
		}
		list = append(list, info)
	}
	return list
}

// Top returns the n keys of a counter that f selects with the largest counts over a span that
// ends now, the largest first. span 0 means the counter's longest. It scans the counter's
// keys. The error is an [*Error].
func (e *Engine) Top(name string, n int, span time.Duration, f keys.Filter) ([]api.KeyCount, error) {
	c, span, err := e.counterFor(name, span)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > maxTop {
		return nil, apierror.New(api.BadArg, "n: %d: must be 1 to %d", n, maxTop)
	}
	now := e.Now()
	var out []api.KeyCount
	if f != (keys.Filter{}) {
		out, err = c.topOf(now, n, span, &f)
	} else {
		out, err = c.topOfAll(now, n, span)
	}
	e.describe(c, now, span, out)
	return out, err
}

// topOfAll is Top of all keys.
func (c *counter) topOfAll(t time.Time, n int, span time.Duration) ([]api.KeyCount, error) {
	table, t := c.counts(t)
	top, err := table.TopAt(t, n, span)
	if err != nil {
		return nil, apierror.New(api.BadArg, "%v", err)
	}
	out := make([]api.KeyCount, len(top))
	for i, k := range top {
		out[i] = api.KeyCount{Key: api.KeyOf(keyvalue.All(c.Key, k.Key)...), Count: api.Count{Lo: k.Lo, Hi: k.Hi, Estimate: k.Estimate}}
	}
	return out, nil
}

// topOf is Top of the keys that f selects.
func (c *counter) topOf(t time.Time, n int, span time.Duration, f *keys.Filter) ([]api.KeyCount, error) {
	found := []api.KeyCount{}
	keepLargest := func() {
		slices.SortFunc(found, func(a, b api.KeyCount) int {
			return cmp.Or(cmp.Compare(b.Lo, a.Lo), slices.Compare(a.Values(), b.Values()))
		})
		found = found[:min(n, len(found))]
	}
	table, t := c.counts(t)
	for key, r := range table.AllAt(t) {
		parts := keyvalue.All(c.Key, key)
		if !f.Selects(parts) {
			continue
		}
		count, err := r.Count(span)
		if err != nil {
			return nil, apierror.New(api.BadArg, "%v", err)
		}
		if count.Lo == 0 {
			continue
		}
		if found = append(found, api.KeyCount{Key: api.KeyOf(parts...), Count: api.Count(count)}); len(found) >= 2*n+1000 {
			keepLargest()
		}
	}
	keepLargest()
	return found, nil
}

const maxTop = 1000

// counterFor returns a counter and the span that is asked for.
func (e *Engine) counterFor(name string, span time.Duration) (*counter, time.Duration, error) {
	c := e.rules.Load().counter(name)
	if c == nil {
		return nil, 0, e.noCounter(name)
	}
	longest := slices.Max(c.Spans)
	span = cmp.Or(span, longest)
	if span < 0 || span > longest {
		return nil, 0, apierror.New(api.BadArg, "span: %s: must be at most %s, the longest of counter %q", rules.FormatDuration(span), rules.FormatDuration(longest), name)
	}
	return c, span, nil
}

func (e *Engine) noCounter(name string) error {
	var names []string
	for _, c := range e.rules.Load().counters {
		names = append(names, c.Name)
	}
	return apierror.Unknown(api.BadArg, "counter", name, names)
}

// createCounter creates the counter of that name, for keys of one value.
func (e *Engine) createCounter(name string) (*counter, error) {
	if len(name) > MaxName || !counterName.MatchString(name) {
		return nil, apierror.New(api.BadArg, "counter name: %.80q: must be 1 to %d letters, digits and _-.:/", name, MaxName)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.rules.Load()
	if c := r.counter(name); c != nil {
		return c, nil
	}
	if created := len(r.counters) - len(r.declared); created == MaxCounters {
		return nil, apierror.New(api.Overload, "counter %q: %d were already created by adding to them: declare more in the rules file", name, created)
	}
	key, err := match.NewKey(match.Fold{Off: true}, dynamicField)
	if err != nil {
		return nil, err
	}
	c, err := newCounter(rules.Counter{Name: name, Key: key, Spans: dynamicSpans[:]}, e.config.CounterBudget/(2*MaxCounters))
	if err != nil {
		return nil, err
	}
	c.dynamic = true
	if err := e.share(c); err != nil {
		return nil, err
	}
	next := *r
	next.counters = append(slices.Clip(r.counters), c)
	e.rules.Store(&next)
	return c, nil
}

// counterName matches the names that a counter can be created with.
var counterName = regexp.MustCompile(`^[A-Za-z0-9_.:/-]+$`)

// describe adds to the keys of c, whose counts are those of a span that ends at t, how busy
// they were at most, and which rule refused them.
func (e *Engine) describe(c *counter, t time.Time, span time.Duration, keys []api.KeyCount) {
	rules := e.rulesOf(c)
	var key, row []byte
	for i := range keys {
		k := &keys[i]
		var err error
		if key, err = c.Key.Join(key[:0], k.Values()...); err != nil {
			continue // the key of this counter has values of its own
		}
		k.Peak = c.peak(t, span, string(key))
		if span > refused.MaxSpan {
			continue
		}
		for _, r := range rules {
			row = append(refused.AppendRule(row[:0], r), key...)
			if n, err := e.refused.Counts().CountAt(t, string(row), span); err == nil && n.Estimate > k.Refused {
				k.Refused, k.RefusedBy = n.Estimate, r.Name
			}
		}
	}
}

// rulesOf returns the limits and bans that count by the same key as c.
func (e *Engine) rulesOf(c *counter) (same []*ratelimit.Rule) {
	set, shape := e.limiter.Set(), keyvalue.AppendShape(nil, c.Key)
	for i := range set.Len() {
		if r := set.Rule(i); bytes.Equal(keyvalue.AppendShape(nil, r.Key), shape) {
			same = append(same, r)
		}
	}
	return same
}

// peak returns the events per second of a key in the slot of the span that had most.
func (c *counter) peak(t time.Time, span time.Duration, key string) float64 {
	var most uint64
	table, t := c.counts(t)
	for _, n := range table.ReadAt(t, key).Slots(span) {
		most = max(most, n)
	}
	window := slices.Max(c.Spans)
	for _, s := range c.Spans {
		if s >= span {
			window = min(window, s)
		}
	}
	return float64(most) / slotOf(window).Seconds()
}

// Counters that servers share are known by a letter for what makes them, their names, and for
// those of rules files the fields of their keys: a counter by other fields is another one.
const (
	sharedDeclared = "d"
	sharedDynamic  = "a"
)

// share makes c, which nobody has used yet, one that servers share, if they do.
func (e *Engine) share(c *counter) (err error) {
	if e.counters == nil {
		return nil
	}
	name := sharedDynamic + c.Name
	if !c.dynamic {
		name = sharedDeclared + c.Name + "\x00" + strings.Join(c.Key.Fields(), ",")
	}
	config, windows := c.tableOf()
	if c.shared, err = e.counters.Counter(name, config, windows...); err != nil {
		return fmt.Errorf("counter %q: %w", c.Name, err)
	}
	c.table = nil
	return nil
}

// shareAll shares the counters of r, and no more those that only old has. Other servers may have
// counted in new ones before.
func (e *Engine) shareAll(r, old *ruleSet) error {
	if e.counters == nil {
		return nil
	}
	for _, c := range r.counters {
		if slices.Contains(old.counters, c) {
			continue
		}
		if err := e.share(c); err != nil {
			return err
		}
		e.counters.Refresh()
	}
	for _, c := range old.counters {
		if !slices.Contains(r.counters, c) {
			e.counters.Remove(c.shared)
		}
	}
	return nil
}

// counterElsewhere creates a counter that another server has created, unless there are too many.
func (e *Engine) counterElsewhere(name string) {
	if name, ok := strings.CutPrefix(name, sharedDynamic); ok {
		_, _ = e.createCounter(name)
	}
}
