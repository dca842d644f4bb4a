package counters

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
	"github.com/lately-go/lately/window"
)

// A Counter is a table of windows with the rule that says what it counts.
type Counter struct {
	rules.Counter
	all     *Counters
	table   *window.Table
	shared  *latelyredis.Counter // instead of table, or nil
	budget  int64
	answers bool // its condition uses the answer
	dynamic bool // created by adding to it, not by the rules file
}

// slots is how many slots each window of a counter has.
const slots = 10

func (all *Counters) newCounter(of rules.Counter, budget int64) (*Counter, error) {
	c := &Counter{Counter: of, all: all, budget: budget, answers: when.NeedsAnswer(&of.When)}
	config, windows := c.tableOf()
	var err error
	if c.table, err = window.NewTable(config, windows...); err != nil {
		return nil, fmt.Errorf("counter %q: %w", c.Name, err)
	}
	return c, nil
}

// tableOf returns what the table of c is made of.
func (c *Counter) tableOf() (window.TableConfig, []window.Window) {
	windows := make([]window.Window, len(c.Spans))
	for i, span := range c.Spans {
		windows[i] = window.Window{Span: span, Slot: slotOf(span)}
	}
	return window.TableConfig{Budget: c.budget}, windows
}

// slotOf cuts a span of whole milliseconds into slots of whole nanoseconds.
func slotOf(span time.Duration) time.Duration { return span / slots }

// count counts e at t if c counts such events. key is memory for the event's key.
func (c *Counter) count(e *match.Event, t time.Time, key []byte) []byte {
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
func (c *Counter) addAt(t time.Time, key []byte, n uint64) bool {
	if c.shared != nil {
		return c.shared.Add(keys.View(key), n)
	}
	return c.table.AddAt(t, keys.View(key), n)
}

// counts returns the table of c, and the time at which to read it: t, or now if c is shared.
func (c *Counter) counts(t time.Time) (*window.Table, time.Time) {
	if c.shared != nil {
		return c.shared.Counts()
	}
	return c.table, t
}

// Add adds n to a key, now.
func (c *Counter) Add(key []byte, n uint64) error {
	if !c.addAt(c.all.config.Now(), key, n) {
		return apierror.New(api.Overload, "counter %q: no memory for another key", c.Name)
	}
	return nil
}

// Sum returns the count of a key over a span that ends now, and the span, which is the longest if it is 0.
func (c *Counter) Sum(key []byte, span time.Duration) (api.Count, time.Duration, error) {
	span, err := c.span(span)
	if err != nil {
		return api.Count{}, 0, err
	}
	table, now := c.counts(c.all.config.Now())
	n, err := table.CountAt(now, keys.View(key), span)
	if err != nil {
		return api.Count{}, 0, apierror.New(api.BadArg, "%v", err)
	}
	return api.Count(n), span, nil
}

// span returns the span that is asked for: the longest if it is 0.
func (c *Counter) span(asked time.Duration) (time.Duration, error) {
	longest := slices.Max(c.Spans)
	if asked < 0 || asked > longest {
		return 0, apierror.New(api.BadArg, "span: %s: must be at most %s, the longest of counter %q", rulevalue.FormatDuration(asked), rulevalue.FormatDuration(longest), c.Name)
	}
	return cmp.Or(asked, longest), nil
}

// slotsOf returns the slots of a window of that span. oldest is the count of the slot in
// which the window begins.
func slotsOf(reading window.Reading, span time.Duration, oldest uint64) []api.Slot {
	slots := make([]api.Slot, 0, slots+1)
	begins := reading.Time().Add(-span)
	for start, n := range reading.Slots(span) {
		if len(slots) == 0 && start.Add(-1).After(begins) {
			slots = append(slots, api.Slot{Start: start.Add(-slotOf(span)).UTC(), Count: oldest})
		}
		slots = append(slots, api.Slot{Start: start.UTC(), Count: n})
	}
	return slots
}

// A savedCounter names a counter, with what its counts depend on.
type savedCounter struct {
	Name   string   `json:"name"`
	Fields []string `json:"fields"`
	Made   bool     `json:"made,omitempty"`
}

// Save adds the records of each counter: its savedCounter as JSON and a NUL byte, first alone, since one that was made has to
// be made again, and then before each chunk of its table.
func (all *Counters) Save(w *state.Writer, now time.Time) {
	for _, c := range all.inUse.Load().all {
		head, _ := json.Marshal(savedCounter{c.Name, c.Key.Fields(), c.dynamic}) // it has no errors
		head = append(head, 0)
		w.Record(state.Counts, head)
		table, now := c.counts(now)
		w.Chunks(state.Counts, head, table.ExportAt(now))
	}
}

// Restore restores a record that Save has added, and adds what it imports to total. Counters that do not exist any more, or count
// other keys, are left out, and so are windows that they have no more.
func (all *Counters) Restore(l *state.Loader, total *window.Imported, record []byte) error {
	head, chunk, _ := bytes.Cut(record, []byte{0})
	var was savedCounter
	if err := json.Unmarshal(head, &was); err != nil {
		return fmt.Errorf("record of a counter: %w", err)
	}
	c := all.inUse.Load().named(was.Name)
	if c == nil && was.Made {
		var err error
		if c, err = all.Create(was.Name); err != nil {
			return err
		}
	}
	if c == nil || !slices.Equal(c.Key.Fields(), was.Fields) || len(chunk) == 0 {
		return nil
	}
	table, _ := c.counts(time.Time{})
	return l.Load(total, chunk, table.ImportAt)
}
