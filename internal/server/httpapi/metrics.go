package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lately-go/lately/internal/event/crawlers"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/latelyprom"
)

// newMetrics returns the handler of /metrics.
func newMetrics(s *Server) http.Handler {
	limits, _ := latelyprom.New(s.Engine.Limiter(), latelyprom.Config{}) // only labels can be wrong
	registry := prometheus.NewRegistry()
	registry.MustRegister(limits, collector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: 4})
}

func scrape(c *call) error {
	c.begun(http.StatusOK)
	c.s.metrics.ServeHTTP(c.w, c.r)
	return nil
}

// A collector is the prometheus.Collector of a server. The number of series depends on
// the rules and the logs, never on keys, counters or clients.
type collector struct{ s *Server }

// Describe sends nothing, so that Collect is the only place that names the metrics.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all metrics.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	m := metricWriter{ch}
	status := c.s.Engine.Status()
	m.decisions(&status)
	m.memory(c.s, &status)
	m.hot(c.s)
	m.rules(c.s, &status)
	m.crawlers(&status.Crawlers)
	m.storage(c.s)
	m.store(c.s)
	m.enforcement(c.s)
	m.logs(c.s)
	m.listener("http", c.s.Listener)
	if c.s.config.RESP != nil {
		m.listener("resp", c.s.config.RESP)
	}
	for status := range c.s.answers {
		if n := c.s.answers[status].Load(); n > 0 {
			m.counter("http_requests_total", "HTTP requests that were answered, by the status code of the answer.", n, "code", strconv.Itoa(status))
		}
	}
}

// A metricWriter sends metrics. labels are names and values in turn.
type metricWriter struct{ ch chan<- prometheus.Metric }

func (m metricWriter) send(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	desc, values := describe(name, help, labels)
	m.ch <- prometheus.MustNewConstMetric(desc, kind, value, values...)
}

func describe(name, help string, labels []string) (desc *prometheus.Desc, values []string) {
	var names []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return prometheus.NewDesc("lately_"+name, help, names, nil), values
}

func (m metricWriter) counter(name, help string, value uint64, labels ...string) {
	m.send(prometheus.CounterValue, name, help, float64(value), labels)
}

// outcomes sends a counter for each outcome.
func (m metricWriter) outcomes(name, help string, counts map[string]uint64, labels ...string) {
	for outcome, n := range counts {
		m.counter(name, help, n, append(slices.Clip(labels), "outcome", outcome)...)
	}
}

func (m metricWriter) gauge(name, help string, value int64, labels ...string) {
	m.send(prometheus.GaugeValue, name, help, float64(value), labels)
}

// flag sends a gauge of 1 or 0.
func (m metricWriter) flag(name, help string, value bool, labels ...string) {
	n := int64(0)
	if value {
		n = 1
	}
	m.gauge(name, help, n, labels...)
}

func (m metricWriter) decisions(status *engine.Status) {
	t := status.Totals
	m.outcomes("decisions_total", "Decisions of all listeners, each with one outcome: allowed, refused (by a limit), banned, or unmatched (allowed because no rule matched).",
		map[string]uint64{"allowed": t.Allowed, "refused": t.Refused, "banned": t.Banned, "unmatched": t.Unmatched})
	m.counter("outcomes_total", "Answers to requests that were reported by OUTCOME or POST /v1/outcome, or by proxies.", status.Outcomes)
	m.counter("decision_errors_total", "Requests for a decision that were answered with an error.", t.Errors)
}

func (m metricWriter) memory(s *Server, status *engine.Status) {
	m.gauge("table_keys", "Keys in the tables of all counters.", int64(status.CounterKeys))
	m.gauge("table_memory_bytes", "Memory that the tables of all counters use.", status.Memory.Counters)
	m.counter("table_full_total", "Adds that a counter rejected because its memory budget was spent.", status.CounterFull)

	throttle := status.Throttle
	m.gauge("throttle_keys", "Keys of CL.THROTTLE.", int64(throttle.Rules[0].Keys))
	m.gauge("throttle_memory_bytes", "Memory that keys of CL.THROTTLE use.", throttle.Bytes)
	m.gauge("throttle_memory_budget_bytes", "Memory that keys of CL.THROTTLE may use.", throttle.Budget)

	budget, used := s.Budget.Stats()
	m.gauge("requests_memory_bytes", "Memory of requests and answers in transit, on all listeners.", used)
	m.gauge("requests_memory_budget_bytes", "Memory limit of requests and answers in transit.", budget)
}

