package windows

import (
	"time"

	"github.com/lately-go/lately/sampled"
	"github.com/lately-go/lately/window"
)

var ours = []subject{
	{"lately.Counter", newCounter, sliding},
	{"lately.Counter,AddSum", newAddSum, sliding},
	{"lately.Sums", newSums, sliding},
	{"lately.Rollup,8-spans", newRollup, fixed},
	{"lately.Recent", newRecent, bounded},
	{"lately.Sampled,1in16", newSampled, inexact},
	{"lately.Sampler,1in16", newSampler, inexact},
}

// must is for configurations that are right.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func windowOf(slots int, width time.Duration) window.Window {
	return window.Window{Span: time.Duration(slots) * width, Slot: width}
}

type counter struct{ *window.Counter }

func newCounter(slots int, width time.Duration) adder {
	return counter{must(window.NewCounter(windowOf(slots, width)))}
}
func (w counter) Add()              { w.Counter.Add(1) }
func (w counter) AddAt(t time.Time) { w.Counter.AddAt(t, 1) }

// addSum adds and reads the sum that follows.
type addSum struct{ *window.Counter }

func newAddSum(slots int, width time.Duration) adder {
	return addSum{must(window.NewCounter(windowOf(slots, width)))}
}
func (w addSum) Add()              { w.AddSum(1) }
func (w addSum) AddAt(t time.Time) { w.AddSumAt(t, 1) }

// sums has two sums, as of money that comes in and goes out.
type sums struct{ *window.Sums }

func newSums(slots int, width time.Duration) adder {
	return sums{must(window.NewSums(windowOf(slots, width), 2))}
}
func (w sums) Add()              { w.Sums.Add(1, 1) }
func (w sums) AddAt(t time.Time) { w.Sums.AddAt(t, 1, 1) }
func (w sums) Sum() uint64       { return uint64(w.Sums.Sum(1)) }

// rollup counts in eight windows from five minutes to a day with each add.
type rollup struct{ *window.Rollup }

func newRollup(int, time.Duration) adder {
	return rollup{must(window.NewRollup(window.RollupConfig{}))}
}
func (w rollup) Add()              { w.Rollup.Add(1) }
func (w rollup) AddAt(t time.Time) { w.Rollup.AddAt(t, 1) }
func (w rollup) Sum() uint64       { return must(w.Count(24 * time.Hour)).Lo }

// recent keeps the last 4096 events.
type recent struct{ *window.Recent[int64] }

func newRecent(slots int, width time.Duration) adder {
	return recent{must(window.NewRecent[int64](window.RecentConfig{Span: time.Duration(slots) * width, Max: 4096}))}
}
func (w recent) Add()              { w.Recent.Add(1) }
func (w recent) AddAt(t time.Time) { w.Recent.AddAt(t, 1) }
func (w recent) Sum() uint64       { return uint64(w.Len()) }

// sampledWindow counts one event in sixteen, as sixteen.
type sampledWindow struct{ *sampled.Counter }

func newSampled(slots int, width time.Duration) adder {
	return sampledWindow{must(sampled.New(windowOf(slots, width), 1.0/16))}
}
func (w sampledWindow) Add()              { w.Counter.Add(1) }
func (w sampledWindow) AddAt(t time.Time) { w.Counter.AddAt(t, 1) }
func (w sampledWindow) Sum() uint64       { return uint64(w.Counter.Sum().Count()) }

// sampler is the same with a Sampler for each goroutine.
type sampler struct{ *sampled.Counter }

func newSampler(slots int, width time.Duration) adder {
	return sampler{newSampled(slots, width).(sampledWindow).Counter}
}
func (w sampler) Add()           { w.Counter.Add(1) }
func (w sampler) Part(int) adder { return part{w.Sampler()} }
func (w sampler) Sum() uint64    { return uint64(w.Counter.Sum().Count()) }

type part struct{ *sampled.Sampler }

func (w part) Add() { w.Sampler.Add(1) }
