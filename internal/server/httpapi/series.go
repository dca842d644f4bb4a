package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

// figures is what the series are about.
type figures struct {
	status    engine.Status
	listeners map[string]engine.ListenerStats
	rejected  uint64 // logins

	inFlight, inFlightMost int64 // bytes of requests and answers on their way

	keys        int
	bytes       int64
	refused     uint64
	storage     Storage
	snapshotAge float64
	hasSnapshot bool
}

func (s *Server) figures() *figures {
	f := &figures{
		status: s.Engine.Status(), rejected: s.Rejected.Total(), storage: s.storage(),
		listeners: map[string]engine.ListenerStats{"http": s.Stats()},
	}
	if s.config.RESP != nil {
		f.listeners["resp"] = s.config.RESP()
	}
	for i := range s.Engine.Counters() {
		f.keys += i.Keys
		f.bytes += i.Stats.Bytes
		f.refused += i.Stats.Refused
	}
	f.inFlightMost, f.inFlight, _ = s.Budget.Stats()
	if s.config.SnapshotAge != nil {
		age, ok := s.config.SnapshotAge()
		f.snapshotAge, f.hasSnapshot = age.Seconds(), ok
	}
	return f
}

// newSeries returns the server's own figures.
func newSeries(version string) (list []series) {
	add := func(kind prometheus.ValueType, name, help string, labels prometheus.Labels, of func(*figures) (float64, bool)) {
		list = append(list, series{prometheus.NewDesc("lately_"+name, help, nil, labels), kind, of})
	}
	count := func(name, help string, labels prometheus.Labels, of func(*figures) uint64) {
		add(prometheus.CounterValue, name, help, labels, func(f *figures) (float64, bool) { return float64(of(f)), true })
	}
	gauge := func(name, help string, of func(*figures) float64) {
		add(prometheus.GaugeValue, name, help, nil, func(f *figures) (float64, bool) { return of(f), true })
	}
	outcome := func(name string, of func(*api.Totals) uint64) {
		count("decisions_total", "Decisions of all listeners, each with one outcome: allowed, refused (by a limit), banned, or unmatched (allowed because no rule matched).",
			prometheus.Labels{"outcome": name}, func(f *figures) uint64 { return of(&f.status.Totals) })
	}
	outcome("allowed", func(t *api.Totals) uint64 { return t.Allowed })
	outcome("refused", func(t *api.Totals) uint64 { return t.Refused })
	outcome("banned", func(t *api.Totals) uint64 { return t.Banned })
	outcome("unmatched", func(t *api.Totals) uint64 { return t.Unmatched })
	count("decision_errors_total", "Requests for a decision that were answered with an error.", nil, func(f *figures) uint64 { return f.status.Totals.Errors })

	gauge("table_keys", "Keys in the tables of all counters.", func(f *figures) float64 { return float64(f.keys) })
	gauge("table_memory_bytes", "Memory that the tables of all counters use.", func(f *figures) float64 { return float64(f.bytes) })
	count("table_full_total", "Adds that a counter rejected because its memory budget was spent.", nil, func(f *figures) uint64 { return f.refused })

	gauge("throttle_keys", "Keys of CL.THROTTLE.", func(f *figures) float64 { return float64(f.status.Throttle.Keys) })
	gauge("throttle_memory_bytes", "Memory that keys of CL.THROTTLE use.", func(f *figures) float64 { return float64(f.status.Throttle.Bytes) })
	gauge("throttle_memory_budget_bytes", "Memory that keys of CL.THROTTLE may use.", func(f *figures) float64 { return float64(f.status.Throttle.Budget) })
	gauge("requests_memory_bytes", "Memory that requests and answers in transit use, of all listeners.", func(f *figures) float64 { return float64(f.inFlight) })
	gauge("requests_memory_budget_bytes", "Memory that requests and answers in transit may use.", func(f *figures) float64 { return float64(f.inFlightMost) })

	gauge("subscribers", "Subscribers of events, of all listeners.", func(f *figures) float64 { return float64(f.status.Subscribers) })
	count("subscriber_events_total", "Events that were published, each once.", nil, func(f *figures) uint64 { return f.status.Told })
	count("subscribers_dropped_total", "Subscribers that were disconnected because they did not read events fast enough.", nil, func(f *figures) uint64 { return f.status.Cut })

	count("rules_reloads_total", "Times that other rules were put in force.", nil, func(f *figures) uint64 { return f.status.Reloads })
	gauge("rules_valid", "1 if the last reload succeeded, else 0.", func(f *figures) float64 {
		if f.status.RulesError != nil {
			return 0
		}
		return 1
	})
	add(prometheus.GaugeValue, "build_info", "1, with the version as a label.", prometheus.Labels{"version": version}, func(*figures) (float64, bool) { return 1, true })
	add(prometheus.GaugeValue, "snapshot_age_seconds", "How old the newest snapshot is, or how long the server has run without one; there is none without a data directory.", nil,
		func(f *figures) (float64, bool) { return f.snapshotAge, f.hasSnapshot })

	count("logins_rejected_total", "Logins with an unknown token, of all listeners.", nil, func(f *figures) uint64 { return f.rejected })
	count("journal_failures_total", "Failed attempts to write the ban journal.", nil, func(f *figures) uint64 { return f.storage.Journal.Failures })
	count("snapshot_failures_total", "Failed attempts to write a snapshot.", nil, func(f *figures) uint64 { return f.storage.Snapshots.Failures })
	gauge("journal_failing", "1 while the ban journal cannot be written, else 0.", func(f *figures) float64 { return failing(f.storage.Journal) })
	gauge("snapshot_failing", "1 if the last snapshot could not be written, else 0.", func(f *figures) float64 { return failing(f.storage.Snapshots) })
	gauge("journal_missing_bans", "Changes of bans that are neither in the journal nor in a snapshot.", func(f *figures) float64 { return float64(f.storage.Missing) })

	return list
}

// failing returns 1 if the last attempt to write failed, else 0.
func failing(w Writes) float64 {
	if w.Failing != nil {
		return 1
	}
	return 0
}