// hot sends the metrics of hot rules.
func (m metricWriter) hot(s *Server) {
	all, err := s.Engine.Hot().Stats("")
	if err != nil {
		return // there is no rule that could be unknown
	}
	m.gauge("hot_watchers", "Watchers of hot keys.", int64(all.Watchers))
	m.counter("hot_resets_total", "Updates with all hot keys that were sent to watchers.", all.Resets)
	m.counter("hot_updates_total", "Other updates that were sent to watchers of hot keys.", all.Updates)
	m.gauge("hot_list_memory_bytes", "Memory of the list of hot keys, at most a sixteenth of the memory for hot rules.", all.ListBytes)
	m.counter("hot_list_dropped_total", "Keys that the list of hot keys dropped while they were hot, for lack of memory.", all.ListDropped)
	for i := range all.Rules {
		h := &all.Rules[i]
		m.gauge("hot_keys", "Keys that the hot rule counts, whether they are hot or not.", int64(h.Keys), "rule", h.Rule)
		m.gauge("hot_listed_keys", "Keys that are hot under the rule.", int64(h.Hot), "rule", h.Rule)
		m.gauge("hot_memory_bytes", "Memory that the keys of the rule use; all rules together have a sixteenth of --memory.", h.Bytes, "rule", h.Rule)
		m.counter("hot_evicted_total", "Keys of the hot rule that were evicted because its memory was used up.", h.Evicted, "rule", h.Rule)
		m.counter("hot_events_total", "Events that the hot rule counted.", h.Events, "rule", h.Rule)
		m.counter("hot_late_events_total", "Events that the hot rule counted at a later time than their own.", h.Moved, "rule", h.Rule)
		m.counter("hot_dropped_events_total", "Events of new keys that the hot rule did not count, for lack of memory.", h.DroppedEvents, "rule", h.Rule)
		m.outcomes("hot_records_total", "Records of HOT.REPORT by outcome: counted, late (as old as the span of the rule), ignored (of a key that is never counted) or dropped (no memory).",
			map[string]uint64{"counted": h.Records, "late": h.Late, "ignored": h.Ignored, "dropped": h.Dropped}, "rule", h.Rule)
		m.counter("hot_cache_hits_total", "Reads that caches of hot keys served from memory.", h.Caches.Hits, "rule", h.Rule)
		m.counter("hot_cache_misses_total", "Reads that caches of hot keys did not serve from memory.", h.Caches.Misses, "rule", h.Rule)
		m.counter("hot_cache_loads_total", "Loads of values by caches of hot keys.", h.Caches.Loads, "rule", h.Rule)
		m.counter("hot_cache_stale_total", "Hits on a value whose renewal was due.", h.Caches.Stale, "rule", h.Rule)
	}
}

func (m metricWriter) rules(s *Server, status *engine.Status) {
	m.gauge("subscribers", "Connections that subscribe to events or hot keys, on all listeners.", s.subscribers())
	m.counter("subscriber_events_total", "Events that were published, each once.", status.Events)
	m.counter("subscribers_dropped_total", "Subscribers that were disconnected because they did not read events fast enough.", status.Cut)
	m.counter("rules_reloads_total", "Times that changed rules took effect.", status.Rules.Reloads)
	m.flag("rules_valid", "1 if the last reload succeeded, else 0.", status.Rules.Error == "")
	m.counter("logins_rejected_total", "Logins with an unknown token, or a certificate that is rejected or has no role, on all listeners.", s.Rejected.Load())
	m.flag("build_info", "1, with the version as a label.", true, "version", s.Version)
}

func (m metricWriter) crawlers(c *crawlers.Stats) {
	m.gauge("crawlers_verified", "Addresses that are allowed because DNS verified that they are crawlers.", c.Verified)
	m.outcomes("crawler_lookups_total", "Refused clients that may be crawlers, by result of DNS: crawler, other, failed (no answer), or dropped (no query, because too many were waiting).",
		map[string]uint64{"crawler": c.Crawlers, "other": c.Others, "failed": c.Failures, "dropped": c.Dropped})
}

func (m metricWriter) storage(s *Server) {
	var x Storage
	if s.config.Storage != nil {
		x = s.config.Storage()
		m.send(prometheus.GaugeValue, "snapshot_age_seconds", "How old the newest snapshot is, or how long the server has run without one; there is none without a data directory.", x.SnapshotAge.Seconds(), nil)
	}
	m.counter("journal_failures_total", "Failed attempts to write the ban journal.", x.JournalFailures)
	m.counter("snapshot_failures_total", "Failed attempts to write a snapshot.", x.SnapshotFailures)
	m.flag("journal_failing", "1 while the ban journal cannot be written, else 0.", x.JournalError != "")
	m.flag("snapshot_failing", "1 if the last snapshot could not be written, else 0.", x.SnapshotError != "")
	m.gauge("state_lost_records", "Records in the data directory that were damaged when the server started, and lost.", int64(x.Lost))
	m.gauge("journal_missing_bans", "Changes of bans that are neither in the journal nor in a snapshot.", int64(x.MissingBans))
}

