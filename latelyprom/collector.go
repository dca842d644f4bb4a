package latelyprom

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lately-go/lately/ratelimit"
)

// Config configures a [Collector]. Its zero value adds no labels.
type Config struct {
	// Labels are added to every series. Several Limiters in one registry
	// need them: {"limiter": "login"}. The names rule and outcome are taken.
	Labels prometheus.Labels
}

// A Collector is a prometheus.Collector of a Limiter's statistics, which the package
// documentation lists. A scrape costs one call of [ratelimit.Limiter.Stats] and some µs
// for each rule.
//
// A Collector is safe for concurrent use. Make one with New; the zero value is not
// usable.
type Collector struct {
	limiter *ratelimit.Limiter
	events  *prometheus.Desc
	rule    []ruleSeries
	whole   []wholeSeries
}

// A ruleSeries is one metric of each rule.
type ruleSeries struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*ratelimit.RuleStats) uint64
}

// A wholeSeries is one metric of the Limiter.
type wholeSeries struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*ratelimit.Stats) (v uint64, ok bool)
}

// The outcomes, whose sum is the events that match a rule.
var outcomes = []struct {
	name string
	of   func(*ratelimit.RuleStats) uint64
}{
	{"allowed", func(r *ratelimit.RuleStats) uint64 { return r.Allowed }},
	{"refused", func(r *ratelimit.RuleStats) uint64 { return r.Refused }},
	{"banned", func(r *ratelimit.RuleStats) uint64 { return r.Banned }},
	{"shadow", func(r *ratelimit.RuleStats) uint64 { return r.Shadow }},
	{"skipped", func(r *ratelimit.RuleStats) uint64 { return r.Skipped }},
}

// New returns a Collector of l. The error names a wrong label of c.
func New(l *ratelimit.Limiter, c Config) (*Collector, error) {
	if l == nil {
		return nil, errors.New("limiter: nil: must be made with ratelimit.New or ratelimit.NewLimiter")
	}
	collector := &Collector{
		limiter: l,
		events:  newDesc(c, "events_total", "Events that match the rule, by what it said of them.", "rule", "outcome"),
		rule:    newRuleSeries(c),
		whole:   newWholeSeries(c),
	}
	// A registry validates the names of labels.
	if err := prometheus.NewRegistry().Register(collector); err != nil {
		return nil, fmt.Errorf("Config.Labels: %v: must be names of Prometheus labels other than rule and outcome: %w", c.Labels, err)
	}
	return collector, nil
}

func newDesc(c Config, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("lately_"+name, help, labels, c.Labels)
}

func newRuleSeries(c Config) (list []ruleSeries) {
	add := func(kind prometheus.ValueType, name, help string, of func(*ratelimit.RuleStats) uint64) {
		list = append(list, ruleSeries{newDesc(c, name, help, "rule"), kind, of})
	}
	count, gauge := prometheus.CounterValue, prometheus.GaugeValue
	add(count, "events_approximated_total", "Events of keys that are counted in a shared sketch because the memory budget is spent.", func(r *ratelimit.RuleStats) uint64 { return r.Sketched })
	add(count, "events_full_total", "Events that were refused because the memory budget is spent.", func(r *ratelimit.RuleStats) uint64 { return r.Full })
	add(gauge, "limit", "N of the rule's first limit as it is now.", func(r *ratelimit.RuleStats) uint64 { return r.Limit })
	add(gauge, "keys", "Keys that the rule holds.", func(r *ratelimit.RuleStats) uint64 { return uint64(r.Keys) })
	add(count, "keys_expired_total", "Keys that were removed with nothing left in their windows.", func(r *ratelimit.RuleStats) uint64 { return r.Expired })
	add(count, "evictions_total", "Keys that were evicted because the memory budget is spent.", func(r *ratelimit.RuleStats) uint64 { return r.Forgotten })
	add(gauge, "bans", "Bans of the rule that hold.", func(r *ratelimit.RuleStats) uint64 { return uint64(r.Bans) })
	add(count, "bans_started_total", "Bans that the rule began.", func(r *ratelimit.RuleStats) uint64 { return r.BansStarted })
	return list
}

func newWholeSeries(c Config) (list []wholeSeries) {
	add := func(kind prometheus.ValueType, name, help string, of func(*ratelimit.Stats) (uint64, bool)) {
		list = append(list, wholeSeries{newDesc(c, name, help), kind, of})
	}
	count, gauge := prometheus.CounterValue, prometheus.GaugeValue
	add(gauge, "bans_remembered", "Keys that are banned or were.", func(s *ratelimit.Stats) (uint64, bool) { return s.Remembered, true })
	add(count, "bans_refused_total", "Bans that could not begin because the ban list is full.", func(s *ratelimit.Stats) (uint64, bool) { return s.BansRefused, true })
	add(count, "bans_dropped_total", "Bans that were over and removed early because the ban list is full.", func(s *ratelimit.Stats) (uint64, bool) { return s.BansDropped, true })
	add(gauge, "memory_bytes", "Memory that limits and bans use.", func(s *ratelimit.Stats) (uint64, bool) { return bytes(s.Bytes) })
	add(gauge, "memory_reserved_bytes", "Part of the budget that is kept free for bans by hand and for keys that do not fit.", func(s *ratelimit.Stats) (uint64, bool) { return bytes(s.Reserved) })
	add(gauge, "memory_budget_bytes", "Memory that limits and bans may use, what is reserved included.", func(s *ratelimit.Stats) (uint64, bool) { return bytes(s.Budget) })
	add(count, "fallbacks_total", "Decisions that fail policies made because the store could not.", func(s *ratelimit.Stats) (uint64, bool) { return s.Fallbacks, true })
	return list
}

// bytes leaves out the budget NoBudget, which is negative.
func bytes(n int64) (uint64, bool) { return uint64(max(n, 0)), n >= 0 }

// Describe sends the descriptions of all series. It is for the registry.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.events
	for _, s := range c.rule {
		ch <- s.desc
	}
	for _, s := range c.whole {
		ch <- s.desc
	}
}

// Collect sends the present values. It is for the registry.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	stats := c.limiter.Stats()
	for i := range stats.Rules {
		r := &stats.Rules[i]
		rule := labelOf(r.Rule)
		for _, o := range outcomes {
			ch <- metric(c.events, prometheus.CounterValue, o.of(r), rule, o.name)
		}
		for _, s := range c.rule {
			ch <- metric(s.desc, s.kind, s.of(r), rule)
		}
	}
	for _, s := range c.whole {
		if v, ok := s.of(&stats); ok {
			ch <- metric(s.desc, s.kind, v)
		}
	}
}

func metric(d *prometheus.Desc, kind prometheus.ValueType, v uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, kind, float64(v), labels...)
}

// labelOf returns a rule's name as the value of a label, which is UTF-8: any
// other name is quoted as in Go, so that different names stay different.
func labelOf(rule string) string {
	if utf8.ValidString(rule) {
		return rule
	}
	return strconv.Quote(rule)
}
