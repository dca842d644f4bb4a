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
	// Labels are added to every series. Several Limiters in one registry need
	// them: {"limiter": "login"}. The names rule and outcome are reserved.
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
	rule    []series[ratelimit.RuleStats] // of each rule
	whole   []series[ratelimit.Stats]
}

// A series is one series of a metric: a number of the statistics S.
type series[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*S) float64 // negative, as a budget without a limit: left out

	labels []string // values of those after the rule's name
}

// New returns a Collector of l. The error names a wrong label of c.
func New(l *ratelimit.Limiter, c Config) (*Collector, error) {
	if l == nil {
		return nil, errors.New("limiter: nil: must be made with ratelimit.New or ratelimit.NewLimiter")
	}
	collector := &Collector{limiter: l, rule: ruleSeries(c.Labels), whole: wholeSeries(c.Labels)}
	// A registry validates the names of labels.
	if err := prometheus.NewRegistry().Register(collector); err != nil {
		return nil, fmt.Errorf("Config.Labels: %v: must be names of Prometheus labels other than rule and outcome: %w", c.Labels, err)
	}
	return collector, nil
}

func ruleSeries(own prometheus.Labels) (list []series[ratelimit.RuleStats]) {
	add := func(kind prometheus.ValueType, name, help string, of func(*ratelimit.RuleStats) float64, outcome ...string) {
		labels := []string{"rule", "outcome"}[:1+len(outcome)]
		list = append(list, series[ratelimit.RuleStats]{prometheus.NewDesc("lately_"+name, help, labels, own), kind, of, outcome})
	}
	count, gauge := prometheus.CounterValue, prometheus.GaugeValue
	const events, meaning = "events_total", "Events that match the rule, by outcome."
	add(count, events, meaning, func(r *ratelimit.RuleStats) float64 { return float64(r.Allowed) }, "allowed")
	add(count, events, meaning, func(r *ratelimit.RuleStats) float64 { return float64(r.Refused) }, "refused")
	add(count, events, meaning, func(r *ratelimit.RuleStats) float64 { return float64(r.Banned) }, "banned")
	add(count, events, meaning, func(r *ratelimit.RuleStats) float64 { return float64(r.Shadow) }, "shadow")
	add(count, events, meaning, func(r *ratelimit.RuleStats) float64 { return float64(r.Skipped) }, "skipped")
	add(count, "events_approximated_total", "Events of keys that are counted in a shared sketch because the memory budget is spent.", func(r *ratelimit.RuleStats) float64 { return float64(r.Sketched) })
	add(count, "events_lacking_total", "Events that match the rule and lack a field of its key: not judged, or refused if the field is declared so.", func(r *ratelimit.RuleStats) float64 { return float64(r.Lacking) })
	add(count, "events_lacking_refused_total", "Events that lack a field of the rule's key and that the rule refused, or would have refused in shadow mode.", func(r *ratelimit.RuleStats) float64 { return float64(r.LackingRefused) })
	add(count, "events_full_total", "Events that were refused because the memory budget is spent.", func(r *ratelimit.RuleStats) float64 { return float64(r.Full) })
	add(gauge, "limit", "Current N of the rule's first limit.", func(r *ratelimit.RuleStats) float64 { return float64(r.Limit) })
	add(gauge, "keys", "Keys that the rule holds.", func(r *ratelimit.RuleStats) float64 { return float64(r.Keys) })
	add(count, "keys_expired_total", "Keys that were removed because their windows were empty.", func(r *ratelimit.RuleStats) float64 { return float64(r.Expired) })
	add(count, "evictions_total", "Keys that were evicted because the memory budget is spent.", func(r *ratelimit.RuleStats) float64 { return float64(r.Evicted) })
	add(gauge, "bans", "Bans in force under the rule.", func(r *ratelimit.RuleStats) float64 { return float64(r.Bans) })
	add(count, "bans_started_total", "Bans that the rule began.", func(r *ratelimit.RuleStats) float64 { return float64(r.BansStarted) })
	return list
}

func wholeSeries(own prometheus.Labels) (list []series[ratelimit.Stats]) {
	add := func(kind prometheus.ValueType, name, help string, of func(*ratelimit.Stats) float64) {
		list = append(list, series[ratelimit.Stats]{prometheus.NewDesc("lately_"+name, help, nil, own), kind, of, nil})
	}
	count, gauge := prometheus.CounterValue, prometheus.GaugeValue
	add(gauge, "bans_remembered", "Keys whose ban has ended, but makes the next one longer.", func(s *ratelimit.Stats) float64 { return float64(s.Remembered) })
	add(count, "bans_refused_total", "Bans that could not begin because the ban list is full.", func(s *ratelimit.Stats) float64 { return float64(s.BansRefused) })
	add(count, "bans_dropped_total", "Bans that were over and removed early because the ban list is full.", func(s *ratelimit.Stats) float64 { return float64(s.BansDropped) })
	add(gauge, "memory_bytes", "Memory that limits and bans use.", func(s *ratelimit.Stats) float64 { return float64(s.Bytes) })
	add(gauge, "memory_reserved_bytes", "Part of the budget that is reserved for bans by hand and for keys that do not fit.", func(s *ratelimit.Stats) float64 { return float64(s.Reserved) })
	add(gauge, "memory_budget_bytes", "Memory that limits and bans may use, including the reserve.", func(s *ratelimit.Stats) float64 { return float64(s.Budget) })
	add(count, "fallbacks_total", "Decisions by on_store_failure, because the store could not decide.", func(s *ratelimit.Stats) float64 { return float64(s.Fallbacks) })
	return list
}

// Describe sends the descriptions of all series. It is for the registry.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range c.rule {
		ch <- s.desc
	}
	for _, s := range c.whole {
		ch <- s.desc
	}
}

// Collect sends the current values. It is for the registry.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	stats := c.limiter.Stats()
	for i := range stats.Rules {
		r := &stats.Rules[i]
		for _, s := range c.rule {
			s.send(ch, r, labelOf(r.Rule))
		}
	}
	for _, s := range c.whole {
		s.send(ch, &stats)
	}
}

func (s *series[S]) send(ch chan<- prometheus.Metric, stats *S, labels ...string) {
	if v := s.of(stats); v >= 0 {
		ch <- prometheus.MustNewConstMetric(s.desc, s.kind, v, append(labels, s.labels...)...)
	}
}

// labelOf returns a rule's name as the value of a label, which is UTF-8: any
// other name is quoted as in Go, so that different names stay different.
func labelOf(rule string) string {
	if utf8.ValidString(rule) {
		return rule
	}
	return strconv.Quote(rule)
}
