package limits

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/hotspot"
	"github.com/alibaba/sentinel-golang/logging"
)

// hotspots is sentinel's limit by parameter: the check of its slot, which is the decision, without the statistics and the
// other checks of an entry. Its rules are global.
type hotspots struct {
	resource *base.ResourceWrapper
	contexts sync.Pool
}

// resources numbers them, so that each limiter is a resource of its own.
var resources atomic.Int64

func newHotspot(n int, limit uint64) limiter {
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel) // it prints each rule to standard output
	name := fmt.Sprint("limits-", resources.Add(1))
	if _, err := hotspot.LoadRulesOfResource(name, []*hotspot.Rule{{
		Resource: name, MetricType: hotspot.QPS, ControlBehavior: hotspot.Reject,
		Threshold: int64(limit), DurationInSec: int64(day.Seconds()), ParamsMaxCapacity: int64(2 * n),
	}}); err != nil {
		panic(err)
	}
	return &hotspots{
		resource: base.NewResourceWrapper(name, base.ResTypeCommon, base.Inbound),
		contexts: sync.Pool{New: func() any {
			return &base.EntryContext{Input: &base.SentinelInput{BatchCount: 1, Args: make([]any, 1)}}
		}},
	}
}

func (w *hotspots) Take(key string) bool {
	ctx := w.contexts.Get().(*base.EntryContext)
	defer w.contexts.Put(ctx)
	ctx.Resource, ctx.RuleCheckResult = w.resource, nil
	ctx.Input.Args[0] = key
	r := hotspot.DefaultSlot.Check(ctx)
	return r == nil || !r.IsBlocked()
}

// Close takes the rule back, and with it the counts.
func (w *hotspots) Close() {
	if err := hotspot.ClearRulesOfResource(w.resource.Name()); err != nil {
		panic(err)
	}
}
