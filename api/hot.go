package api

import "time"

// A HotKey is a key that is hot. Of a value of more than 1,024 bytes it has the
// beginning, the length and the SHA-256.
type HotKey struct {
	Rule string `json:"rule"`
	Key
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero" doc:"how long it stays hot, unless it is still over its threshold then; absent if it is always hot"`
	TTL     Millis    `json:"ttl_ms,omitempty" doc:"the time from now to until, which does not depend on the clock of the client; absent if it is always hot"`
	Lo      uint64    `json:"lo" doc:"the number of its events in the span of the rule is not below"`
	Hi      uint64    `json:"hi,omitempty" doc:"nor above; absent if that is unknown or 0"`
	Changed uint64    `json:"changed" doc:"the version at which its value last changed; 0 if it did not"`
	Hand    bool      `json:"hand,omitempty" doc:"it was made hot by hand"`

	// Of lists, not of updates:
	Rate      float64 `json:"rate,omitempty" doc:"its events a second: lo divided by the span of the rule"`
	Processes int     `json:"processes,omitempty" doc:"how many processes reported it in the last minute while it was hot"`
}

// A HotList is the answer of GET /v1/hot.
type HotList struct {
	Hot []HotKey `json:"hot"`
}

// A HotKeyReport is what a server knows about a key under one hot rule.
type HotKeyReport struct {
	Rule      string       `json:"rule"`
	Hot       *HotKey      `json:"hot,omitempty" doc:"absent if it is not hot"`
	Lo        uint64       `json:"lo" doc:"the number of its events in the span of the rule is not below"`
	Hi        uint64       `json:"hi,omitempty" doc:"nor above; absent if that is unknown or 0"`
	Span      Millis       `json:"span_ms" doc:"of the rule"`
	Day       []Slot       `json:"day" doc:"about how many events it had while it was hot, in each ten minutes of the last day, oldest first"`
	Processes []HotProcess `json:"processes" doc:"up to 100 that reported it in the last minute while it was hot, those with most events first"`
}

// A HotProcess is a process that reports events of a hot key.
type HotProcess struct {
	Name   string `json:"name" doc:"of its connection, as CLIENT SETNAME sets it, or its address"`
	Events uint64 `json:"events" doc:"of the key in the last minute"`
}

// A HotUpdate is what watchers of hot keys receive: first the keys that are hot, as a
// reset, and then what changed. It is the data of the server-sent events of
// GET /v1/hot/watch, and the message of HOT.WATCH.
//
// Each update is for the version that the one before has led to. If From is another
// version, an update was lost: watch again.
type HotUpdate struct {
	Instance string    `json:"instance" doc:"a random id of this start of the server"`
	From     uint64    `json:"from" doc:"the version that the update changes; 0 for a reset"`
	Version  uint64    `json:"version" doc:"the version after the last part of the update"`
	Rule     string    `json:"rule,omitempty" doc:"the only rule that is watched"`
	Reset    bool      `json:"reset" doc:"drop all keys first: hot is the first part of all that are hot"`
	More     bool      `json:"more" doc:"the update goes on in the next message"`
	Hot      []HotKey  `json:"hot" doc:"keys that became hot, or stay hot for longer"`
	Cold     []RuleKey `json:"cold" doc:"keys that are no longer hot"`
	Changed  []RuleKey `json:"changed" doc:"keys whose values changed: they must be loaded again"`
}

// A HotRequest is the body of POST /v1/hot.
type HotRequest struct {
	Rule string `json:"rule"`
	Key
	TTL Millis `json:"ttl_ms,omitempty" doc:"how long the key is hot; the hold of the rule if it is left out"`
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
	Hot bool `json:"hot" doc:"the key is hot, so watchers are told that its value changed"`
}

// A HotReport is the body of POST /v1/hot/report: events of keys under a hot rule that a
// client has counted.
type HotReport struct {
	Rule    string      `json:"rule"`
	Records []HotRecord `json:"records" doc:"1 to 1000; if one is wrong, none is counted"`
}

// A HotRecord is events of one key.
type HotRecord struct {
	Key
	Count *uint64 `json:"count,omitempty" range:"cost" doc:"how many; 1 if it is left out"`
	Age   Millis  `json:"age_ms,omitempty" doc:"how long ago they happened"`
}

// HotReported is the answer of POST /v1/hot/report.
type HotReported struct {
	Counted int `json:"counted" doc:"the records that were counted: not those that are as old as the span of the rule, of keys that are ignored, or without memory"`
}

// A CacheReport is the body of POST /v1/hot/cache: what the caches of a process did since
// its last report.
type CacheReport struct {
	Rule string `json:"rule"`
	CacheCounts
}

// HotStats is the answer of GET /v1/hot/stats.
type HotStats struct {
	Watchers    int            `json:"watchers" doc:"now"`
	Resets      uint64         `json:"resets" doc:"updates with all keys that watchers were sent"`
	Updates     uint64         `json:"updates" doc:"other updates that watchers were sent"`
	ListBytes   int64          `json:"list_bytes" doc:"memory of the list of hot keys"`
	ListDropped uint64         `json:"list_dropped" doc:"keys that the list did not keep while they were hot, for lack of memory"`
	Rules       []HotRuleStats `json:"rules"`
}

// HotRuleStats counts what one hot rule has seen since the server started.
type HotRuleStats struct {
	Rule          string      `json:"rule"`
	Threshold     uint64      `json:"threshold" doc:"of the rule"`
	Span          Millis      `json:"span_ms" doc:"of the rule"`
	Records       uint64      `json:"records" doc:"records of HOT.REPORT that were counted"`
	Late          uint64      `json:"late" doc:"records that were as old as the span of the rule"`
	Ignored       uint64      `json:"ignored" doc:"records of keys that are never counted"`
	Dropped       uint64      `json:"dropped" doc:"records that were not counted for lack of memory"`
	Events        uint64      `json:"events" doc:"events counted, those of records and of checks"`
	DroppedEvents uint64      `json:"dropped_events" doc:"adds of new keys, by records or checks, that were not counted for lack of memory"`
	Moved         uint64      `json:"moved" doc:"of events: those counted at a later time than their own"`
	Keys          int         `json:"keys" doc:"that are counted, hot or not"`
	Evicted       uint64      `json:"evicted" doc:"keys that were evicted for lack of memory"`
	Bytes         int64       `json:"bytes" doc:"memory of the keys"`
	Hot           int         `json:"hot" doc:"keys that are hot"`
	IgnoredKeys   []Key       `json:"ignored_keys" doc:"by hand"`
	Caches        CacheCounts `json:"caches" doc:"what caches reported"`
	Saved         []HotSaved  `json:"saved" doc:"what caches reported in the last minute, hour and day"`
}

// CacheCounts is what caches did.
type CacheCounts struct {
	Hits   uint64 `json:"hits" doc:"reads that were served from memory"`
	Misses uint64 `json:"misses" doc:"reads that were not"`
	Loads  uint64 `json:"loads"`
	Stale  uint64 `json:"stale" doc:"hits with a value that ought to have been renewed"`
}

// A HotSaved is what caches did in a span that ends now. Hits and misses are lower bounds:
// the span is at most a sixtieth shorter.
type HotSaved struct {
	Span Millis `json:"span_ms"`
	CacheCounts
	Share float64 `json:"share" doc:"hits / (hits + misses): the share of reads that were served from memory; 0 without reads"`
}
