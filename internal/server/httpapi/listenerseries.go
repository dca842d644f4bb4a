package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lately-go/lately/internal/server/engine"
)

// A listenerSeries is one figure of each listener.
type listenerSeries struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*engine.ListenerStats) float64
}

// newListenerSeries returns the figures of listeners. Their label says which.
func newListenerSeries() (list []listenerSeries) {
	add := func(kind prometheus.ValueType, name, help string, of func(*engine.ListenerStats) float64) {
		list = append(list, listenerSeries{prometheus.NewDesc("lately_"+name, help, []string{"listener"}, nil), kind, of})
	}
	count := func(name, help string, of func(*engine.ListenerStats) uint64) {
		add(prometheus.CounterValue, name, help, func(s *engine.ListenerStats) float64 { return float64(of(s)) })
	}
	add(prometheus.GaugeValue, "connections", "Open connections.", func(s *engine.ListenerStats) float64 { return float64(s.Connections) })
	count("connections_total", "Connections that were accepted.", func(s *engine.ListenerStats) uint64 { return s.Accepted })
	count("connections_refused_total", "Connections that were refused because there were too many.", func(s *engine.ListenerStats) uint64 { return s.Refused })
	count("connections_dropped_total", "Connections that were closed because the client was too slow, or silent.", func(s *engine.ListenerStats) uint64 { return s.Cut })
	count("requests_total", "Commands, or HTTP requests.", func(s *engine.ListenerStats) uint64 { return s.Requests })
	count("request_errors_total", "Commands and requests that were answered with an error; a decision that refuses is none.", func(s *engine.ListenerStats) uint64 { return s.Errors })
	count("requests_overloaded_total", "Commands and requests that were answered with the error OVERLOAD.", func(s *engine.ListenerStats) uint64 { return s.Overloaded })
	count("requests_unauthorized_total", "Commands and requests without the role that they need, or with an unknown token.", func(s *engine.ListenerStats) uint64 { return s.Unauthorized })
	count("request_panics_total", "Commands and requests that ended in a panic.", func(s *engine.ListenerStats) uint64 { return s.Panics })
	return list
}
