package httpapi

import (
	"runtime/metrics"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

func listRates(c *call) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	d, err := span(q, time.Minute)
	if err != nil {
		return err
	}
	points, err := number(q, "points", 60, 1, 1440)
	if err != nil {
		return err
	}
	rules, err := number(q, "rules", 0, 0, 1)
	if err != nil {
		return err
	}
	rates, err := c.s.Engine.Rates(d, points, rules == 1)
	if err != nil {
		return err
	}
	return c.answer(api.RateList{Rates: rates, Marks: c.s.Engine.Marks(d)})
}

func listHot(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	return c.answer(api.HotList{Hot: c.s.Engine.Hot()})
}

func aboutKey(c *call) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	r, err := c.s.Engine.Inspect(q["field"], q["value"])
	if err != nil {
		return err
	}
	return c.answer(r)
}

func about(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	s := c.s.Engine.Status()
	a := api.Status{
		Version: c.s.Version, Started: s.Started.UTC(), Uptime: int64(time.Since(s.Started) / time.Second), Now: api.Millis(s.Now.UnixMilli()), EventTime: s.EventTime,
		Totals: s.Totals, Memory: api.Memory{Budget: s.Limits.Budget, Bytes: s.Limits.Bytes, Reserved: s.Limits.Reserved, Heap: heap()},
		Bans:        api.BanCounts{Held: s.Limits.Bans, Remembered: s.Limits.Remembered, Refused: s.Limits.BansRefused},
		Subscribers: s.Subscribers,
		Rules:       api.RulesStatus{File: s.RulesFile, Since: s.RulesSince.UTC(), Reloads: s.Reloads, Error: errorText(s.RulesError)},
		Storage:     c.s.storageState(),
		Role:        c.role.String(),
	}
	for i := range c.s.Engine.Counters() {
		a.Memory.Counters += i.Stats.Bytes
	}
	return c.answer(&a)
}

// heap returns the bytes of all objects, without stopping the program for it.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

func alive(c *call) error {
	c.out = append(c.out[:0], "ok\n"...)
	return c.send(200, plainType)
}

func ready(c *call) error {
	if c.s.draining.Load() {
		return &engine.Error{Code: api.Overload, Message: "the server is about to end"}
	}
	if c.s.config.Ready != nil {
		if err := c.s.config.Ready(); err != nil {
			return &engine.Error{Code: api.Overload, Message: err.Error()}
		}
	}
	return alive(c)
}

var plainType = []string{"text/plain; charset=utf-8"}
