package engine

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

// A counter is a table of windows with the rule that says what it counts.
type counter struct {
	rules.Counter
	table   *lately.Table
	dynamic bool // by adding to it, not by the rules file
}

// counterSlots is how many slots each window of a counter has.
const counterSlots = 10

// dynamicField is the field of the keys of a counter that was made by adding to it.
const dynamicField = "key"

// dynamicSpans are the windows of a counter that was made by adding to it.
var dynamicSpans = [...]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}

func newCounter(c rules.Counter, budget int64) (*counter, error) {
	windows := make([]lately.Window, len(c.Spans))
	for i, span := range c.Spans {
		windows[i] = lately.Window{Span: span, Slot: slotOf(span)}
	}
	table, err := lately.NewTable(lately.TableConfig{Budget: budget, Compare: true}, windows...)
	if err != nil {
		return nil, fmt.Errorf("counter %q: %w", c.Name, err)
	}
	return &counter{Counter: c, table: table}, nil
}

// slotOf cuts a span of whole milliseconds into slots of whole nanoseconds.
func slotOf(span time.Duration) time.Duration { return span / counterSlots }

// counts reports whether c counts what d says, in the same way.
func (c *counter) counts(d *rules.Counter) bool {
	return c.Name == d.Name && c.Key.Equal(d.Key) && slices.Equal(c.Spans, d.Spans) && reflect.DeepEqual(c.When, d.When)
}

// longest returns the longest span of c.
func (c *counter) longest() time.Duration { return slices.Max(c.Spans) }

// add counts e at t, if it is one that c counts. key is memory for its key.
func (c *counter) add(e *match.Event, t time.Time, key []byte) []byte {
	if !c.Condition.Holds(e) {
		return key
	}
	key, ok := c.Key.Append(key[:0], e)
	if ok {
		c.table.AddBytesAt(t, key, 1) // a table without room counts what it refuses
	}
	return key
}

// A CounterInfo is a counter with the statistics of its table.
type CounterInfo struct {
	api.Counter
	Stats lately.TableStats
}

// Counters yields the counters, those of the rules file first.
func (e *Engine) Counters() iter.Seq[CounterInfo] {
	return func(yield func(CounterInfo) bool) {
		for _, c := range e.book.Load().counters {
			stats := c.table.Stats()
			info := api.Counter{
				Name: c.Name, Fields: c.Key.Fields(), Spans: []api.Millis{}, Dynamic: c.dynamic, Sentence: c.Sentence(), Keys: c.table.Len(), Bytes: stats.Bytes,
			}
			for _, span := range c.Spans {
				info.Spans = append(info.Spans, api.MillisOf(span))
			}
			if !yield(CounterInfo{info, stats}) {
				return
			}
		}
	}
}

// Top returns the n keys of a counter that f selects with the largest counts over a
// span that ends now, the largest first. It goes through the counter's keys once. span 0
// means the counter's longest. The error is an [*Error].
func (e *Engine) Top(name string, n int, span time.Duration, f KeyFilter) ([]api.KeyCount, error) {
	c, span, err := e.counterFor(name, span)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > maxTop {
		return nil, errorf(api.BadArg, "n is %d; allowed is 1 to %d", n, maxTop)
	}
	if f != (KeyFilter{}) {
		return c.topOf(e.now(), n, span, &f)
	}
	top, err := c.table.TopAt(e.now(), n, span)
	if err != nil {
		return nil, errorf(api.BadArg, "%v", err)
	}
	out := make([]api.KeyCount, len(top))
	for i, k := range top {
		out[i] = api.KeyCount{Key: api.KeyOf(values(c.Key, k.Key)...), Bounds: api.Bounds{Lo: k.Lo, Hi: k.Hi}, Estimate: k.Estimate}
	}
	return out, nil
}

// topOf is Top of the keys that f selects.
func (c *counter) topOf(t time.Time, n int, span time.Duration, f *KeyFilter) ([]api.KeyCount, error) {
	found := []api.KeyCount{}
	first := func() {
		slices.SortFunc(found, func(a, b api.KeyCount) int {
			return cmp.Or(cmp.Compare(b.Lo, a.Lo), slices.Compare(a.Values(), b.Values()))
		})
		found = found[:min(n, len(found))]
	}
	for key, r := range c.table.AllAt(t) {
		parts := values(c.Key, key)
		if !f.selects(parts) {
			continue
		}
		k := api.KeyCount{Key: api.KeyOf(parts...)}
		var err error
		if k.Lo, k.Hi, err = r.BoundsLast(span); err != nil {
			return nil, errorf(api.BadArg, "%v", err)
		}
		if k.Lo == 0 {
			continue
		}
		k.Estimate, _ = r.EstimateLast(span)
		if found = append(found, k); len(found) >= 2*n+1000 {
			first()
		}
	}
	first()
	return found, nil
}

const maxTop = 1000

// values takes the key of k apart, into strings of their own.
func values(k match.Key, key string) []string {
	var out []string
	for part := range k.Parts([]byte(key)) {
		out = append(out, string(part))
	}
	return out
}

// counterFor returns a counter and the span that is asked for.
func (e *Engine) counterFor(name string, span time.Duration) (*counter, time.Duration, error) {
	c := e.book.Load().counter(name)
	if c == nil {
		return nil, 0, e.noCounter(name)
	}
	if span == 0 {
		span = c.longest()
	}
	if span < 0 || span > c.longest() {
		return nil, 0, errorf(api.BadArg, "span is %s; counter %q has up to %s", rules.FormatDuration(span), name, rules.FormatDuration(c.longest()))
	}
	return c, span, nil
}

func (e *Engine) noCounter(name string) error {
	var names []string
	for _, c := range e.book.Load().counters {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return errorf(api.BadArg, "there is no counter %q, nor any other", name)
	}
	return errorf(api.BadArg, "there is no counter %q; there is %s", name, strings.Join(names, ", "))
}

// make makes the counter of that name, which counts keys of one value.
func (e *Engine) make(name string) (*counter, error) {
	if err := validName(name); err != nil {
		return nil, err
	}
	if err := e.requireLive(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.book.Load()
	if c := b.counter(name); c != nil {
		return c, nil
	}
	made := 0
	for _, c := range b.counters {
		if c.dynamic {
			made++
		}
	}
	if made == MaxCounters {
		return nil, errorf(api.Overload, "counter %q would be one too many; %d were made by adding to them, and more can be declared in the rules file", name, made)
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
	e.book.Store(b.with(c))
	return c, nil
}

// validName returns an error for what cannot be the name of a counter.
func validName(name string) error {
	ok := name != "" && len(name) <= MaxName
	for i := range len(name) {
		b := name[i]
		ok = ok && (b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("_-.:/", b) >= 0)
	}
	if !ok {
		return errorf(api.BadArg, "counter name %.80q: allowed is 1 to %d letters, digits and _-.:/", name, MaxName)
	}
	return nil
}