func (m metricWriter) store(s *Server) {
	if s.Store == nil {
		return
	}
	x := s.Store()
	m.flag("store_up", "1 if the store that servers share answered last and the bans of all servers are known, else 0.", x.Up)
	m.send(prometheus.GaugeValue, "store_latency_seconds", "The last round trip to the store.", (time.Duration(x.Latency) * time.Microsecond).Seconds(), nil)
	m.counter("store_failures_total", "Calls of the store that failed. Decisions among them were made as on_store_failure says.", x.Failures)
	m.send(prometheus.GaugeValue, "store_sync_age_seconds", "How long ago this server last learned the bans of all servers that share the store.", x.SyncAge.Duration().Seconds(), nil)
	m.counter("store_damaged_replies_total", "Damaged replies of the store, after each of which a connection was closed.", x.Damaged)
	m.gauge("store_nodes", "Servers that share the store, this one included.", int64(x.Nodes))
	m.gauge("store_nodes_other_rules", "Servers that share the store and enforce other rules than this one.", int64(x.OtherRules))
	m.flag("store_counters_shared", "1 if the counters have what all servers have counted, as of when the store answered last, else 0.", x.Counters)
	m.counter("store_counters_unshared_total", "Adds to counters that other servers were not told of, for lack of memory while the store did not answer.", x.Unshared)
	m.counter("store_counters_unread_total", "Entries of other servers that are not counted here: a newer version wrote them in another form, or they were damaged.", x.Unread)
}

func (m metricWriter) enforcement(s *Server) {
	if s.config.Enforcer == nil {
		return
	}
	x := s.config.Enforcer.Status()
	m.gauge("enforced_networks", "Addresses and networks that the targets must refuse.", int64(x.Networks))
	for reason, n := range x.Skipped {
		m.gauge("enforcement_skipped_bans", "Bans that are not enforced outside of the server, by reason; may include bans that ended in the last minute.", int64(n), "reason", reason)
	}
	for _, t := range x.Targets {
		m.send(prometheus.GaugeValue, "enforcement_lag_seconds", "How long a target has been without the newest change of bans; 0 if it has all.", t.Lag.Duration().Seconds(), []string{"target", t.Name})
		m.flag("enforcement_failing", "1 if the last attempt to change a target failed, else 0.", t.Error != "", "target", t.Name)
		m.counter("enforcement_failures_total", "Failed attempts to change a target.", t.Failures, "target", t.Name)
		m.counter("enforcement_batches_total", "Batches of changes that a target took.", t.Batches, "target", t.Name)
		m.counter("enforcement_repairs_total", "Complete repairs of a target after another program changed it.", t.Repairs, "target", t.Name)
		m.counter("enforcement_dropped_total", "Ends of bans that could not be sent to a target within an hour.", t.Dropped, "target", t.Name)
	}
}

func (m metricWriter) logs(s *Server) {
	for _, x := range s.followed() {
		m.counter("log_lines_total", "Lines of a log that is followed.", x.Lines, "file", x.File)
		m.counter("log_bad_lines_total", "Lines of a log that its format does not describe.", x.Bad, "file", x.File)
		m.counter("log_skipped_lines_total", "Lines of a log that other programs wrote, and comments.", x.Skipped, "file", x.File)
		m.counter("log_late_events_total", "Events that were older than one before them in the log by more than --lateness.", x.Late, "file", x.File)
		m.counter("log_gaps_total", "Times that a file of the log was gone or could not be read before its end was: lines may be missing.", x.Gaps, "file", x.File)
		m.gauge("log_unread_bytes", "Bytes of the log that were not read yet.", x.Unread, "file", x.File)
		m.send(prometheus.GaugeValue, "log_lag_seconds", "How old the newest event that was read is, while there are lines to read; else 0.", x.Lag.Duration().Seconds(), []string{"file", x.File})
		m.gauge("log_last_line_timestamp_seconds", "When the last line was read, or the log began to be followed, in seconds since 1970.", x.LastLine.Unix(), "file", x.File)
		m.flag("log_missing", "1 while the log is not there or cannot be read, else 0.", x.Problem != "", "file", x.File)
		m.flag("log_silent", "1 if the log has had no line for longer than --silence, else 0.", x.Silent, "file", x.File)
	}
}

func (m metricWriter) listener(name string, s *listen.Listener) {
	open, accepted, refused := s.Conns.Counts()
	m.gauge("connections", "Open connections.", int64(open), "listener", name)
	m.counter("connections_total", "Connections that were accepted.", accepted, "listener", name)
	m.counter("connections_refused_total", "Connections that were refused because there were too many.", refused, "listener", name)
	m.counter("connections_dropped_total", "Connections that were closed because the client was too slow, or silent.", s.Cut.Load(), "listener", name)
	m.counter("requests_total", "Commands, or HTTP requests.", s.Requests.Load(), "listener", name)
	m.counter("request_errors_total", "Commands and requests that were answered with an error; a refusal is not an error.", s.Errors.Load(), "listener", name)
	m.counter("requests_overloaded_total", "Commands and requests that were answered with the error OVERLOAD.", s.Overloaded.Load(), "listener", name)
	m.counter("requests_unauthorized_total", "Commands and requests without the role that they need, or with an unknown token.", s.Unauthorized.Load(), "listener", name)
	m.counter("request_panics_total", "Commands and requests that ended in a panic.", s.Panics.Load(), "listener", name)
	desc, labels := describe("decision_duration_seconds",
		"Time from the arrival of a decision's request until its answer was sent. All decisions of a RESP pipeline or HTTP body take as long as it does.", []string{"listener", name})
	n, sum, buckets := s.Latency.Count()
	m.ch <- prometheus.MustNewConstHistogram(desc, n, sum.Seconds(), buckets, labels...)
}
