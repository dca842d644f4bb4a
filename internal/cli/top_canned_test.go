package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/must"
)

// cannedNow is when everything in these tests happens.
var cannedNow = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// cannedStatus is the status of the canned server.
const cannedStatus = `{"version":"v1.2.0","started":"2026-03-02T06:46:00Z","uptime_s":11640,"totals":{"allowed":14200344,"refused":47121,"banned":41002,"unmatched":120,"errors":0},` +
	`"memory":{"budget":268435456,"bytes":13002342,"counter_bytes":5242880,"heap":40000000},"bans":{"held":1234,"remembered":40,"refused":0},` +
	`"subscribers":3,"rules":{"file":"rules.yaml","since":"2026-03-02T06:46:00Z","reloads":2,"error":null},"role":"read"}`

const cannedRules = `{"file":"rules.yaml","text":"","since":"2026-03-02T06:46:00Z","error":null,"allow":{"clients":[],"files":[]},"counters":[],"rules":[` +
	`{"name":"per-client","kind":"limit","fields":["client"],"sentence":"at most 60 per 1m of each client","shadow":false,"stats":{}},` +
	`{"name":"login","kind":"limit","fields":["client","user"],"sentence":"at most 5 per 10m","shadow":false,"stats":{}},` +
	`{"name":"search","kind":"limit","fields":["client"],"sentence":"at most 10 per 1s","shadow":true,"stats":{}},` +
	`{"name":"flood","kind":"ban","fields":["client"],"sentence":"ban for 1h after 600 hits in 1m","shadow":false,"stats":{}},` +
	`{"name":"product","kind":"hot","fields":["path"],"sentence":"hot at 500 in 2s","shadow":false,"stats":null}]}`

const cannedCounters = `{"counters":[{"name":"requests","fields":["client"],"spans_ms":[1000,60000,3600000],"dynamic":false,"sentence":"","keys":20431,"bytes":4000000},` +
	`{"name":"paths","fields":["path"],"spans_ms":[1000,60000,3600000,86400000],"dynamic":false,"sentence":"","keys":812,"bytes":1242880}]}`

const cannedSpan = `{"from":"2026-03-02T09:59:00Z","to":"2026-03-02T10:00:00Z","all":{"allowed":73800,"refused":2400,"banned":1860,"unmatched":120,"errors":0},"rules":{` +
	`"per-client":{"allowed":71000,"refused":2280,"banned":1680,"shadow":0,"bans":2},"login":{"allowed":420,"refused":58,"banned":60,"shadow":0,"bans":1},` +
	`"search":{"allowed":9000,"refused":0,"shadow":812,"banned":0,"bans":0},"flood":{"allowed":73000,"refused":0,"banned":180,"shadow":0,"bans":0}}}`

const cannedBans = `{"total":1234,"bans":[` +
	`{"rule":"per-client","key":["203.0.113.9"],"since":"2026-03-02T09:59:58Z","until":"2026-03-02T10:09:58Z","count":1,"reason":"more than 20 refusals in 5m","source":"rule"},` +
	`{"rule":"login","key":["198.51.100.7","ada"],"since":"2026-03-02T09:59:40Z","until":"2026-03-02T10:19:40Z","count":2,"reason":"","source":"rule"},` +
	`{"rule":"flood","key":["2001:db8:0:1::/64"],"since":"2026-03-02T09:40:00Z","until":"2026-03-03T10:00:00Z","count":4,"reason":"by hand","source":"http:ops"}]}`

const cannedHot = `{"hot":[{"rule":"product","key":["/product/42"],"since":"2026-03-02T09:59:57Z","until":"2026-03-02T10:00:57Z","lo":2431,"hi":2440,"rate":1215.5,"processes":12}]}`

const cannedHotStats = `{"rules":[{"rule":"product","hot":1,"saved":[{"span_ms":60000,"hits":958,"misses":42},{"span_ms":3600000,"hits":907,"misses":93},{"span_ms":86400000,"hits":0,"misses":0}]}]}`

const cannedHotKey = `{"fields":["path"],"key":["/product/42"],"counters":[],"rules":[],"bans":[],"hot":[{"rule":"product","lo":2431,"hi":2440,"span_ms":2000,` +
	`"hot":{"rule":"product","key":["/product/42"],"since":"2026-03-02T09:59:57Z","until":"2026-03-02T10:00:57Z","lo":2431,"hi":2440,"rate":1215.5},` +
	`"day":[{"start":"2026-03-01T10:10:00Z","count":0},{"start":"2026-03-01T10:20:00Z","count":70000},{"start":"2026-03-01T10:30:00Z","count":3500}],` +
	`"processes":[{"name":"shop-web-4021","events":61200},{"name":"192.0.2.7","events":40}]}]}`

