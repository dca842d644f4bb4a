package engine

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/window"
)

// A hotPast is what is known of hot keys besides their counts and holds. Keys in its tables
// are the ID of a hot key, or that and the name of a process.
type hotPast struct {
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

	hotDay     = 24 * time.Hour
	hotDayPart = 10 * time.Minute
	hotMinute  = time.Minute

	// hotSample is how often the uses of hot keys are sampled.
	hotSample = 10 * time.Second

	maxHotProcesses = 100
)

func newHotPast() (p *hotPast, err error) {
	p = new(hotPast)
	p.uses, err = window.NewTable(window.TableConfig{Budget: usesBudget}, window.Window{Span: hotDay, Slot: hotDayPart})
	if err == nil {
		p.processes, err = window.NewTable(window.TableConfig{Budget: processesBudget}, window.Window{Span: hotMinute, Slot: slotOf(hotMinute)})
	}
	return p, err
}

// appendHotID appends the ID of a key under a rule to dst, and the name of a process if
// there is one. No rule and no process has a NUL byte in its name.
func appendHotID(dst []byte, rule, key string, process ...string) []byte {
	dst = append(append(append(dst, rule...), 0), key...)
	for _, name := range process {
		dst = append(append(dst, 0), name...)
	}
	return dst
}

// sampleHot adds to the uses of the keys that are hot what they have had since the last
// sample, at the rate of the span that ends now.
func (e *Engine) sampleHot() {
	now := e.Now()
	var id []byte
	for _, k := range e.hot.All("") {
		h := k.Of.(*hotRule)
		lo, _ := h.count(now, k.ID)
		n := math.Ceil(h.rate(lo) * hotSample.Seconds())
		id = appendHotID(id[:0], h.Name, k.ID)
		e.past.uses.AddAt(now, view(id), uint64(n))
	}
}

// reports yields the processes that reported hot keys in the last minute, by the ID of the key.
func (p *hotPast) reports(now time.Time) iter.Seq2[string, api.HotProcess] {
	return func(yield func(string, api.HotProcess) bool) {
		for key, reading := range p.processes.AllAt(now) {
			at := strings.LastIndexByte(key, 0)
			c, _ := reading.Count(hotMinute) // it has this span
			if c.Estimate > 0 && !yield(key[:at], api.HotProcess{Name: key[at+1:], Events: c.Estimate}) {
				return
			}
		}
	}
}

// count returns how many processes have reported each hot key in the last minute, by ID. It
// scans the table, once a second at most.
func (p *hotPast) count(now time.Time) map[string]int {
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
func (p *hotPast) of(now time.Time, id []byte) []api.HotProcess {
	all := []api.HotProcess{}
	for of, process := range p.reports(now) {
		if of == string(id) {
			all = append(all, process)
		}
	}
	slices.SortFunc(all, func(a, b api.HotProcess) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), maxHotProcesses)]
}

// rate returns the events a second of a key that has n in the span of h.
func (h *hotRule) rate(n uint64) float64 { return float64(n) / h.Span.Seconds() }

// inspectHot adds what is known of a key under a hot rule to r.
func (e *Engine) inspectHot(h *hotRule, key []string, r *api.KeyReport) error {
	text, err := keys.Join(nil, &h.Key, key)
	if err != nil {
		return err
	}
	now, name := e.Now(), string(text)
	r.Key = api.KeyOf(h.Key.Values(name)...)
	id := appendHotID(nil, h.Name, name)
	k := api.HotKeyReport{Rule: h.Name, Span: api.MillisOf(h.Span), Day: []api.Slot{}, Processes: []api.HotProcess{}}
	k.Lo, k.Hi = h.count(now, name)
	if hot, ok := e.hot.Get(h.Name, name); ok {
		k.Processes = e.past.of(now, id)
		listed := hot.HotKey(now)
		listed.Lo, listed.Hi, listed.Rate, listed.Processes = k.Lo, k.Hi, h.rate(k.Lo), len(k.Processes)
		k.Hot = &listed
	}
	for start, n := range e.past.uses.ReadAt(now, string(id)).Slots(hotDay) {
		k.Day = append(k.Day, api.Slot{Start: start.UTC(), Count: n})
	}
	r.Hot = append(r.Hot, k)
	return nil
}
