package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/test/must"
)

// A value by which a rule counts has a maximum length, and an error about it; other values have none.
func TestLongValue(t *testing.T) {
	s := newServer(t, nil)
	long := strings.Repeat("x", keys.Max+1)
	for _, body := range []string{`{"event":{"client":"` + long + `","path":"/"}}`, `{"events":[{"event":{"client":"` + long + `","path":"/"}}]}`} {
		for _, path := range []string{"/v1/check", "/v1/peek"} {
			if w := post(s, path, body); !strings.Contains(w.Body.String(), "client: 1025 bytes: must be at most 1024") {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	}
	wantProblem(t, post(s, "/v1/check", `{"event":{"client":"`+long+`","path":"/"}}`), 400, api.BadArg)
	for path, body := range map[string]string{
		"/v1/take": `{"rule":"per-client","key":"` + long + `"}`,
		"/v1/bans": `{"rule":"per-client","key":"` + long + `","for":"1h"}`,
	} {
		if p := wantProblem(t, post(s, path, body), 400, api.BadArg); !strings.Contains(p.Detail, "client: 1025 bytes: ") {
			t.Errorf("%s: %s", path, p.Detail)
		}
	}
	if w := post(s, "/v1/check", `{"event":{"client":"203.0.113.5","path":"/`+long+`"}}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"remaining":59`) {
		t.Errorf("a long path that is only matched: %d %s", w.Code, w.Body)
	}
}

// A list is judged in its order, and answered in the same way in any form: a form with an escape is read by encoding/json.
// A list that is broken at its end counts nothing.
func TestListsInAnyForm(t *testing.T) {
	for path, items := range map[string][]string{
		"/v1/check": {`{"event":{"client":"203.0.113.5","path":"/"}}`, `{"event":{"client":"203.0.113.6","path":"/"},"cost":0}`, `{"event":{"client":"203.0.113.5","path":"/"},"cost":3}`, `{"event":{"client":"203.0.113.7","path":"/"},"cost":61}`},
		"/v1/take":  {`{"rule":"per-client","key":"203.0.113.5"}`, `{"rule":"none","key":"a"}`, `{"rule":"per-client","key":["203.0.113.5"],"cost":3}`, `{"rule":"per-client","key":"203.0.113.7","cost":61}`},
	} {
		name := map[string]string{"/v1/check": "events", "/v1/take": "takes"}[path]
		list := `{"` + name + `":[` + strings.Join(items, ", ") + strings.Repeat(", "+items[3], 20) + `]}`
		synctest.Test(t, func(t *testing.T) {
			usual, other := newServer(t, nil), newServer(t, nil)
			wantProblem(t, post(usual, path, list[:len(list)-1]), 400, api.BadArg)
			one, two := post(usual, path, list), post(other, path, strings.ReplaceAll(list, "203", `\u0032\u0030\u0033`))
			if one.Code != 200 || one.Body.String() != two.Body.String() || one.Header().Get("Content-Length") != strconv.Itoa(one.Body.Len()) {
				t.Errorf("%s: %d %v %s\nand with escapes: %d %s", path, one.Code, one.Header(), one.Body, two.Code, two.Body)
			}
			var got struct {
				Decisions []struct {
					Remaining *uint64
					Error     *api.Failure
				}
			}
			if err := json.Unmarshal(one.Body.Bytes(), &got); err != nil || len(got.Decisions) != len(items)+20 {
				t.Fatalf("%s: %s: %v", path, one.Body, err)
			}
			for i, v := range got.Decisions {
				if failed := i == 1; failed != (v.Error != nil) || failed == (v.Remaining != nil) {
					t.Errorf("%s: entry %d is not as it should be: %s", path, i, one.Body)
				}
			}
			if left := got.Decisions[2].Remaining; left == nil || *left != 56 {
				t.Errorf("%s: left after 1 and 3 of 60 are not 56: %s", path, one.Body)
			}
		})
	}
}

// Several values are an error in a field that a rule counts by, in whatever form they come.
func TestAsManyValuesAsFields(t *testing.T) {
	s := newServer(t, nil)
	const several = `"rule":"per-client","key":["203.0.113.5","x"]`
	for path, bodies := range map[string][]string{
		"/v1/take":                     {`{` + several + `}`, `{` + several + `,"cost":null}`, `{"rule":"per-client","key_base64":["YQ==","Yg=="]}`},
		"/v1/peek":                     {`{` + several + `}`},
		"/v1/refund":                   {`{` + several + `}`},
		"/v1/release":                  {`{"rule":"under-way","key":["203.0.113.5","x"]}`},
		"/v1/reset":                    {`{` + several + `}`},
		"/v1/counters/requests/add":    {`{"key":["203.0.113.5","x"]}`},
		"/v1/counters/made-by-add/add": {`{"key":["203.0.113.5","x"]}`},
	} {
		for _, body := range bodies {
			p := wantProblem(t, post(s, path, body), 400, api.BadArg)
			if !strings.Contains(p.Detail, "number of key values: 2") && !strings.Contains(p.Detail, `counter "made-by-add": unknown`) {
				t.Errorf("%s %s: %s", path, body, p.Detail)
			}
		}
	}
	wantProblem(t, get(s, "/v1/counters/requests/sum?key=203.0.113.5&key=x"), 400, api.BadArg)
	wantProblem(t, get(s, "/v1/counters/requests/rate?key=203.0.113.5&key=x"), 400, api.BadArg)
	for _, body := range []string{`{"takes":[{` + several + `}]}`, `{"takes":[{` + several + `,"cost":null}]}`} {
		if w := post(s, "/v1/take", body); !strings.Contains(w.Body.String(), "number of key values: 2") {
			t.Errorf("%s: %s", body, w.Body)
		}
	}
	if w := post(s, "/v1/take", `{"rule":"per-client","key":"a\tb"}`); w.Code != 200 {
		t.Errorf("one value with a tab: %d %s", w.Code, w.Body)
	}
}

// A proxy that asks about a value that is too long receives a refusal.
func TestForwardAuthLongValue(t *testing.T) {
	s := forwardingServer(t)
	must.Get(s.Engine.Replace(parseRules(t, "version: 1\nlimits: [{name: page, key: path, limit: 5 per 1m}]\n"), true))(t)
	w := asProxy(s, "/v1/auth", "X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/"+strings.Repeat("x", keys.Max))
	if w.Code != 431 || w.Header().Get("Lately-Decision") != "refused" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := asProxy(s, "/v1/auth", "X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/"+strings.Repeat("x", keys.Max-1)); w.Code != 204 {
		t.Errorf("one that fits: %d %s", w.Code, w.Body)
	}
}

// An unknown field is an error that suggests one, in any form of the body. Of several it names the first by the
// alphabet if the body is decoded to a map.
func TestUnknownField(t *testing.T) {
	s := newServer(t, nil)
	for range 8 {
		if p := wantProblem(t, post(s, "/v1/check", `{"event":{"c\u006ceint":"x","agnet":"x","hots":"x","mehtod":"x"}}`), 400, api.BadArg); p.Detail != `field "agnet": unknown; did you mean agent?` {
			t.Errorf("of several fields: %s", p.Detail)
		}
	}
	const want = `field "cleint": unknown; did you mean client?`
	for _, x := range []struct{ path, body string }{
		{"/v1/check", `{"event":{"cleint":"203.0.113.5","path":"/"}}`},
		{"/v1/check", `{"event":{"c\u006ceint":"203.0.113.5","path":"/"}}`},
		{"/v1/peek", `{"event":{"cleint":"203.0.113.5","path":"/"}}`},
	} {
		if p := wantProblem(t, post(s, x.path, x.body), 400, api.BadArg); p.Detail != want {
			t.Errorf("%s %s: %s", x.path, x.body, p.Detail)
		}
	}
	for _, name := range []string{"cleint", `c\u006ceint`} {
		w := post(s, "/v1/check", `{"events":[{"event":{"client":"203.0.113.5"}},{"event":{"`+name+`":"203.0.113.5"}}]}`)
		var got struct {
			Decisions []struct{ Error *api.Failure }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Decisions) != 2 || got.Decisions[0].Error != nil || got.Decisions[1].Error == nil || got.Decisions[1].Error.Detail != want {
			t.Errorf("in a list: %d %s", w.Code, w.Body)
		}
	}
}
