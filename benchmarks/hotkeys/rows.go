package hotkeys

import (
	"math"
	"sync"
	"time"

	"github.com/go-kratos/aegis/topk"

	"github.com/lately-go/lately/benchmarks/baseline"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
)

// A Row is one way to find hot keys.
type Row struct {
	Name string

	// New is for k hot keys among n keys. If shared is set, several goroutines count.
	New func(k, n int, shared bool) Counter
}

// A Counter counts keys.
type Counter struct {
	Worker func() (add func(key string)) // for one goroutine
	Count  func(key string) uint64       // how often a key came, for tests
}

// Rows returns the rows of this module: the floor, ours, and aegis.
func Rows() []Row {
	return []Row{
		{"floor64", newFloor64},
		{"hotkey.Add", newAdd},
		{"hotkey.RuleDetector.Add", func(_, _ int, _ bool) Counter { return newAddKey(500) }},
		{"hotkey.RuleDetector.Add,times", func(_, _ int, _ bool) Counter { return newAddKey(128) }},
		{"aegis", newAegis},
		{"aegis,mutex", func(k, n int, _ bool) Counter { return newAegis(k, n, true) }}, // as its package hotkey does
	}
}

// Locked returns a Counter of add and count, with a lock if shared is set.
func Locked(shared bool, add func(key string), count func(key string) uint64) Counter {
	if !shared {
		return Counter{func() func(string) { return add }, count}
	}
	var mu sync.Mutex
	locked := func(key string) {
		mu.Lock()
		add(key)
		mu.Unlock()
	}
	return Counter{func() func(string) { return locked }, count}
}

func newFloor64(_, n int, _ bool) Counter {
	f := baseline.NewFloor64(n)
	add := func(key string) { f.Add(key) }
	return Counter{Worker: func() func(string) { return add }}
}

// rule is the name of the rule of a detector.
const rule = "user"

// detector returns a Detector of one rule, with memory for all keys.
func detector(threshold uint64) *hotkey.Detector {
	rules := []hotkey.Rule{{Name: rule, Key: match.MustKey("user"), Threshold: threshold, Span: 2 * time.Second}}
	d, err := hotkey.NewDetector(rules, hotkey.DetectorConfig{Budget: 4 << 30})
	if err != nil {
		panic(err)
	}
	return d
}

// under returns the handle for the rule of d.
func under(d *hotkey.Detector) *hotkey.RuleDetector {
	keys, err := d.Rule(rule)
	if err != nil {
		panic(err)
	}
	return keys
}

// counted returns how often key came within the span.
func counted(d *hotkey.Detector) func(key string) uint64 {
	keys := under(d)
	return func(key string) uint64 {
		k, _ := keys.Hot(key)
		return k.Hi
	}
}

// newAdd counts events that have a field.
func newAdd(_, _ int, _ bool) Counter {
	d := detector(500)
	worker := func() func(string) {
		var e match.Event
		var edges []hotkey.Edge
		return func(key string) {
			e.SetString(match.User, key)
			edges = d.Add(&e, edges[:0])
		}
	}
	return Counter{worker, counted(d)}
}

func newAddKey(threshold uint64) Counter {
	d := detector(threshold)
	keys := under(d)
	add := func(key string) { keys.Add(key) }
	return Counter{func() func(string) { return add }, counted(d)}
}

// newAegis has the sizes that package hotkey of aegis chooses, which locks it for each
// event.
func newAegis(k, _ int, shared bool) Counter {
	h := topk.NewHeavyKeeper(uint32(k), 1024*uint32(math.Log(float64(k))), 4, 0.925, 0)
	count := func(key string) uint64 {
		for _, item := range h.List() {
			if item.Key == key {
				return uint64(item.Count)
			}
		}
		return 0
	}
	return Locked(shared, func(key string) { h.Add(key, 1) }, count)
}
