package api

import (
	"time"
)

// A Status is the answer of GET /v1/status.
type Status struct {
	Version     string        `json:"version"`
	Started     time.Time     `json:"started"`
	Uptime      int64         `json:"uptime_s"`
	Now         Millis        `json:"now_ms" doc:"time for decisions, since 1970"`
	Totals      Totals        `json:"totals"`
	Outcomes    uint64        `json:"outcomes" doc:"reported answers to requests"`
	Memory      Memory        `json:"memory"`
	Bans        BanCounts     `json:"bans"`
	Subscribers int           `json:"subscribers" doc:"connections that subscribe to events or hot keys"`
	Rules       RulesStatus   `json:"rules"`
	Storage     StorageStatus `json:"storage"`
	Store       *StoreStatus  `json:"store,omitempty" doc:"absent if limits and bans are in the server's memory"`
	Enforcement *Enforcement  `json:"enforcement,omitempty" doc:"absent if bans are enforced by the server only"`
	Logs        []FollowedLog `json:"logs,omitempty" doc:"followed logs; absent if none"`
	RESP        string        `json:"resp,omitempty" doc:"address of the RESP listener; absent if it is off"`
	Demo        bool          `json:"demo,omitempty" doc:"traffic is made up, until POST /v1/demo/stop"`
	Role        string        `json:"role" doc:"role of the request's token: read, check or admin"`
}

// Totals counts the decisions of a server by outcome. Each decision has one outcome, so
// the first four fields add up to all decisions.
type Totals struct {
	Allowed   uint64 `json:"allowed" doc:"a rule judged the event and allowed it, or the allow list did"`
	Refused   uint64 `json:"refused" doc:"by a limit"`
	Banned    uint64 `json:"banned" doc:"refused by a ban"`
	Unmatched uint64 `json:"unmatched" doc:"allowed because no limit or ban rule matched"`
	Errors    uint64 `json:"errors" doc:"requests without a decision; in none of the other counts"`
}

// Minus returns the decisions between earlier and t.
func (t Totals) Minus(earlier Totals) Totals {
	return Totals{t.Allowed - earlier.Allowed, t.Refused - earlier.Refused, t.Banned - earlier.Banned, t.Unmatched - earlier.Unmatched, t.Errors - earlier.Errors}
}

// RuleTotals counts the decisions of one rule by outcome. Each event that the rule
// judged has one of the first four outcomes.
type RuleTotals struct {
	Allowed uint64 `json:"allowed"`
	Refused uint64 `json:"refused" doc:"by a limit of the rule"`
	Banned  uint64 `json:"banned" doc:"refused by a ban of the rule"`
	Shadow  uint64 `json:"shadow" doc:"events that the rule would have refused without shadow mode"`
	Bans    uint64 `json:"bans" doc:"bans that began"`
}

// Memory is the memory of a server, in bytes.
type Memory struct {
	Budget   int64  `json:"budget" doc:"for limits and bans; 0 or less means none"`
	Bytes    int64  `json:"bytes" doc:"used bytes of the budget"`
	Reserved int64  `json:"reserved" doc:"bytes of the budget that are kept free for bans by hand and for keys that do not fit"`
	Counters int64  `json:"counter_bytes"`
	Heap     uint64 `json:"heap"`
}

// BanCounts has the numbers of bans on a server.
type BanCounts struct {
	Held       uint64 `json:"held"`
	Remembered uint64 `json:"remembered" doc:"bans that have ended, but make the next one longer"`
	Refused    uint64 `json:"refused" doc:"bans that could not begin, because memory was full"`
}

// RulesStatus is the state of a server's rules file.
type RulesStatus struct {
	File    string    `json:"file"`
	Since   time.Time `json:"since"`
	Reloads uint64    `json:"reloads"`
	Error   string    `json:"error,omitempty" doc:"reason why the last reload failed"`
}

// StorageStatus has the errors of writing the data directory.
type StorageStatus struct {
	JournalError     string `json:"journal_error,omitempty" doc:"reason why the ban journal cannot be written; new bans may not survive a restart"`
	JournalFailures  uint64 `json:"journal_failures" doc:"failed attempts to write the ban journal"`
	SnapshotError    string `json:"snapshot_error,omitempty" doc:"reason why the last snapshot could not be written"`
	SnapshotFailures uint64 `json:"snapshot_failures" doc:"failed attempts to write a snapshot"`
	MissingBans      uint64 `json:"missing_bans" doc:"changes of bans that are neither in the journal nor in a snapshot"`
}

