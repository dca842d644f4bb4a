// Package latelyprom exports the statistics of a [ratelimit.Limiter] to Prometheus.
//
//	collector, err := latelyprom.New(limiter, latelyprom.Config{})
//	...
//	registry.MustRegister(collector)
//
// The statistics are read at each scrape; decisions do not become slower. Labels are
// the names of rules and five outcomes: the number of series depends on the rules,
// never on the keys.
//
//	lately_events_total{rule,outcome}    events that match the rule, each with one outcome:
//	                                     allowed; refused, by a limit; banned, refused by a ban;
//	                                     shadow, if a shadow rule would have refused it;
//	                                     skipped, when a ban of another rule held
//	lately_events_approximated_total{rule} events of keys that are counted in a sketch
//	lately_events_lacking_total{rule}    events that lack a field of the rule's key
//	lately_events_lacking_refused_total{rule}  of these, the refused ones
//	lately_events_full_total{rule}       events refused because the memory budget is spent
//	lately_limit{rule}                   N of the rule's first limit, which may adapt
//	lately_keys{rule}                    keys that the rule holds
//	lately_keys_expired_total{rule}      keys evicted with empty windows
//	lately_evictions_total{rule}         keys evicted at the memory budget
//	lately_bans{rule}                    current bans
//	lately_bans_started_total{rule}      bans that the rule began
//	lately_bans_remembered               keys whose ban has ended, but makes the next one longer
//	lately_bans_refused_total            bans that could not begin: the list is full
//	lately_bans_dropped_total            bans that were over and removed early
//	lately_memory_bytes                  memory of limits and bans
//	lately_memory_reserved_bytes         kept free for bans by hand and keys that do not fit
//	lately_memory_budget_bytes           upper bound of both, if there is one
//	lately_fallbacks_total               decisions by fail policies, while the store was unavailable
package latelyprom
