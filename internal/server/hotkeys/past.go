package hotkeys

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/window"
)

// A past is what is known of hot keys besides their counts and holds. Keys in its tables
// are the ID of a hot key, or that and the name of a process.
type past struct {
	uses      *window.Table // sampled while they are hot
	processes *window.Table // events that each reported while they were hot

	mu      sync.Mutex
	counted time.Time      // when counts were counted
	counts  map[string]int // processes by ID; a map that does not change
}

const (
	// usesBudget and processesBudget bound the memory of the tables, in bytes: some
	// thousands of keys, some ten thousands of processes of keys. Then those with fewest
	// events are evicted.
	usesBudget      = 8 << 20
	processesBudget = 8 << 20

	day     = 24 * time.Hour
	dayPart = 10 * time.Minute
	minute  = time.Minute

	// SampleEvery is how often Sample must be called.
	SampleEvery = 10 * time.Second

	maxProcesses = 100
)

func newPast() *past {
	p := new(past) // its windows and budgets are valid
	p.uses, _ = window.NewTable(window.TableConfig{Budget: usesBudget}, window.Window{Span: day, Slot: dayPart})
	p.processes, _ = window.NewTable(window.TableConfig{Budget: processesBudget}, window.Window{Span: minute, Slot: minute / 10})
	return p
}

// appendID appends the ID of a key under a rule to dst, and the name of a process if
// there is one. No rule and no process has a NUL byte in its name.
func appendID(dst []byte, rule, key string, process ...string) []byte {
	dst = append(append(append(dst, rule...), 0), key...)
	for _, name := range process {
		dst = append(append(dst, 0), name...)
	}
	return dst
}

// Sample adds to the uses of the keys that are hot what they have had since the last
// sample, at the rate of the span that ends now.
func (k *Keys) Sample() {
	now := k.config.Now()
	var id []byte
	for _, e := range k.list.all("") {
		lo, _ := e.of.count(now, e.ID)
		n := math.Ceil(e.of.rate(lo) * SampleEvery.Seconds())
		id = appendID(id[:0], e.Rule, e.ID)
		k.past.uses.AddAt(now, string(id), uint64(n))
	}
}

// reports yields the processes that reported hot keys in the last minute, by the ID of the key.
func (p *past) reports(now time.Time) iter.Seq2[string, api.HotProcess] {
	return func(yield func(string, api.HotProcess) bool) {
		for key, reading := range p.processes.AllAt(now) {
			at := strings.LastIndexByte(key, 0)
			c, _ := reading.Count(minute) // it has this span
			if c.Estimate > 0 && !yield(key[:at], api.HotProcess{Name: key[at+1:], Events: c.Estimate}) {
				return
			}
		}
	}
}

// count returns how many processes have reported each hot key in the last minute, by ID. It
// scans the table, once a second at most.
func (p *past) count(now time.Time) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since := now.Sub(p.counted); p.counts != nil && since >= 0 && since < time.Second {
		return p.counts
	}
	n := make(map[string]int)
	for id := range p.reports(now) {
		n[id]++
	}
	p.counted, p.counts = now, n
	return n
}

// of returns the processes that reported a hot key in the last minute.
func (p *past) of(now time.Time, id []byte) []api.HotProcess {
	all := []api.HotProcess{}
	for of, process := range p.reports(now) {
		if of == string(id) {
			all = append(all, process)
		}
	}
	slices.SortFunc(all, func(a, b api.HotProcess) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), maxProcesses)]
}

// Inspect adds what is known of a key under the rules that count by these fields to report.
func (k *Keys) Inspect(fields, key []string, report *api.KeyReport) error {
	for _, r := range *k.rules.Load() {
		if !slices.Equal(r.Key.Fields(), fields) {
			continue
		}
		id, err := keys.Join(nil, &r.Key, key)
		if err != nil {
			return err
		}
		report.Key = api.KeyOf(keyvalue.All(r.Key, string(id))...)
		report.Hot = append(report.Hot, k.inspect(r, string(id)))
	}
	return nil
}

// inspect returns what is known of a key of r.
func (k *Keys) inspect(r *hotRule, key string) api.HotKeyReport {
	now := k.config.Now()
	id := appendID(nil, r.Name, key)
	report := api.HotKeyReport{Rule: r.Name, Span: api.MillisOf(r.Span), Day: []api.Slot{}, Processes: []api.HotProcess{}}
	report.Lo, report.Hi = r.count(now, key)
	if hot, ok := k.list.get(r.Name, key); ok {
		report.Processes = k.past.of(now, id)
		listed := hot.HotKey(now)
		listed.Lo, listed.Hi, listed.Rate, listed.Processes = report.Lo, report.Hi, r.rate(report.Lo), len(report.Processes)
		report.Hot = &listed
	}
	for start, n := range k.past.uses.ReadAt(now, string(id)).Slots(day) {
		report.Day = append(report.Day, api.Slot{Start: start.UTC(), Count: n})
	}
	return report
}
