package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

const inForce = `version: 1
limits:
  - {name: per-client, key: client, limit: 3 per 1h}
`

const draft = `version: 1
limits:
  - {name: per-client, key: client, limit: 1 per 1h, ban: {after: 2 refusals in 1h, for: 1h}}
allow: [192.0.2.9]
`

// tried returns a server that keeps events, and tries a draft on it.
func tried(t *testing.T, text string) (s *Server, try func(api.TrialRequest) (api.Trial, int, string)) {
	t.Helper()
	e := must.Get(engine.New(engine.Config{Rules: parseRules(t, text), KeepEvents: 4 << 20}))(t)
	t.Cleanup(e.Close)
	s = newServer(t, func(c *Config) { c.Engine = e })
	return s, func(draft api.TrialRequest) (trial api.Trial, status int, body string) {
		t.Helper()
		text := must.Get(json.Marshal(draft))(t)
		w := ask(s, request{method: "POST", path: "/v1/rules/try", body: string(text)})
		if w.Code == http.StatusOK {
			must.Do(t, json.Unmarshal(w.Body.Bytes(), &trial))
		}
		return trial, w.Code, w.Body.String()
	}
}

// A draft is tried on the events that the server judged: it reports which keys would be newly refused, newly allowed and
// banned, and changes nothing.
func TestTryRules(t *testing.T) {
	s, try := tried(t, inForce)
	hostile := "\x1b[2J<script>\u202e"
	visit := func(n int, client string) {
		t.Helper()
		for range n {
			body := must.Get(json.Marshal(map[string]any{"event": map[string]string{"client": client, "path": "/a"}}))(t)
			if w := ask(s, request{method: "POST", path: "/v1/check", body: string(body)}); w.Code != http.StatusOK {
				t.Fatal(w.Code, w.Body)
			}
		}
	}
	visit(6, "192.0.2.1") // 3 refused; the draft refuses 5 and bans at the fourth
	visit(6, "192.0.2.9") // 3 refused, and on the draft's allow list
	visit(2, hostile)     // allowed; the draft refuses one
	visit(1, "192.0.2.2")
	if w := ask(s, request{method: "POST", path: "/v1/take", body: `{"rule":"per-client","key":"192.0.2.3"}`}); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	trial, status, body := try(api.TrialRequest{Rules: draft})
	if status != http.StatusOK || trial.Events != 15 || len(trial.Errors) > 0 || trial.First.IsZero() || trial.Last.Before(trial.First) || trial.Since.After(trial.First) {
		t.Fatalf("%d %s", status, body)
	}
	d := trial.Changes
	if d.Field != "client" || d.Old.Refused != 6 || d.New.Refused != 6 || d.NewlyRefused != 3 || d.NewlyAllowed != 3 || d.Old.Bans != 0 || d.New.Bans != 1 {
		t.Errorf("%+v", d)
	}
	var keys []string
	for _, k := range d.Keys {
		keys = append(keys, fmt.Sprintf("%q %d %d", k.Values(), k.NewlyRefused, k.NewlyAllowed))
	}
	if want := []string{`["192.0.2.1"] 2 0`, fmt.Sprintf(`[%q] 1 0`, hostile), `["192.0.2.9"] 0 3`}; !slices.Equal(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}
	if len(d.Bans) != 1 || d.Bans[0].Values()[0] != "192.0.2.1" || d.Bans[0].NewSeconds != 3600 {
		t.Errorf("the bans are %+v", d.Bans)
	}
	if strings.Contains(body, "\x1b") || strings.Contains(body, "<script>") {
		t.Errorf("the answer has bytes that must be escaped: %q", body)
	}
	if all := strings.Join(trial.Unknown, "\n"); !strings.Contains(all, "bans that held then") || !strings.Contains(all, "have no event: 1.") {
		t.Errorf("unknown: %s", all)
	}

	// The rules in force as a draft change nothing, and the rules stay the same.
	if trial, _, body = try(api.TrialRequest{Rules: inForce, Top: 1}); trial.Changes == nil || !trial.Changes.Empty() {
		t.Errorf("the rules in force: %s", body)
	}
	if trial, _, body = try(api.TrialRequest{Rules: draft, Field: "path", Top: 1}); trial.Changes == nil || len(trial.Changes.Keys) != 1 || trial.Changes.Keys[0].Values()[0] != "/a" {
		t.Errorf("by path: %s", body)
	}
	if got := string(s.Engine.Rules().Text); got != inForce {
		t.Errorf("the rules are %s", got)
	}
	for _, x := range []struct {
		request api.TrialRequest
		want    string
		status  int
	}{
		{api.TrialRequest{Rules: "version: 1\nlimits: [{name: a}]\n"}, `"errors":[{"line":2,`, http.StatusOK},
		{api.TrialRequest{Rules: inForce + "fields: {tenant: {}}\nbans:\n  - {name: tenants, key: tenant, after: 5 hits in 1m, for: 1h}\n"}, `no event has the field tenant`, http.StatusOK},
		{api.TrialRequest{Rules: draft, Field: "nothing"}, `unknown field \"nothing\"`, http.StatusBadRequest},
		{api.TrialRequest{Rules: draft, Top: -1}, "must be 1 to 1000", http.StatusBadRequest},
		{api.TrialRequest{Rules: draft, Protect: "192.0.2.9\n192.0.2.0/29\n"}, `"protected_keys_hurt":[{"key":["192.0.2.1"],`, http.StatusOK},
		{api.TrialRequest{Rules: draft, Protect: "192.0.2.0/29"}, `"protected_bans_hurt":[{"fields":["client"],"key":["192.0.2.1"],`, http.StatusOK},
	} {
		if _, status, body := try(x.request); status != x.status || !strings.Contains(body, x.want) {
			t.Errorf("%+v: %d %s; want %d %s", x.request, status, body, x.status, x.want)
		}
	}
	if trial, _, body := try(api.TrialRequest{Rules: draft, Protect: "192.0.2.9"}); len(trial.Changes.Hurt)+len(trial.Changes.HurtBans) > 0 {
		t.Errorf("one that hurts nobody: %s", body)
	}
}

// While a draft is tried, another is refused, and a server that keeps no events answers with how to keep them.
func TestTryRulesRefused(t *testing.T) {
	s, try := tried(t, inForce)
	s.trying.Store(true)
	if _, status, body := try(api.TrialRequest{Rules: draft}); status != http.StatusServiceUnavailable || !strings.Contains(body, "another draft is being tried") {
		t.Errorf("%d %s", status, body)
	}
	s.trying.Store(false)
	if trial, _, body := try(api.TrialRequest{Rules: draft}); trial.Events != 0 || trial.Changes == nil || !trial.Changes.Empty() {
		t.Errorf("without events: %s", body)
	}
	none := newServer(t, nil)
	w := ask(none, request{method: "POST", path: "/v1/rules/try", body: `{"rules":"version: 1"}`})
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "keep-events") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
