package httpapi

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

func listCounters(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	return c.answer(api.CounterList{Counters: c.s.counters()})
}

func (s *Server) counters() []api.Counter {
	list := []api.Counter{}
	for c := range s.Engine.Counters() {
		list = append(list, c.Counter)
	}
	return list
}

func add(c *call) error {
	var req api.AddRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	n, err := amount(req.N)
	if err != nil {
		return err
	}
	values, err := valuesOf(req.Key)
	if err != nil {
		return err
	}
	key, err := c.counterKey(values)
	if err != nil {
		return err
	}
	if err := c.caller.Add(c.name, key, n); err != nil {
		return err
	}
	return c.answer(api.Nothing{})
}

// The parts of a query about a key.
var (
	keyQuery  = parameter{name: "key", about: "the key; once for each field of the counter's key, in order", example: "203.0.113.9", many: true, needed: true}
	spanQuery = parameter{name: "span", about: "a span that ends now; the counter's longest if it is left out", example: "1m"}
)

// keySpan returns the key and the span of the query.
func (c *call) keySpan() (key string, d time.Duration, err error) {
	q, err := c.query()
	if err != nil {
		return "", 0, err
	}
	if d, err = span(q, 0); err != nil {
		return "", 0, err
	}
	key, err = c.counterKey(q["key"])
	return key, d, err
}

// counterKey returns the key of the counter that the path names. It holds until the
// next call.
func (c *call) counterKey(values []string) (string, error) {
	if len(values) > 1 {
		if err := c.s.Engine.CheckCounterKey(c.name, len(values)); err != nil {
			return "", err
		}
	}
	return c.joined(values)
}

func sum(c *call) error {
	key, d, err := c.keySpan()
	if err != nil {
		return err
	}
	lo, hi, err := c.caller.Sum(c.name, key, d)
	if err != nil {
		return err
	}
	return c.answer(api.Bounds{Lo: lo, Hi: hi})
}

func rate(c *call) error {
	key, d, err := c.keySpan()
	if err != nil {
		return err
	}
	r, err := c.caller.Rate(c.name, key, d)
	if err != nil {
		return err
	}
	return c.answer(api.KeyRate{PerSecond: r})
}

func top(c *call) error {
	q, n, d, err := c.listQuery(0)
	if err != nil {
		return err
	}
	filter, err := engine.ParseKeyFilter(q.Get("pattern"), q.Get("network"))
	if err != nil {
		return err
	}
	keys, err := c.s.Engine.Top(c.name, n, d, filter)
	if err != nil {
		return err
	}
	return c.answer(api.TopList{Top: keys})
}
