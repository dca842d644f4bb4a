package api

import "time"

// A HotKey is a key that is hot. A value of more than 1,024 bytes is replaced
// by its beginning, its length and its SHA-256.
type HotKey struct {
	Rule string `json:"rule"`
	Key
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero" doc:"end of the hold, after which it stays hot only if it is above its threshold; absent if it is always hot"`
	TTL     Millis    `json:"ttl_ms,omitempty" doc:"the time from now to until, which does not depend on the clock of the client; absent if it is always hot"`
	Lo      uint64    `json:"lo" doc:"lower bound of its events in the rule's span"`
	Hi      uint64    `json:"hi,omitempty" doc:"upper bound; absent if unknown or 0"`
	Changed uint64    `json:"changed" doc:"version at which its value last changed; 0 if never"`
	Hand    bool      `json:"hand,omitempty" doc:"it was made hot by hand"`

	// Of lists, not of updates:
	Rate      float64 `json:"rate,omitempty" doc:"events per second: lo divided by the rule's span"`
	Processes int     `json:"processes,omitempty" doc:"number of processes that reported it in the last minute while it was hot"`
}

// A HotList is the answer of GET /v1/hot.
type HotList struct {
	Hot []HotKey `json:"hot"`
}

// A HotKeyReport is the state of a key under one hot rule.
type HotKeyReport struct {
	Rule      string       `json:"rule"`
	Hot       *HotKey      `json:"hot,omitempty" doc:"absent if it is not hot"`
	Lo        uint64       `json:"lo" doc:"lower bound of its events in the rule's span"`
	Hi        uint64       `json:"hi,omitempty" doc:"upper bound; absent if unknown or 0"`
	Span      Millis       `json:"span_ms" doc:"of the rule"`
	Day       []Slot       `json:"day" doc:"approximate number of its events while it was hot, in each ten minutes of the last day, oldest first"`
	Processes []HotProcess `json:"processes" doc:"up to 100 processes that reported it in the last minute while it was hot, those with the most events first"`
}

// A HotProcess is a process that reports events of a hot key.
type HotProcess struct {
	Name   string `json:"name" doc:"the name of its connection (CLIENT SETNAME), or its address"`
	Events uint64 `json:"events" doc:"of the key in the last minute"`
}

// A HotUpdate is an update for watchers of hot keys: first all hot keys, as a reset,
// and then changes. It is the data of the server-sent events of GET /v1/hot/watch,
// and the message of HOT.WATCH.
//
// From of each update is Version of the previous one. If it differs, an update was
// lost: watch again.
type HotUpdate struct {
	Instance string    `json:"instance" doc:"a random id of this start of the server"`
	From     uint64    `json:"from" doc:"the version that the update changes; 0 for a reset"`
	Version  uint64    `json:"version" doc:"the version after the last part of the update"`
	Rule     string    `json:"rule,omitempty" doc:"the only rule that is watched"`
	Reset    bool      `json:"reset" doc:"drop all keys first: hot is the first part of all hot keys"`
	More     bool      `json:"more" doc:"the update continues in the next message"`
	Hot      []HotKey  `json:"hot" doc:"keys that became hot, or stay hot for longer"`
	Cold     []RuleKey `json:"cold" doc:"keys that are no longer hot"`
	Changed  []RuleKey `json:"changed" doc:"keys whose values changed: they must be loaded again"`
}

// A HotRequest is the body of POST /v1/hot.
type HotRequest struct {
	Rule string `json:"rule"`
	Key
	TTL Millis `json:"ttl_ms,omitempty" doc:"time for which the key is hot; the rule's hold if absent"`
}

// A HotRemoved is the answer of POST /v1/hot/remove.
type HotRemoved struct {
	Removed bool `json:"removed" doc:"the key was hot"`
}

// An IgnoreRequest is the body of POST /v1/hot/ignore.
type IgnoreRequest struct {
	Rule string `json:"rule"`
	Key
	Off bool `json:"off,omitempty" doc:"count the key again"`
}

