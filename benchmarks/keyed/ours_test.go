package keyed

import (
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// A Table counts, with everything in its windows for as long as a row runs; a Limiter decides.
var ours = []subject{
	{name: "lately.Table,1-slot", make: newTable(128, window.Window{Span: hour, Slot: hour}), series: true},
	{name: "lately.Table,10-slots", make: newTable(192, tenSlots), series: true},
	{name: "lately.Table,10-slots,AddSum", make: func(n int) table { return tableSum{newTable(192, tenSlots)(n).(tableAdd).Table} }},
	{name: "lately.Table,60-slots", make: newTable(512, window.Last(hour))},
	{name: "lately.Table,1-s,1-min,1-h,24-h", make: newTable(2048, window.Last(time.Second), window.Last(time.Minute), window.Last(hour), window.Last(24*hour))},
	{name: "ratelimit,sliding", make: func(int) table { return newLimiter(ratelimit.Sliding, plenty) }},
	{name: "ratelimit,sliding,1000-a-minute", make: func(int) table { return newLimiter(ratelimit.Sliding, 1000) }},
	{name: "ratelimit,sliding,60-a-minute", make: func(int) table { return newLimiter(ratelimit.Sliding, 60) }, series: true},
	{name: "ratelimit,exact,1000-a-minute", make: func(int) table { return newLimiter(ratelimit.Exact, 1000) }},
}

const hour = time.Hour

var tenSlots = window.Window{Span: hour, Slot: hour / 10}

// newTable makes tables with a budget in bytes per key, so that none is evicted.
func newTable(budget int64, windows ...window.Window) func(int) table {
	return func(n int) table {
		t, err := window.NewTable(window.TableConfig{Budget: int64(n)*budget + 16<<20}, windows...)
		if err != nil {
			panic(err)
		}
		return tableAdd{t}
	}
}

type tableAdd struct{ *window.Table }

func (w tableAdd) Add(key string)          { mustAllow(w.Table.Add(key, 1)) }
func (w tableAdd) count(key string) uint64 { return w.Sum(key) }

// tableSum adds and reads the sum that follows, in one step.
type tableSum struct{ *window.Table }

func (w tableSum) Add(key string) {
	_, ok := w.AddSum(key, 1)
	mustAllow(ok)
}
func (w tableSum) count(key string) uint64 { return w.Sum(key) }

type limiterTable struct {
	*ratelimit.RuleLimiter
	n uint64
}

func newLimiter(a ratelimit.Algorithm, n uint64) table {
	key, err := match.NewKey(match.Fold{}, "user")
	if err != nil {
		panic(err)
	}
	l, err := ratelimit.New(ratelimit.Rule{
		Name: "per-client", Key: key, Algorithm: a,
		Limits: []ratelimit.Limit{{N: n, Span: time.Minute}},
	})
	if err != nil {
		panic(err)
	}
	r, err := l.Rule("per-client")
	if err != nil {
		panic(err)
	}
	return limiterTable{r, n}
}

func (w limiterTable) Add(key string) {
	d := w.Take(key)
	mustAllow(d.Allowed || w.n < plenty)
}

// count is the used part of the limit; the reading itself takes one.
func (w limiterTable) count(key string) uint64 { return w.n - w.Take(key).Remaining - 1 }
