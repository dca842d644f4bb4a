// Package counters has the counters of a server: those of the rules file, which count events, and dynamic ones, which
// clients create by adding to them.
//
//	c, err := counters.New(counters.Config{Now: time.Now})
//	...
//	next, err := c.Prepare(file.Counters)
//	...
//	err = c.Use(next)
//	key = c.Count(t, event, key)
package counters

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/rule/sentence"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

const (
	// defaultBudget is the Budget by default: 256 MiB.
	defaultBudget = 256 << 20

	// MaxDynamic bounds the dynamic counters.
	MaxDynamic = 32

	// MaxName is the longest name of a counter, in bytes.
	MaxName = 64

	// DynamicField is the field of the keys of dynamic counters.
	DynamicField = "key"

	// minBudget is the memory of MaxDynamic empty tables and some keys.
	minBudget = 64 << 20
)

// dynamicSpans are the windows of dynamic counters.
var dynamicSpans = [...]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}

// Config has the settings of Counters.
type Config struct {
	// Budget bounds the memory of all counters in bytes; 0 means
	// defaultBudget. The counters of the rules file share one half equally, and
	// MaxDynamic dynamic counters the other. Counters that do not change in a reload
	// keep their share and their counts: with n counters that were added one by one,
	// the shares of the file may add up to 1 + 1/2 + ... + 1/n halves (n = 4: 2.1;
	// n = 10: 2.9). A restart divides the budget again.
	Budget int64

	// Now returns the current time.
	Now func() time.Time

	// Shared returns the counters that servers share. They call unknown with the name of each
	// counter that another server has. nil means that counters are of this process only.
	Shared func(unknown func(name string)) (*latelyredis.Counters, error)
}

// Counters are counters by name. They are safe for concurrent use. Make them with [New].
type Counters struct {
	config Config
	shared *latelyredis.Counters // or nil
	inUse  atomic.Pointer[Set]
	mu     sync.Mutex // held while inUse changes
}

// A Set is counters that are used together. It does not change.
type Set struct {
	all      []*Counter // those of the rules file, then the dynamic ones
	declared []*Counter // those of the rules file: dynamic ones count no events
}

// New returns Counters without any.
func New(c Config) (*Counters, error) {
	if c.Budget = cmp.Or(c.Budget, defaultBudget); c.Budget < minBudget {
		return nil, fmt.Errorf("counter budget: %d: must be 0 (%d) or at least %d", c.Budget, defaultBudget, minBudget)
	}
	all := &Counters{config: c}
	all.inUse.Store(new(Set))
	if c.Shared == nil {
		return all, nil
	}
	var err error
	all.shared, err = c.Shared(all.elsewhere)
	return all, err
}

// Prepare returns the counters that a rules file declares for Use. Those that stay as they are keep their counts.
func (all *Counters) Prepare(declared []rules.Counter) ([]*Counter, error) {
	var next []*Counter
	for _, d := range declared {
		c := all.inUse.Load().named(d.Name)
		if c == nil || c.dynamic || !reflect.DeepEqual(c.Counter, d) {
			var err error
			if c, err = all.newCounter(d, all.config.Budget/2/int64(len(declared))); err != nil {
				return nil, err
			}
		}
		next = append(next, c)
	}
	return next, nil
}

// Use puts counters that Prepare has returned in the place of those of the rules file before. Dynamic ones of other names stay.
// Where servers share counters, others may have counted in new ones before.
func (all *Counters) Use(declared []*Counter) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	was := all.inUse.Load()
	next := &Set{declared: declared, all: slices.Clip(declared)}
	for _, c := range was.all[len(was.declared):] {
		if next.named(c.Name) == nil {
			next.all = append(next.all, c)
		}
	}
	if all.shared != nil {
		if err := all.share(next, was); err != nil {
			return err
		}
	}
	all.inUse.Store(next)
	return nil
}