// A HotChanged is the answer of POST /v1/hot/changed.
type HotChanged struct {
	Hot bool `json:"hot" doc:"the key is hot, so watchers are notified of the change"`
}

// A HotReport is the body of POST /v1/hot/report: events of keys under a hot rule that a
// client has counted.
type HotReport struct {
	Rule    string      `json:"rule"`
	Records []HotRecord `json:"records" doc:"1 to 1000; if one is invalid, none is counted"`
}

// A HotRecord is a number of events of one key.
type HotRecord struct {
	Key
	Count *uint64 `json:"count,omitempty" range:"cost" doc:"number of events; 1 if absent"`
	Age   Millis  `json:"age_ms,omitempty" doc:"age of the events"`
}

// HotReported is the answer of POST /v1/hot/report.
type HotReported struct {
	Counted int `json:"counted" doc:"the number of records that were counted; not counted are records as old as the rule's span, of ignored keys, and of new keys when memory is full"`
}

// A CacheReport is the body of POST /v1/hot/cache: the reads of a process's caches since
// its last report.
type CacheReport struct {
	Rule string `json:"rule"`
	CacheCounts
}

// HotStats is the answer of GET /v1/hot/stats.
type HotStats struct {
	Watchers    int            `json:"watchers" doc:"now"`
	Resets      uint64         `json:"resets" doc:"updates with all keys that were sent to watchers"`
	Updates     uint64         `json:"updates" doc:"other updates that were sent to watchers"`
	ListBytes   int64          `json:"list_bytes" doc:"memory of the list of hot keys"`
	ListDropped uint64         `json:"list_dropped" doc:"keys that were dropped from the list while hot, because memory was full"`
	Rules       []HotRuleStats `json:"rules"`
}

// HotRuleStats are the statistics of one hot rule since the server started.
type HotRuleStats struct {
	Rule          string      `json:"rule"`
	Threshold     uint64      `json:"threshold" doc:"of the rule"`
	Span          Millis      `json:"span_ms" doc:"of the rule"`
	Records       uint64      `json:"records" doc:"records of HOT.REPORT that were counted"`
	Late          uint64      `json:"late" doc:"records as old as the rule's span"`
	Ignored       uint64      `json:"ignored" doc:"records of keys that are never counted"`
	Dropped       uint64      `json:"dropped" doc:"records that were not counted because memory was full"`
	Events        uint64      `json:"events" doc:"events counted, from records and checks"`
	DroppedEvents uint64      `json:"dropped_events" doc:"adds of new keys, by records or checks, that were not counted because memory was full"`
	Moved         uint64      `json:"moved" doc:"the part of events that was counted at a later time than their own"`
	Keys          int         `json:"keys" doc:"keys that are counted, hot or not"`
	Evicted       uint64      `json:"evicted" doc:"keys that were evicted because memory was full"`
	Bytes         int64       `json:"bytes" doc:"memory of the keys"`
	Hot           int         `json:"hot" doc:"keys that are hot"`
	IgnoredKeys   []Key       `json:"ignored_keys" doc:"by hand"`
	Caches        CacheCounts `json:"caches" doc:"reports of caches"`
	Saved         []HotSaved  `json:"saved" doc:"reports of caches in the last minute, hour and day"`
}

// CacheCounts counts the reads of caches.
type CacheCounts struct {
	Hits   uint64 `json:"hits" doc:"reads that were served from memory"`
	Misses uint64 `json:"misses" doc:"reads that were not"`
	Loads  uint64 `json:"loads"`
	Stale  uint64 `json:"stale" doc:"hits with a value older than its TTL"`
}

// A HotSaved counts the reads of caches in a span that ends now. Hits and misses are lower
// bounds: the span is at most a sixtieth shorter.
type HotSaved struct {
	Span Millis `json:"span_ms"`
	CacheCounts
	Share float64 `json:"share" doc:"hits / (hits + misses): the share of reads that were served from memory; 0 without reads"`
}
