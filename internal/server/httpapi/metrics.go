package httpapi

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/latelyprom"
	"github.com/lately-go/lately/ratelimit"
)

// A collector is a prometheus.Collector of a server. How many series there are
// depends on the rules, never on keys, counters or clients.
type collector struct {
	s         *Server
	series    []series
	listeners []listenerSeries
	latency   *prometheus.Desc
	hotKeys   *prometheus.Desc
	hotBytes  *prometheus.Desc
	answers   *prometheus.Desc

	mu      sync.Mutex
	limiter *ratelimit.Limiter
	limits  *latelyprom.Collector // of limiter
}

// A series is one figure.
type series struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*figures) (float64, bool)
}

// newMetrics returns what answers /metrics.
func newMetrics(s *Server) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		newCollector(s), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: 4}), nil
}

func newCollector(s *Server) *collector {
	return &collector{
		s: s, series: newSeries(s.Version), listeners: newListenerSeries(),
		latency: prometheus.NewDesc("lately_decision_duration_seconds",
			"Time from when a decision's request had arrived until its answer was sent. All decisions of a RESP pipeline or HTTP body take as long as it does.",
			[]string{"listener"}, nil),
		hotKeys:  prometheus.NewDesc("lately_hot_keys", "Keys that the hot rule counts, whether they are hot or not.", []string{"rule"}, nil),
		hotBytes: prometheus.NewDesc("lately_hot_memory_bytes", "Memory that these keys use, 64 MiB at most.", []string{"rule"}, nil),
		answers:  prometheus.NewDesc("lately_http_requests_total", "HTTP requests that were answered, by the status code of the answer.", []string{"code"}, nil),
	}
}

// Describe sends nothing, which says that what is collected is not known before: the
// limiter's figures are those of another limiter once the engine judges by event
// time.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the figures as they are now.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	if l := c.limiterCollector(); l != nil {
		l.Collect(ch)
	}
	f := c.s.figures()
	for _, s := range c.series {
		if v, ok := s.of(f); ok {
			ch <- prometheus.MustNewConstMetric(s.desc, s.kind, v)
		}
	}
	for _, h := range c.s.Engine.HotStats() {
		ch <- prometheus.MustNewConstMetric(c.hotKeys, prometheus.GaugeValue, float64(h.Keys), h.Rule)
		ch <- prometheus.MustNewConstMetric(c.hotBytes, prometheus.GaugeValue, float64(h.Bytes), h.Rule)
	}
	for status := range c.s.answers {
		if n := c.s.answers[status].Load(); n > 0 {
			ch <- prometheus.MustNewConstMetric(c.answers, prometheus.CounterValue, float64(n), strconv.Itoa(status))
		}
	}
	for name, stats := range f.listeners {
		for _, s := range c.listeners {
			ch <- prometheus.MustNewConstMetric(s.desc, s.kind, s.of(&stats), name)
		}
		ch <- latency(c.latency, &stats.Latency, name)
	}
}

// latency returns c as a histogram.
func latency(desc *prometheus.Desc, c *engine.LatencyCount, listener string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(c.Buckets))
	for i, bound := range engine.LatencyBounds() {
		buckets[bound.Seconds()] = c.Buckets[i]
	}
	return prometheus.MustNewConstHistogram(desc, c.Count, c.Sum.Seconds(), buckets, listener)
}

func (c *collector) limiterCollector() *latelyprom.Collector {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.s.Engine.Limiter(); c.limiter != now {
		l, err := latelyprom.New(now, latelyprom.Config{})
		if err != nil { // unreachable: there are no labels that could be wrong
			return nil
		}
		c.limiter, c.limits = now, l
	}
	return c.limits
}

// scrape answers GET /metrics.
func scrape(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	c.begun(http.StatusOK)
	c.s.metrics.ServeHTTP(c.w, c.r)
	return nil
}