// named returns the counter of that name, or nil.
func (s *Set) named(name string) *Counter {
	for _, c := range s.all {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Count counts ev at t in the counters that match it. key is memory, and is returned.
func (all *Counters) Count(t time.Time, ev *match.Event, key []byte) []byte {
	for _, c := range all.inUse.Load().declared {
		if ev.Part == match.Answer && !c.answers {
			continue // it has counted the request
		}
		key = c.count(ev, t, key)
	}
	return key
}

// Named returns the counter of that name.
func (all *Counters) Named(name string) (*Counter, error) {
	s := all.inUse.Load()
	if c := s.named(name); c != nil {
		return c, nil
	}
	var names []string
	for _, c := range s.all {
		names = append(names, c.Name)
	}
	return nil, apierror.Unknown(api.BadArg, "counter", name, names)
}

// Create returns the counter of that name, and creates it if there is none, for keys of one value. It keeps a copy of name.
func (all *Counters) Create(name string) (*Counter, error) {
	if len(name) > MaxName || !validName.MatchString(name) {
		return nil, apierror.New(api.BadArg, "counter name: %.80q: must be 1 to %d letters, digits and _-.:/", name, MaxName)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.inUse.Load()
	if c := s.named(name); c != nil {
		return c, nil
	}
	if created := len(s.all) - len(s.declared); created == MaxDynamic {
		return nil, apierror.New(api.Overload, "counter %q: %d were already created by adding to them: declare more in the rules file", name, created)
	}
	c, err := all.create(strings.Clone(name))
	if err != nil {
		return nil, err
	}
	all.inUse.Store(&Set{declared: s.declared, all: append(slices.Clip(s.all), c)})
	return c, nil
}

// validName matches the names that a counter can be created with.
var validName = regexp.MustCompile(`^[A-Za-z0-9_.:/-]+$`)

// create returns a new dynamic counter.
func (all *Counters) create(name string) (*Counter, error) {
	key, _ := match.NewKey(match.Fold{Off: true}, DynamicField) // which is valid
	c, err := all.newCounter(rules.Counter{Name: name, Key: key, Spans: dynamicSpans[:]}, all.config.Budget/(2*MaxDynamic))
	if err != nil {
		return nil, err
	}
	c.dynamic = true
	if all.shared != nil {
		err = c.share(all.shared)
	}
	return c, err
}

// List returns the counters, those of the rules file first.
func (all *Counters) List() []api.Counter {
	list := []api.Counter{}
	for _, c := range all.inUse.Load().all {
		table, _ := c.counts(time.Time{})
		info := api.Counter{
			Name: c.Name, Fields: c.Key.Fields(), Spans: []api.Millis{}, Dynamic: c.dynamic, Sentence: sentence.Counter(c.Name, c.When, c.Key, c.Spans), Keys: table.Len(), Bytes: table.Stats().Bytes,
		}
		for _, span := range c.Spans {
			info.Spans = append(info.Spans, api.MillisOf(span))
		}
		list = append(list, info)
	}
	return list
}

// Stats returns the bytes and the keys of all counters, and how many adds they have rejected for lack of memory.
func (all *Counters) Stats() (bytes int64, keys int, full uint64) {
	for _, c := range all.inUse.Load().all {
		table, _ := c.counts(time.Time{})
		stats := table.Stats()
		bytes, keys, full = bytes+stats.Bytes, keys+table.Len(), full+stats.Refused
	}
	return bytes, keys, full
}

// Inspect adds the windows of a key of the counters that count by these fields to r.
func (all *Counters) Inspect(fields, key []string, r *api.KeyReport) error {
	for _, c := range all.inUse.Load().all {
		if !slices.Equal(c.Key.Fields(), fields) {
			continue
		}
		k, err := keys.Join(nil, &c.Key, key)
		if err != nil {
			return err
		}
		r.Key = api.KeyOf(keyvalue.All(c.Key, string(k))...)
		table, now := c.counts(all.config.Now())
		reading := table.ReadAt(now, string(k))
		for _, span := range c.Spans {
			count, _ := reading.Count(span) // it has these spans
			r.Counters = append(r.Counters, api.KeyWindow{
				Counter: c.Name, Span: api.MillisOf(span), Count: api.Count(count), Slots: slotsOf(reading, span, count.Hi-count.Lo),
			})
		}
	}
	return nil
}

// Counters that servers share are known by a letter for what makes them, their names, and for
// those of rules files the fields of their keys: a counter by other fields is another one.
const (
	sharedDeclared = "d"
	sharedDynamic  = "a"
)

// share makes c, which nobody has used yet, one that servers share.
func (c *Counter) share(with *latelyredis.Counters) (err error) {
	name := sharedDynamic + c.Name
	if !c.dynamic {
		name = sharedDeclared + c.Name + "\x00" + strings.Join(c.Key.Fields(), ",")
	}
	config, windows := c.tableOf()
	if c.shared, err = with.Counter(name, config, windows...); err != nil {
		return fmt.Errorf("counter %q: %w", c.Name, err)
	}
	c.table = nil
	return nil
}

// share shares the counters of next, and no more those that only was has.
func (all *Counters) share(next, was *Set) error {
	for _, c := range next.all {
		if slices.Contains(was.all, c) {
			continue
		}
		if err := c.share(all.shared); err != nil {
			return err
		}
		all.shared.Refresh()
	}
	for _, c := range was.all {
		if !slices.Contains(next.all, c) {
			all.shared.Remove(c.shared)
		}
	}
	return nil
}

// elsewhere creates a counter that another server has created, unless there are too many.
func (all *Counters) elsewhere(name string) {
	if name, ok := strings.CutPrefix(name, sharedDynamic); ok {
		_, _ = all.Create(name)
	}
}
