package httpapi

import (
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/hotkeys"
	"github.com/lately-go/lately/internal/server/keys"
)

// hotRoutes returns the routes about hot keys.
func hotRoutes() []route {
	rule := parameter{"rule", "under this hot rule only", "product", false}
	return []route{
		{"GET", "/v1/hot", access.Read, queryHandler(listHot), "hot", "List the hot keys, the newest first", []parameter{rule}},
		{"POST", "/v1/hot", access.Admin, created(bodyHandler(addHot)), "addHot", "Make a key hot by hand, for the hold of its rule or for a time", nil},
		{"POST", "/v1/hot/remove", access.Admin, bodyHandler(removeHot), "removeHot", "Make a key cold by hand, and delete its counts", nil},
		{"POST", "/v1/hot/ignore", access.Admin, bodyHandler(ignoreHot), "ignoreHot", "Never count a key under a hot rule, or count it again", nil},
		{"POST", "/v1/hot/report", access.Check, bodyHandler(reportHot), "reportHot", "Count events of keys under a hot rule that a client has counted, each some time ago", nil},
		{"POST", "/v1/hot/cache", access.Check, bodyHandler(countCache), "countCache", "Count the reads of a process's caches since its last report", nil},
		{"POST", "/v1/hot/changed", access.Check, bodyHandler(changedHot), "changedHot", "Notify watchers of hot keys that the value of a key changed", nil},
		{"GET", "/v1/hot/stats", access.Read, queryHandler(hotStats), "hotStats", "What was reported under hot rules, and what caches saved", []parameter{rule}},
		{"GET", "/v1/hot/watch", access.Read, handler{serve: watchHot, out: api.HotUpdate{}, media: streamType[0]}, "watchHot", "A stream of the keys that are hot, as a reset, and then of each change; the data of each event is a HotUpdate", []parameter{rule}},
	}
}

func listHot(c *call) (list api.HotList, err error) {
	list.Hot, err = c.s.Engine.Hot().List(c.query.Get("rule"))
	return list, err
}

// watchHot answers with the state of hot keys and its changes, as subscribe does with
// events.
func watchHot(c *call) error {
	w, err := c.s.Engine.Hot().Watch(c.query.Get("rule"))
	if err != nil {
		return err
	}
	defer w.Close()
	return c.stream(func(st *stream) {
		seconds := 0
		st.run(w.Wait, nil, func() bool { return st.updates(w) }, func() {
			if seconds++; seconds%quietSeconds == 0 {
				st.out = append(st.out, ": still here\n\n"...) // by which a proxy sees that the stream lasts
			}
		})
	})
}

// updates sends the updates that w has.
func (st *stream) updates(w *hotkeys.Watcher) bool {
	for u := w.Next(); u != nil; u = w.Next() {
		for _, part := range u.Parts() {
			if st.out = appendEvent(st.out, api.KeyHot, part); !st.flush() {
				return false
			}
		}
	}
	return true
}

// quietSeconds is how often a stream of hot keys has a comment.
const quietSeconds = 10

func addHot(c *call, req *api.HotRequest) (k api.HotKey, err error) {
	if req.TTL < 0 || req.TTL > maxPeriod {
		return k, badArg("ttl_ms: %d: must be 1 to %d", req.TTL, maxPeriod)
	}
	key, err := ruleKey(req.Rule, req.Key)
	if err != nil {
		return k, err
	}
	if k, err = c.s.Engine.Hot().Add(req.Rule, key, req.TTL.Duration()); err == nil {
		c.audit("hot key added by hand", "rule", req.Rule, "key", keys.Text(key), "until", k.Until)
	}
	return k, err
}

func removeHot(c *call, req *api.RuleKey) (a api.HotRemoved, err error) {
	key, err := ruleKey(req.Rule, req.Key)
	if err != nil {
		return a, err
	}
	if a.Removed, err = c.s.Engine.Hot().Remove(req.Rule, key); err == nil {
		c.audit("hot key removed by hand", "rule", req.Rule, "key", keys.Text(key), "was_hot", a.Removed)
	}
	return a, err
}

func ignoreHot(c *call, req *api.IgnoreRequest) (ok api.Nothing, err error) {
	key, err := ruleKey(req.Rule, req.Key)
	if err != nil {
		return ok, err
	}
	if err = c.s.Engine.Hot().Ignore(req.Rule, key, req.Off); err == nil {
		c.audit("hot key ignored by hand", "rule", req.Rule, "key", keys.Text(key), "off", req.Off)
	}
	return ok, err
}

func changedHot(c *call, req *api.RuleKey) (a api.HotChanged, err error) {
	key, err := ruleKey(req.Rule, req.Key)
	if err != nil {
		return a, err
	}
	a.Hot, err = c.s.Engine.Hot().Changed(req.Rule, key)
	return a, err
}

// reportHot counts records of keys that a client has counted. A wrong record refuses all.
func reportHot(c *call, req *api.HotReport) (a api.HotReported, err error) {
	if len(req.Records) == 0 {
		return a, badArg("records: a list of 0 entries: must be 1 to %d", maxBatch)
	}
	if req.Rule == "" {
		return a, badArg("rule: missing: must be the name of a rule")
	}
	var r hotkeys.Report
	if err := c.s.Engine.Hot().Begin(&r, req.Rule); err != nil {
		return a, err
	}
	for i := range req.Records {
		if err := addRecord(&r, &req.Records[i]); err != nil {
			e := asAPI(err)
			return a, problemf(e.Status, e.Code, "records: record %d: %s", i+1, e.Detail)
		}
	}
	a.Counted = r.Count(access.PeerName(c.peer()))
	return a, nil
}

func addRecord(r *hotkeys.Report, record *api.HotRecord) error {
	n, err := amount("count", record.Count)
	if err != nil {
		return err
	}
	if record.Age < 0 || record.Age > maxPeriod {
		return badArg("age_ms: %d: must be 0 to %d", record.Age, maxPeriod)
	}
	key, err := valuesOf(record.Key)
	if err != nil {
		return err
	}
	return r.Add(n, record.Age.Duration(), key...)
}

func countCache(c *call, req *api.CacheReport) (ok api.Nothing, err error) {
	if req.Rule == "" {
		return ok, badArg("rule: missing: must be the name of a rule")
	}
	return ok, c.s.Engine.Hot().CountCache(req.Rule, req.CacheCounts)
}

func hotStats(c *call) (api.HotStats, error) { return c.s.Engine.Hot().Stats(c.query.Get("rule")) }
