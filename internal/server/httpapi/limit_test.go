package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
)

// TestLimitOfRequest has requests bring the limit of their key, alone, in a list and in a body that the fast scan
// leaves to encoding/json.
func TestLimitOfRequest(t *testing.T) {
	s := newServer(t, nil)
	must.Get(s.Engine.Replace(parseRules(t, "version: 1\nlimits: [{name: plan, key: user, limit: {default: 2 per 1h, at_most: 5 per 1h}}, {name: fixed, key: user, limit: 2 per 1h}]"), true))(t)
	for _, step := range []struct{ path, body, want string }{
		{"/v1/take", `{"rule":"plan","key":"ada","cost":2}`, `"allowed":true,"limit":2,"remaining":0`},
		{"/v1/take", `{"rule":"plan","key":"ada"}`, `"allowed":false,"limit":2,"remaining":0`},
		{"/v1/peek", `{"rule":"plan","key":"ada","limit":4}`, `"allowed":true,"limit":4,"remaining":1`},
		{"/v1/take", `{"limit":4,"rule":"plan","key":["ada"]}`, `"allowed":true,"limit":4,"remaining":1`},
		{"/v1/take", `{"limit":9,"rule":"pl\u0061n","key":"ada"}`, `"allowed":true,"limit":5,"remaining":1`},
		{"/v1/take", `{"takes":[{"rule":"plan","key":"ada","limit":5},{"rule":"plan","key":"ada","limit":5}]}`, `"allowed":true,"limit":5,"remaining":0,`},
		{"/v1/take", `{"takes":[{"rule":"plan","key":"ada","limit":0}]}`, `limit: 0: must be 1 to`},
		{"/v1/take", `{"takes":[{"rule":"fixed","key":"ada","limit":3}]}`, `rule \"fixed\": its limit is fixed: must have at_most to take a limit from a request`},
	} {
		if w := post(s, step.path, step.body); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), step.want) {
			t.Errorf("%s %s: %d %s, want %s", step.path, step.body, w.Code, w.Body, step.want)
		}
	}
	if p := wantProblem(t, post(s, "/v1/charge", `{"rule":"plan","key":"ada","limit":3}`), 400, api.BadArg); !strings.Contains(p.Detail, `"limit": unknown`) {
		t.Errorf("a charge with a limit: %s", p.Detail)
	}
	if w := post(s, "/v1/reserve", `{"rule":"plan","key":"eve","cost":5,"limit":5}`); !strings.Contains(w.Body.String(), `"allowed":true,"limit":5,"remaining":0`) {
		t.Errorf("a reservation under a limit of 5: %s", w.Body)
	}
	for body, want := range map[string]string{
		`{"rule":"plan","key":"ada","limit":0}`:        "limit: 0: must be 1 to 2147483648",
		`{"rule":"fixed","key":"ada","limit":3}`:       "its limit is fixed: must have at_most",
		`{"event":{"user":"ada"},"limit":3}`:           "must be one of",
		`{"takes":[{"rule":"x","key":"y"}],"limit":3}`: "must be one of",
	} {
		p := wantProblem(t, post(s, "/v1/peek", body), 400, api.BadArg)
		if !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %s, want %s", body, p.Detail, want)
		}
	}
}
