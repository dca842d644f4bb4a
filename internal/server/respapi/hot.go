package respapi

import (
	"errors"
	"math"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/hotkeys"
	"github.com/lately-go/lately/internal/server/keys"
)

// hotCommands report and watch hot keys.
var hotCommands = []command{
	{
		name: "hot.report", usage: "rule value [value ...] count age-ms [value ... count age-ms ...]", summary: "Count events of keys under a hot rule, each some ms ago; returns the number of records counted",
		group: groupHot, role: access.Check, least: 5, write: true, handle: reportHot,
	},
	{
		name: "hot.changed", usage: "rule value [value ...]", summary: "Notify watchers that the value of a key changed; returns 1 if it is hot",
		group: groupHot, role: access.Check, least: 3, write: true, handle: changedHot,
	},
	{
		name: "hot.cache", usage: "rule hits misses loads stale", summary: "Count the reads of a process's caches since its last report",
		group: groupHot, role: access.Check, least: 6, most: 6, write: true, handle: countCache,
	},
	{
		name: "hot.stats", usage: "[rule]", summary: "What was reported under hot rules, and what caches saved",
		group: groupHot, role: access.Read, least: 1, most: 2, handle: hotStats,
	},
	{
		name: "hot.watch", usage: "[rule]", summary: "Receive the keys that are hot, and then each change, as JSON: messages of the channel hot.watch or hot.watch:rule, or with HELLO 3 pushes of the type hot",
		group: groupHot, role: access.Read, least: 1, most: 2, whileSubscribed: true, notQueued: true, handle: watchHot,
	},
	{
		name: "hot.list", usage: "[rule]", summary: "The keys that are hot, the newest first: rule, key, since and until in ms (0: always hot), lo, hi (-1: unknown or none), and the version at which the value last changed",
		group: groupHot, role: access.Read, least: 1, most: 2, handle: listHot,
	},
}

// listHot answers with the keys that are hot.
func listHot(c *conn, args [][]byte) error {
	keys, err := c.s.Engine.Hot().List(optionalRule(args))
	if err != nil {
		return err
	}
	bytes := 64
	for i := range keys {
		bytes += 128 + len(keys[i].Rule)
		for _, v := range keys[i].Values() {
			bytes += len(v) + 1
		}
	}
	if !c.w.Reserve(bytes) {
		return errBusy
	}
	c.w.Array(len(keys))
	for i := range keys {
		c.writeHot(&keys[i])
	}
	return nil
}

// optionalRule returns the rule that a command may name, or "" for all.
func optionalRule(args [][]byte) string {
	if len(args) == 1 {
		return ""
	}
	return string(args[1])
}

func (c *conn) writeHot(k *api.HotKey) {
	c.w.Array(7)
	c.strings(k.Rule, keys.Text(k.Values()))
	hi := int64(-1)
	if k.Hi > 0 && k.Hi <= math.MaxInt64 {
		hi = int64(k.Hi)
	}
	c.w.Ints(engine.EpochMillis(k.Since), engine.EpochMillis(k.Until), wireCount(k.Lo), hi, wireCount(k.Changed))
}

// reportHot counts records of keys that a client has counted. A wrong record refuses all.
func reportHot(c *conn, args [][]byte) error {
	r := &c.report
	if err := c.s.Engine.Hot().Begin(r, keys.View(args[1])); err != nil {
		return err
	}
	fields := r.Fields()
	number := 1
	for rest := args[2:]; len(rest) > 0; number++ {
		if len(rest) < fields+2 {
			return badArg("record %d: %d arguments: must be %d: %d values of the key, a count and an age in ms", number, len(rest), fields+2, fields)
		}
		if err := c.addRecord(r, rest[:fields+2]); err != nil {
			return recordError(number, err)
		}
		rest = rest[fields+2:]
	}
	c.w.Int(int64(r.Count(c.process())))
	return nil
}

// addRecord adds one record: the values of a key, a count and an age.
func (c *conn) addRecord(r *hotkeys.Report, record [][]byte) error {
	key := record[:len(record)-2]
	n, err := readInt("count", record[len(key)], 1, engine.MaxCost)
	if err != nil {
		return err
	}
	age, err := readInt("age", record[len(key)+1], 0, int64(limit.MaxSpan/time.Millisecond))
	if err != nil {
		return err
	}
	c.values = c.values[:0]
	for _, v := range key {
		c.values = append(c.values, keys.View(v))
	}
	return r.Add(uint64(n), time.Duration(age)*time.Millisecond, c.values...)
}

// recordError returns err, an error of a record, with its number.
func recordError(number int, err error) error {
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		return apierror.New(e.Code, "record %d: %s", number, e.Message)
	}
	return err
}

// changedHot notifies watchers that the value of a key changed.
func changedHot(c *conn, args [][]byte) error {
	hot, err := c.s.Engine.Hot().Changed(string(args[1]), copies(args[2:]))
	if err == nil {
		c.w.Int(oneIf(hot))
	}
	return err
}

// countCache counts what the caches of a process did.
func countCache(c *conn, args [][]byte) error {
	var n [4]int64
	for i, what := range []string{"hits", "misses", "loads", "stale"} {
		var err error
		if n[i], err = readInt(what, args[2+i], 0, hotkeys.MaxCached); err != nil {
			return err
		}
	}
	counts := api.CacheCounts{Hits: uint64(n[0]), Misses: uint64(n[1]), Loads: uint64(n[2]), Stale: uint64(n[3])}
	if err := c.s.Engine.Hot().CountCache(string(args[1]), counts); err != nil {
		return err
	}
	c.w.OK()
	return nil
}

// hotStats answers with the statistics of hot rules.
func hotStats(c *conn, args [][]byte) error {
	s, err := c.s.Engine.Hot().Stats(optionalRule(args))
	if err != nil {
		return err
	}
	c.w.Map(6)
	c.named("watchers", uint64(s.Watchers), "resets", s.Resets, "updates", s.Updates, "list_bytes", uint64(s.ListBytes), "list_dropped", s.ListDropped)
	c.w.BulkString("rules")
	c.w.Map(len(s.Rules))
	for i := range s.Rules {
		r := &s.Rules[i]
		c.w.BulkString(r.Rule)
		c.w.Map(15 + 3*len(r.Saved))
		c.named("records", r.Records, "late", r.Late, "ignored", r.Ignored, "dropped", r.Dropped, "events", r.Events, "dropped_events", r.DroppedEvents,
			"moved", r.Moved, "keys", uint64(r.Keys), "evicted", r.Evicted, "bytes", uint64(r.Bytes), "hot", uint64(r.Hot),
			"hits", r.Caches.Hits, "misses", r.Caches.Misses, "loads", r.Caches.Loads, "stale", r.Caches.Stale)
		for _, x := range r.Saved {
			span := rulevalue.FormatDuration(x.Span.Duration())
			c.named("hits_"+span, x.Hits, "misses_"+span, x.Misses)
			c.w.BulkString("share_" + span)
			c.w.Double(x.Share)
		}
	}
	return nil
}

// named writes names and numbers in turn.
func (c *conn) named(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		c.w.BulkString(pairs[i].(string))
		c.w.Int(wireCount(pairs[i+1].(uint64)))
	}
}
