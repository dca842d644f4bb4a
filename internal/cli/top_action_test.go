package cli

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/must"
)

// acting makes m keep its actions, and inspect with canned answers.
func acting(t *testing.T, m *topModel) *[]topAction {
	t.Helper()
	done := new([]topAction)
	m.act = func(a topAction) tea.Cmd {
		*done = append(*done, a)
		return nil
	}
	return done
}

// TestTopBans presses keys that ban and unban the chosen key, and keys that do not.
func TestTopBans(t *testing.T) {
	m := cannedModel(t, topPaint{}, 120, 40)
	done := acting(t, m)
	keys(m, "b")
	if m.prompt != nil || !strings.HasPrefix(m.notice, "choose a key first") {
		t.Errorf("without a key: prompt %+v, notice %q", m.prompt, m.notice)
	}
	keys(m, "tab", "tab", "down", "b") // the second most refused
	if text := m.promptText(); !strings.HasPrefix(text, "ban 203.0.113.16 under per-client (tab: another) for 1h") {
		t.Errorf("asks %q", text)
	}
	keys(m, "esc")
	if m.prompt != nil || len(*done) > 0 || m.focus != refusedPanel {
		t.Errorf("esc: %+v, did %+v", m.prompt, *done)
	}
	keys(m, "b", "backspace", "backspace", "3", "0", "m", "tab", "enter")
	if len(*done) != 1 || (*done)[0].rule != "search" || (*done)[0].key[0] != "203.0.113.16" || (*done)[0].length != 30*time.Minute {
		t.Errorf("did %+v", *done)
	}
	keys(m, "b", "x", "enter")
	if len(*done) != 1 || !strings.Contains(m.notice, `"1hx": must be such as 10m, 1h or 7d`) {
		t.Errorf("a wrong time: did %+v, notice %q", *done, m.notice)
	}
	keys(m, "tab", "down", "u", "enter") // the ban of a key of two fields
	if len(*done) != 2 || (*done)[1].rule != "login" || strings.Join((*done)[1].key, " ") != "198.51.100.7 ada" || (*done)[1].length != 0 {
		t.Errorf("did %+v", *done)
	}
	keys(m, "tab", "b") // a hot key, which no rule limits
	if m.prompt != nil || m.notice != "no limit or ban counts by path: the key cannot be banned" {
		t.Errorf("a hot key: %+v, %q", m.prompt, m.notice)
	}
}

// TestTopFocus keeps the cursor on its key while lines move, and on a line at all.
func TestTopFocus(t *testing.T) {
	m := cannedModel(t, topPaint{}, 120, 40)
	keys(m, "tab", "down", "down", "down")
	before, _ := m.chosen()
	r := cannedReading(t, topWant{span: time.Minute})
	r.top = r.top[2:]
	r.want = m.want
	m.Update(topRead{r.want, r, nil})
	if now, ok := m.chosen(); !ok || now.key[0] != before.key[0] || m.cursor != 1 {
		t.Errorf("chosen is %v at %d, was %v", now.key, m.cursor, before.key)
	}
	keys(m, "pgdown", "pgdown", "/", ".", "2", "3", "enter") // a key is left
	if l, ok := m.chosen(); !ok || m.cursor != 0 || l.key[0] != "203.0.113.23" {
		t.Errorf("after a filter %v is chosen at %d", l.key, m.cursor)
	}
	keys(m, "/", "z", "enter")
	if _, ok := m.chosen(); ok {
		t.Error("a key is chosen from an empty list")
	}
	keys(m, "esc", "esc")
	if m.focus != noPanel || m.filter != "" {
		t.Errorf("esc leaves focus %d, filter %q", m.focus, m.filter)
	}
}

// TestTopChanges bans, inspects and unbans a key on a server.
func TestTopChanges(t *testing.T) {
	var mu sync.Mutex
	var posted []string
	refuse := false
	s := cannedServer(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		posted = append(posted, r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		switch {
		case refuse:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"status":403,"detail":"admin is needed","code":"DENIED"}`)
		case r.URL.Path == "/v1/bans":
			io.WriteString(w, `{"rule":"per-client","key":["203.0.113.0/24"],"since":"2026-03-02T10:00:00Z","until":"2026-03-02T10:10:00Z","count":1,"reason":"","source":"http"}`)
		default:
			io.WriteString(w, `{"unbanned":1}`)
		}
		return true
	})
	c := must.Get(client.New(s.URL, client.Config{}))(t)
	defer c.Close()
	ban := topAction{"per-client", []string{"203.0.113.16"}, 10 * time.Minute}
	if got := perform(t.Context(), c, ban); got.notice != "203.0.113.0/24 is banned under per-client for 10m" {
		t.Error(got)
	}
	ban.length = 0
	if got := perform(t.Context(), c, ban); got.notice != "203.0.113.16 is unbanned under per-client" {
		t.Error(got)
	}
	refuse = true
	if got := perform(t.Context(), c, ban); got.notice != "not unbanned: DENIED admin is needed" {
		t.Error(got)
	}
	if want := `/v1/bans {"rule":"per-client","key":["203.0.113.16"],"for":"600000ms","reason":"by hand, from top"}`; posted[0] != want || !strings.HasPrefix(posted[1], "/v1/bans/unban ") {
		t.Errorf("posted %q", posted)
	}
	m := cannedModel(t, topPaint{}, 80, 30)
	m.inspect = func(d *topDetail) tea.Cmd {
		m.Update(inspect(t.Context(), c, d))
		return nil
	}
	keys(m, "tab", "tab", "down", "enter")
	frame := m.View().Content
	fits(t, frame, 80, 30)
	for _, want := range []string{"client 203.0.113.16", "requests", "4,900–5,200", "would refuse, again in 12s", "would allow, 412 of 600 left", "1h 00m left", "by http:ops"} {
		if !strings.Contains(frame, want) {
			t.Errorf("no %q in\n%s", want, frame)
		}
	}
	keys(m, "u")
	if m.prompt == nil || m.prompt.line.key[0] != "203.0.113.16" {
		t.Errorf("u in the view of a key requests %+v", m.prompt)
	}
	keys(m, "esc", "esc")
	if m.detail != nil {
		t.Error("esc does not go back")
	}
}

// A rule in shadow mode, or for a key on the allow list, allows the next event without a limit.
func TestDecisionWithoutLimit(t *testing.T) {
	d := api.Decision{Allowed: true}
	if got := nextDecision(&d); got != "allows the next event: "+noLimit {
		t.Errorf("lately key: %q", got)
	}
	rows := cannedModel(t, topPaint{}, 120, 40).decisionRows([]api.KeyDecision{{Rule: "search", Decision: d}})
	if !strings.Contains(rows[0], "would allow: "+noLimit) {
		t.Errorf("lately top: %q", rows)
	}

	d.Allowed = false // by on_store_failure: closed
	if got := nextDecision(&d); got != "refuses the next event: "+storeAway {
		t.Errorf("lately key: %q", got)
	}
	if got := decisionText(&api.Decision{Rule: "login"}); got != "refused by login: "+storeAway {
		t.Errorf("lately check: %q", got)
	}
	if got := refusedEvent(&api.RefusedEvent{Decision: d}); !strings.HasSuffix(got, ": refused, "+storeAway) {
		t.Errorf("lately explain: %q", got)
	}
	rows = cannedModel(t, topPaint{}, 120, 40).decisionRows([]api.KeyDecision{{Rule: "search", Decision: d}})
	if !strings.Contains(rows[0], "would refuse: "+storeAway) {
		t.Errorf("lately top: %q", rows)
	}
}