// StoreStatus is the state of the Redis or Valkey in which servers share limits and bans.
type StoreStatus struct {
	Address    string    `json:"address" doc:"without user and password"`
	Up         bool      `json:"up" doc:"it answered the last call, and the bans of all servers were received in the last five seconds; otherwise on_store_failure of each rule decides"`
	Since      time.Time `json:"since" doc:"time of the last change of up"`
	Error      string    `json:"error,omitempty" doc:"reason why it did not answer last, or a part of a cluster that is up"`
	Latency    int64     `json:"latency_us" doc:"of the last round trip, which is made every two seconds"`
	Failures   uint64    `json:"failures" doc:"calls that failed, most of them decisions"`
	Warning    string    `json:"warning,omitempty" doc:"problem with its settings: it evicts keys when its memory is full"`
	SyncAge    Millis    `json:"sync_age_ms" doc:"time since this server last received the bans of all servers, or since its start"`
	Damaged    uint64    `json:"damaged" doc:"damaged replies of the store, each of which closed a connection"`
	RulesHash  string    `json:"rules_hash" doc:"of the limits, bans and allow list that this server enforces"`
	Nodes      int       `json:"nodes" doc:"servers that share the store, this one included"`
	OtherRules int       `json:"other_rules" doc:"servers among these that enforce other rules"`
	Counters   bool      `json:"counters" doc:"the counters include the counts of all servers, as of the last answer of the store"`
	Unshared   uint64    `json:"unshared" doc:"adds to counters that were not sent to other servers, because memory was full while the store did not answer"`
	Unread     uint64    `json:"unread" doc:"entries of other servers that are not counted, since a newer version wrote them in another format"`
}

// FollowedLog is the state of a log that a server follows, with the counts since its start.
type FollowedLog struct {
	File     string    `json:"file"`
	Lines    uint64    `json:"lines"`
	Bad      uint64    `json:"bad" doc:"lines that do not have the format"`
	Skipped  uint64    `json:"skipped" doc:"lines of other programs, and comments"`
	Late     uint64    `json:"late" doc:"events that are older than an earlier event by more than the lateness"`
	Gaps     uint64    `json:"gaps" doc:"files that were deleted or unreadable before their end was read"`
	Unread   int64     `json:"unread_bytes" doc:"bytes that are not read yet"`
	Lag      Millis    `json:"lag_ms" doc:"time since the newest event read, while lines are unread; else 0"`
	LastLine time.Time `json:"last_line" doc:"time at which the last line was read; before the first line, the start of following"`
	Silent   bool      `json:"silent" doc:"no line has come for longer than the setting silence"`
	Problem  string    `json:"problem,omitempty" doc:"the reason why the log cannot be read now"`
}

// A Rate has the numbers of decisions in an interval.
type Rate struct {
	From  time.Time             `json:"from"`
	To    time.Time             `json:"to"`
	All   Totals                `json:"all"`
	Rules map[string]RuleTotals `json:"rules,omitempty" doc:"limits and bans"`
	Hot   map[string]HotTotals  `json:"hot,omitempty" doc:"hot rules"`
}

// HotTotals counts the events and cache reads under a hot rule.
type HotTotals struct {
	Events uint64 `json:"events" doc:"events counted, from records and checks"`
	CacheCounts
}

// A Mark is a moment that explains a change in the rates.
type Mark struct {
	Time time.Time `json:"time"`
	Type string    `json:"type" doc:"start; reload; failed: a reload that kept the old rules; ban or unban: bans that began or ended by hand"`
	Bans uint64    `json:"bans,omitempty" doc:"number of bans, from this time on within ten seconds of each other"`
}

// A RateList is the answer of GET /v1/rates.
type RateList struct {
	Rates []Rate `json:"rates"`
	Marks []Mark `json:"marks" doc:"starts, reloads, and bans and unbans by hand in the span, the oldest first"`
}

// A LoginRequest is the body of POST /v1/login.
type LoginRequest struct {
	Token string `json:"token"`
}

// A Session is the answer of POST /v1/login.
type Session struct {
	Role string `json:"role"`
}

// Nothing is the answer of a request that succeeded and returns nothing.
type Nothing struct{}

// Enforcement is the state of enforcing bans outside the server.
type Enforcement struct {
	Networks int                 `json:"networks" doc:"addresses and networks that the targets must refuse"`
	Skipped  map[string]int      `json:"skipped" doc:"bans that are not enforced, by reason; may include bans that ended in the last minute"`
	Targets  []EnforcementTarget `json:"targets"`
}

// An EnforcementTarget is the state of one target of enforcement.
type EnforcementTarget struct {
	Name     string `json:"name"`
	Lag      Millis `json:"lag_ms" doc:"time for which the target has lacked a change; 0 if it has all"`
	Error    string `json:"error,omitempty" doc:"of the last attempt; absent if it succeeded"`
	Failures uint64 `json:"failures" doc:"attempts that failed"`
	Batches  uint64 `json:"batches" doc:"that were applied"`
	Repairs  uint64 `json:"repairs" doc:"repairs after another program changed the target"`
	Dropped  uint64 `json:"dropped" doc:"ends of bans that could not be sent to the target within an hour"`
}
