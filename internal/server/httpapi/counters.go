package httpapi

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/keys"
)

func listCounters(c *call) (api.CounterList, error) {
	return api.CounterList{Counters: c.s.Engine.Counters().List()}, nil
}

func add(c *call, req *api.AddRequest) (api.Nothing, error) {
	n, err := amount("n", req.N)
	if err != nil {
		return api.Nothing{}, err
	}
	key, err := valuesOf(req.Key)
	if err != nil {
		return api.Nothing{}, err
	}
	return api.Nothing{}, c.engine.Add(c.name, n, key...)
}

func sum(c *call) (api.Count, error) {
	count, _, err := c.count()
	return count, err
}

func rate(c *call) (api.KeyRate, error) {
	_, perSecond, err := c.count()
	return api.KeyRate{PerSecond: perSecond}, err
}

// count returns the count of the query's key.
func (c *call) count() (api.Count, float64, error) {
	d, err := c.span(0)
	if err != nil {
		return api.Count{}, 0, err
	}
	return c.engine.Count(c.name, d, c.query["key"]...)
}

func top(c *call) (list api.TopList, err error) {
	n, d, err := c.topQuery(0)
	if err != nil {
		return list, err
	}
	filter, err := keys.ParseFilter(c.query.Get("pattern"), c.query.Get("network"))
	if err != nil {
		return list, err
	}
	list.Top, err = c.s.Engine.Top(c.name, n, d, filter)
	return list, err
}

func listRefused(c *call) (list api.RefusedList, err error) {
	n, d, err := c.topQuery(time.Minute)
	if err != nil {
		return list, err
	}
	list.Refused, err = c.s.Engine.Refused(n, d)
	return list, err
}

func explain(c *call) (api.Explanation, error) { return c.s.Engine.Explain(c.query["key"]...) }

func inspectKey(c *call) (api.KeyReport, error) {
	return c.s.Engine.Inspect(c.query["field"], c.query["value"])
}
