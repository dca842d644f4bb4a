package httpapi

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/keys"
)

// counterRoutes returns the routes about counters and keys.
func counterRoutes() []route {
	key := parameter{"key", "the key; once for each field of the counter's key, in order", "203.0.113.9", true}
	span := parameter{"span", "a span that ends now; by default the counter's longest", "1m", false}
	n := parameter{"n", "how many, up to 1000", "20", false}
	return []route{
		{"GET", "/v1/counters", access.Read, queryHandler(listCounters), "counters", "List the counters", nil},
		{"POST", countersPath + "{name}/add", access.Check, bodyHandler(add), "add", "Add to a key of a counter; a counter that does not exist is created", nil},
		{"GET", countersPath + "{name}/sum", access.Read, queryHandler(sum), "sum", "The count of a key", []parameter{key, span}},
		{"GET", countersPath + "{name}/rate", access.Read, queryHandler(rate), "rate", "A key's events per second", []parameter{key, span}},
		{"GET", countersPath + "{name}/top", access.Read, queryHandler(top), "top", "The keys with the largest counts", []parameter{
			n, span,
			{"pattern", "only keys with a value that this glob matches", "192.0.2.*", false},
			{"network", "only keys with an address in this network", "192.0.2.0/24", false},
		}},
		{"GET", "/v1/key", access.Read, queryHandler(inspectKey), "key", "The counts, decisions, bans and hot state of one key", []parameter{
			{"field", "a field of the key; once for each, in order", "client", true},
			{"value", "its value; as many as fields", "203.0.113.9", true},
		}},
		{"GET", "/v1/explain", access.Read, queryHandler(explain), "explain", "Recently refused keys, the reasons, and the rules' current decisions", []parameter{
			{"key", "a value that the keys have: an address, a user or a path; several if they must have all of them", "203.0.113.9", true},
		}},
		{"GET", "/v1/refused", access.Read, queryHandler(listRefused), "refused", "List the keys that were refused most, by limits and by bans", []parameter{
			n, {"span", "from 1s to 1h; 1m by default", "1m", false},
		}},
	}
}

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
	return api.Nothing{}, c.session.Add(c.name, n, key...)
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
	return c.session.Count(c.name, d, c.query["key"]...)
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
