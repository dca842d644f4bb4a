package windows

import (
	"math"
	"time"

	"github.com/RussellLuo/slidingwindow"
	vm "github.com/VictoriaMetrics/metrics"
	"github.com/afex/hystrix-go/hystrix/rolling"
	"github.com/alibaba/sentinel-golang/core/base"
	stat "github.com/alibaba/sentinel-golang/core/stat/base"
	asecurityteam "github.com/asecurityteam/rolling"
	"github.com/cep21/circuit/v4/faststats"
	"github.com/paulbellamy/ratecounter"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/puzpuzpuz/xsync/v4"
	"github.com/rcrowley/go-metrics"
	"github.com/zeromicro/go-zero/core/collection"
)

// Each peer is used as documented, one event an add.
var peers = []subject{
	{"sentinel.BucketLeapArray", newSentinel, sliding},
	{"cep21.RollingCounter", newCep21, sliding},
	{"go-zero.RollingWindow", newGoZero, sliding},
	{"asecurityteam.TimePolicy", newTimePolicy, sliding},
	{"ratecounter", newRateCounter, sliding},
	{"hystrix.Number", newHystrix, fixed},
	{"RussellLuo.Limiter", newRussellLuo, fixed},
	{"go-metrics.Meter", newMeter, total},
	{"VictoriaMetrics.Counter", func(int, time.Duration) adder { return vmCounter{new(vm.Counter)} }, total},
	{"prometheus.Counter", newPrometheus, total},
	{"xsync.Counter", func(int, time.Duration) adder { return xsyncCounter{xsync.NewCounter()} }, total},
}

type sentinel struct{ *stat.BucketLeapArray }

func newSentinel(slots int, width time.Duration) adder {
	ms := time.Duration(slots) * width / time.Millisecond
	return sentinel{stat.NewBucketLeapArray(uint32(slots), uint32(ms))}
}
func (w sentinel) Add()        { w.AddCount(base.MetricEventPass, 1) }
func (w sentinel) Sum() uint64 { return uint64(w.Count(base.MetricEventPass)) }

type cep21 struct{ *faststats.RollingCounter }

func newCep21(slots int, width time.Duration) adder {
	c := faststats.NewRollingCounter(width, slots, time.Now())
	return cep21{&c}
}
func (w cep21) Add()              { w.Inc(time.Now()) }
func (w cep21) AddAt(t time.Time) { w.Inc(t) }
func (w cep21) Sum() uint64       { return uint64(w.RollingSum()) }

type goZero struct {
	*collection.RollingWindow[int64, *collection.Bucket[int64]]
}

func newGoZero(slots int, width time.Duration) adder {
	fresh := func() *collection.Bucket[int64] { return new(collection.Bucket[int64]) }
	return goZero{collection.NewRollingWindow[int64](fresh, slots, width)}
}
func (w goZero) Add() { w.RollingWindow.Add(1) }
func (w goZero) Sum() (sum uint64) {
	w.Reduce(func(b *collection.Bucket[int64]) { sum += uint64(b.Sum) })
	return sum
}

// timePolicy keeps every event.
type timePolicy struct{ *asecurityteam.TimePolicy }

func newTimePolicy(slots int, width time.Duration) adder {
	return timePolicy{asecurityteam.NewTimePolicy(asecurityteam.NewWindow(slots), width)}
}
func (w timePolicy) Add()        { w.Append(1) }
func (w timePolicy) Sum() uint64 { return uint64(w.Reduce(asecurityteam.Count)) }

// rateCounter has a goroutine while it counts, which ends after a silent window.
type rateCounter struct{ *ratecounter.RateCounter }

func newRateCounter(slots int, width time.Duration) adder {
	return rateCounter{ratecounter.NewRateCounter(time.Duration(slots) * width).WithResolution(slots)}
}
func (w rateCounter) Add()        { w.Incr(1) }
func (w rateCounter) Sum() uint64 { return uint64(w.Rate()) }

// hystrixNumber always has ten slots of a second.
type hystrixNumber struct{ *rolling.Number }

func newHystrix(int, time.Duration) adder { return hystrixNumber{rolling.NewNumber()} }
func (w hystrixNumber) Add()              { w.Increment(1) }
func (w hystrixNumber) Sum() uint64       { return uint64(w.Number.Sum(time.Now())) }

// russellLuo is a limiter on two windows; its counts cannot be read.
type russellLuo struct{ *slidingwindow.Limiter }

func newRussellLuo(slots int, width time.Duration) adder {
	l, _ := slidingwindow.NewLimiter(time.Duration(slots)*width, math.MaxInt64/4, func() (slidingwindow.Window, slidingwindow.StopFunc) {
		return slidingwindow.NewLocalWindow()
	})
	return russellLuo{l}
}
func (w russellLuo) Add() { w.Allow() }

// meter keeps moving averages, and the count since the beginning.
type meter struct{ metrics.Meter }

func newMeter(int, time.Duration) adder { return meter{metrics.NewMeter()} }
func (w meter) Add()                    { w.Mark(1) }
func (w meter) Sum() uint64             { return uint64(w.Count()) }
func (w meter) Close()                  { w.Stop() }

type vmCounter struct{ *vm.Counter }

func (w vmCounter) Add()        { w.Inc() }
func (w vmCounter) Sum() uint64 { return w.Get() }

// promCounter's count can only be read by collecting it.
type promCounter struct{ prometheus.Counter }

func newPrometheus(int, time.Duration) adder {
	return &promCounter{prometheus.NewCounter(prometheus.CounterOpts{Name: "events_total"})}
}
func (w *promCounter) Add() { w.Inc() }

type xsyncCounter struct{ *xsync.Counter }

func (w xsyncCounter) Add()        { w.Inc() }
func (w xsyncCounter) Sum() uint64 { return uint64(w.Value()) }