const cannedRefused = `{"refused":[` +
	`{"rule":"per-client","key":["203.0.113.9"],"lo":1200,"hi":1310,"per_second":20,"banned_until":"2026-03-02T10:09:58Z"},` +
	`{"rule":"per-client","key":["203.0.113.16"],"lo":840,"hi":840,"per_second":14,"banned_until":null},` +
	`{"rule":"login","key":["198.51.100.7","ada"],"lo":58,"hi":60,"per_second":0.97,"banned_until":null}]}`

const cannedKey = `{"fields":["client"],"key":["203.0.113.16"],"counters":[` +
	`{"counter":"requests","span_ms":60000,"lo":4900,"hi":5200,"slots":[]},{"counter":"requests","span_ms":3600000,"lo":48200,"hi":52000,"slots":[]}],` +
	`"rules":[{"rule":"per-client","decision":{"allowed":false,"limit":60,"remaining":0,"retry_after_ms":12000,"reset_after_ms":60000,"rule":"per-client","banned_until_ms":0}},` +
	`{"rule":"flood","decision":{"allowed":true,"limit":600,"remaining":412,"retry_after_ms":0,"reset_after_ms":60000,"rule":"flood","banned_until_ms":0}}],` +
	`"bans":[{"rule":"flood","key":["203.0.113.16"],"since":"2026-03-02T09:40:00Z","until":"2026-03-02T11:00:00Z","count":1,"reason":"seen","source":"http:ops"}]}`

// cannedTop is the top keys of a counter; the last contains control characters that must not reach a terminal.
func cannedTop(counter string) string {
	type key struct {
		Key []string `json:"key"`
		Lo  int      `json:"lo"`
		Hi  int      `json:"hi"`
	}
	var list []key
	for i := range 24 {
		k := key{Key: []string{fmt.Sprintf("203.0.113.%d", 9+i*7)}, Lo: 9800 / (i + 1), Hi: 9800/(i+1) + 600/(i+1)}
		if counter == "paths" {
			k.Key[0] = fmt.Sprintf("/product/%d", 42+i)
		}
		if i > 15 {
			k.Hi = k.Lo
		}
		list = append(list, k)
	}
	b, err := json.Marshal(map[string]any{"top": list})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func cannedMinute() string {
	var rates []api.Rate
	for i := range 60 {
		n := uint64(900 + 600*((i*7)%11)/10)
		from := cannedNow.Add(time.Duration(i-60) * time.Second)
		r := api.Rate{From: from, To: from.Add(time.Second), All: api.Totals{Allowed: n, Refused: uint64((i*i%97 + 1) / 2), Banned: uint64(i * i % 97 / 2), Unmatched: uint64(i % 5)}}
		if i > 20 && i < 34 {
			r.All.Refused += 40
			r.All.Banned += 200
		}
		rates = append(rates, r)
	}
	b, err := json.Marshal(map[string]any{"rates": rates})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// cannedAnswer returns the answer of the canned server, or "" for an unknown path.
func cannedAnswer(r *http.Request) string {
	switch r.URL.Path {
	case "/v1/status":
		return cannedStatus
	case "/v1/rules":
		return cannedRules
	case "/v1/counters":
		return cannedCounters
	case "/v1/counters/requests/top":
		return cannedTop("requests")
	case "/v1/counters/paths/top":
		return cannedTop("paths")
	case "/v1/rates":
		if r.URL.Query().Get("rules") == "1" {
			return `{"rates":[` + cannedSpan + `]}`
		}
		return cannedMinute()
	case "/v1/bans":
		return cannedBans
	case "/v1/refused":
		return cannedRefused
	case "/v1/key":
		if r.URL.Query().Get("field") == "path" {
			return cannedHotKey
		}
		return cannedKey
	case "/v1/hot/stats":
		return cannedHotStats
	case "/v1/hot":
		return cannedHot
	}
	return ""
}

// cannedServer is a server with the answers of a running one, or those in override.
func cannedServer(t *testing.T, override func(w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if override != nil && override(w, r) {
			return
		}
		answer := cannedAnswer(r)
		if answer == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// cannedReading is the expected reading.
func cannedReading(t *testing.T, w topWant) *topReading {
	t.Helper()
	s := cannedServer(t, nil)
	c := must.Get(client.New(s.URL, client.Config{}))(t)
	defer c.Close()
	r := must.Get(readTop(t.Context(), c, w))(t)
	return r
}

// cannedModel is a live view of it.
func cannedModel(t *testing.T, paint topPaint, width, height int) *topModel {
	t.Helper()
	want := topWant{span: time.Minute, whole: true}
	m := newTopModel("http://127.0.0.1:7380", want, paint)
	m.width, m.height, m.now = width, height, cannedNow
	m.live = true
	m.ask = func(topWant) tea.Cmd { return nil }
	m.inspect = func(*topDetail) tea.Cmd { return nil }
	m.act = func(topAction) tea.Cmd { return nil }
	r := cannedReading(t, want)
	r.at = cannedNow
	m.read(r)
	return m
}
