package httpapi

import (
	"runtime/metrics"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
)

func listRates(c *call) (list api.RateList, err error) {
	d, err := c.span(time.Minute)
	if err != nil {
		return list, err
	}
	points, err := c.number("points", 60, 1, 1440)
	if err != nil {
		return list, err
	}
	perRule, err := c.number("rules", 0, 0, 1)
	if err != nil {
		return list, err
	}
	list.Rates, err = c.s.Engine.Rates(d, points, perRule == 1)
	list.Marks = c.s.Engine.Marks(d)
	return list, err
}

func status(c *call) (api.Status, error) {
	a := c.s.Engine.Status().Status
	a.Version, a.Memory.Heap, a.Role = c.s.Version, heap(), c.Role.String()
	if c.s.config.Storage != nil {
		a.Storage = c.s.config.Storage().StorageStatus
	}
	if c.s.config.Enforcer != nil {
		a.Enforcement = c.s.config.Enforcer.Status()
	}
	a.Subscribers = int(c.s.subscribers())
	a.Logs = c.s.followed()
	a.RESP = c.s.config.RESPAddress
	a.Demo = c.s.config.Demo != nil && c.s.config.Demo.Running()
	if c.s.Store != nil {
		a.Store = c.s.Store()
	}
	return a, nil
}

// subscribers returns how many connections subscribe, on all listeners.
func (s *Server) subscribers() int64 {
	n := s.Subscribers.Load()
	if s.config.RESP != nil {
		n += s.config.RESP.Subscribers.Load()
	}
	return n
}

// stopDemo ends the traffic of the demo, if it was not ended before.
func stopDemo(c *call, _ *api.Nothing) (ok api.Nothing, err error) {
	if c.s.config.Demo == nil {
		return ok, badArg("there is no demo: the server was started without --demo")
	}
	c.s.config.Demo.Stop()
	c.audit("demo stopped by hand")
	return ok, nil
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
	if c.s.drained.Err() != nil {
		return apierror.New(api.Overload, "the server is about to end")
	}
	if c.s.config.Ready != nil {
		if err := c.s.config.Ready(); err != nil {
			return apierror.New(api.Overload, "%v", err)
		}
	}
	return alive(c)
}
