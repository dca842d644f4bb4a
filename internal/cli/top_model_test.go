package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
)

// asking makes m keep its requests.
func asking(m *topModel) *[]topWant {
	asked := new([]topWant)
	m.ask = func(w topWant) tea.Cmd {
		*asked = append(*asked, w)
		return nil
	}
	return asked
}

// TestTopKeys checks the request of each key.
func TestTopKeys(t *testing.T) {
	m := cannedModel(t, topPaint{}, 120, 40)
	asked := asking(m)
	last := func() topWant {
		t.Helper()
		if len(*asked) == 0 {
			t.Fatal("nothing was requested")
		}
		w := (*asked)[len(*asked)-1]
		*asked = nil
		return w
	}
	keys(m, "5")
	if w := last(); w.span != time.Hour || w.counter != "" || w.whole || w.turn != m.want.turn {
		t.Errorf("5 requests %+v", w)
	}
	keys(m, "6") // the counter has an hour
	if len(*asked) > 0 || m.want.span != time.Hour || m.notice != "counter requests has up to 1h" {
		t.Errorf("6 requests %+v, notice %q", *asked, m.notice)
	}
	keys(m, "c")
	if w := last(); w.counter != "paths" || w.span != time.Hour {
		t.Errorf("c requests %+v", w)
	}
	for _, quit := range []tea.KeyPressMsg{{Text: "q", Code: 'q'}, {Code: 'c', Mod: tea.ModCtrl}} {
		_, cmd := m.Update(quit)
		if cmd == nil || cmd() != tea.Quit() {
			t.Errorf("%v does not quit", quit)
		}
	}
	keys(m, "/", "q", "5", "?", "s")
	if !m.editing || m.filter != "q5?s" || len(*asked) > 0 {
		t.Errorf("typing in the filter: %q, requested %+v", m.filter, *asked)
	}
	keys(m, "enter", "s", "?")
	if m.filter != "q5?s" || m.sort != byCount || !m.help {
		t.Errorf("after the filter: %q, %v, %v", m.filter, m.sort, m.help)
	}
	keys(m, "esc", "esc")
	if m.help || m.filter != "" {
		t.Errorf("esc leaves help %v, filter %q", m.help, m.filter)
	}
}

// TestTopPause has a paused view, which no message changes, and which reads everything
// when it goes on.
func TestTopPause(t *testing.T) {
	m := cannedModel(t, topPaint{}, 120, 40)
	asked := asking(m)
	keys(m, "p")
	before := m.View().Content
	late := cannedReading(t, topWant{span: time.Minute, counter: "paths"})
	for _, msg := range []tea.Msg{
		topRead{late.want, late, nil},
		topPoll{m.want.turn},
		topEvent{api.Event{Type: api.RatesTick, All: &api.Totals{Allowed: 5}}},
		topEvent{api.Event{Type: api.BanStarted, Ban: &api.Ban{Rule: "r", Key: api.KeyOf("k")}}},
		topEvent{api.Event{Type: client.Connected}},
	} {
		m.Update(msg)
		if got := m.View().Content; got != before {
			t.Errorf("%T changes the picture to\n%s", msg, got)
		}
	}
	if len(*asked) > 0 {
		t.Errorf("requested %+v", *asked)
	}
	keys(m, "2") // a wish is kept
	keys(m, "p")
	if len(*asked) != 1 || !(*asked)[0].whole || (*asked)[0].span != 10*time.Second {
		t.Errorf("going on requests %+v", *asked)
	}
}

// TestTopLacking has a line under each rule whose field most of its events lack, complete in a narrow panel.
func TestTopLacking(t *testing.T) {
	m := cannedModel(t, topPaint{}, 80, 40)
	for lacking, want := range map[uint64]int{50: 0, 51: 1} {
		m.rules[0].Fields, m.rules[0].Stats = []string{"api_key", "client"}, &api.RuleStats{Allowed: 100 - lacking, Lacking: lacking}
		if got := strings.Count(m.View().Content, "  most events lack api_key or client"); got != want {
			t.Errorf("%d of 100 events lack a field: %d lines about it, want %d, in\n%s", lacking, got, want, m.View().Content)
		}
	}
}

// TestTopEvents has the events of the server between two readings.
func TestTopEvents(t *testing.T) {
	m := cannedModel(t, topPaint{}, 120, 40)
	asked := asking(m)
	tell := func(e api.Event) { m.Update(topEvent{e}) }
	again := m.reading.bans[1]
	again.Until = again.Until.Add(time.Hour)
	tell(api.Event{Type: api.BanStarted, Ban: &again})
	if b := m.reading.bans; len(b) != 3 || b[0].Rule != "login" || b[0].Until != again.Until || m.reading.held != 1234 {
		t.Errorf("a longer ban: %+v of %d", b, m.reading.held)
	}
	for i := range 2 * topBans {
		tell(api.Event{Type: api.BanStarted, Ban: &api.Ban{Rule: "r", Key: api.KeyOf(string(rune('a' + i)))}})
	}
	if len(m.reading.bans) != topBans {
		t.Errorf("%d bans are kept, want %d", len(m.reading.bans), topBans)
	}
	tell(api.Event{Type: api.BanEnded, Rule: "r", Key: m.reading.bans[0].Key})
	if len(m.reading.bans) != topBans-1 {
		t.Errorf("%d bans after one was ended", len(m.reading.bans))
	}
	tell(api.Event{Type: api.KeyHot, Rule: "product", Key: api.KeyOf("/product/42"), Until: cannedNow.Add(time.Hour)})
	if h := m.reading.hot; len(h) != 1 || h[0].Until != cannedNow.Add(time.Hour) {
		t.Errorf("hot keys %+v", h)
	}
	for range 3 * keptSeconds {
		tell(api.Event{Type: api.RatesTick, All: &api.Totals{Allowed: 5, Refused: 3, Banned: 1}})
	}
	if n := len(m.seconds); n != keptSeconds || m.seconds[n-1].Refused != 3 {
		t.Errorf("%d seconds are kept", n)
	}
	if len(*asked) > 0 {
		t.Errorf("requested %+v", *asked)
	}
	tell(api.Event{Type: api.RulesChanged})
	if len(*asked) != 1 || !(*asked)[0].whole {
		t.Errorf("other rules request %+v", *asked)
	}
}

// TestTopRepeatsFullReading requests a whole reading until one has arrived: otherwise there would be no rules to show if a
// key is pressed too early or the first reading fails.
func TestTopRepeatsFullReading(t *testing.T) {
	m := newTopModel("http://127.0.0.1:7380", topWant{span: time.Minute}, topPaint{})
	asked := asking(m)
	m.Update(topEvent{api.Event{Type: client.Connected}})
	keys(m, "4")
	m.Update(topRead{want: m.want, err: errors.New("too slow")})
	m.Update(topPoll{m.want.turn})
	for i, w := range *asked {
		if !w.whole {
			t.Errorf("question %d is %+v; want a whole reading", i, w)
		}
	}
	m.Update(topRead{m.want, &topReading{want: (*asked)[len(*asked)-1]}, nil})
	m.Update(topPoll{m.want.turn})
	if n := len(*asked); n != 4 || (*asked)[3].whole {
		t.Errorf("requested %+v; the last of four is not whole", *asked)
	}
}

// TestTopOldAnswers has answers that come after the wish has changed, and failures.
func TestTopOldAnswers(t *testing.T) {
	m := cannedModel(t, topPaint{}, 120, 40)
	asked := asking(m)
	shown := m.reading
	keys(m, "1")
	m.Update(topRead{reading: cannedReading(t, topWant{span: time.Minute})})
	m.Update(topRead{err: errors.New("old")})
	m.Update(topPoll{0})
	if m.reading != shown || m.unread != nil || len(*asked) != 1 {
		t.Errorf("an old answer is taken: requested %+v", *asked)
	}
	now := (*asked)[0]
	_, next := m.Update(topRead{want: now, err: errors.New("away")})
	if m.unread == nil || next == nil || m.reading != shown {
		t.Error("a failure is not shown, or ends the view")
	}
	m.Update(topPoll{now.turn})
	if len(*asked) != 2 {
		t.Error("a failure is not tried again")
	}
	now.span = time.Second
	m.Update(topRead{now, cannedReading(t, now), nil})
	if m.unread != nil || m.reading == shown || len(m.rules) != 5 {
		t.Error("the next answer is not taken, or takes the rules away")
	}
	// without a connection nothing is requested
	m.Update(topLost{errors.New("gone"), cannedNow.Add(-time.Minute)})
	m.Update(topLost{errors.New("still gone"), cannedNow})
	m.Update(topPoll{m.want.turn})
	if len(*asked) != 2 || m.live || m.lostAt != cannedNow.Add(-time.Minute) {
		t.Errorf("lost at %v, requested %+v", m.lostAt, *asked)
	}
	m.Update(topEvent{api.Event{Type: client.Connected}})
	if len(*asked) != 3 || !(*asked)[2].whole || !m.live {
		t.Errorf("a new connection requests %+v", *asked)
	}
}

// TestTopUnknownCounter has a counter that does not exist: a notice names it, and the rest of the view is shown.
func TestTopUnknownCounter(t *testing.T) {
	m := cannedModel(t, topPaint{}, 120, 40)
	m.reading.want.counter = "nosuch"
	m.reading.choose()
	m.read(m.reading)
	if m.reading.counter != "" || m.notice != `counter "nosuch": must be requests, paths` {
		t.Errorf("counter %q, notice %q", m.reading.counter, m.notice)
	}
	fits(t, m.View().Content, 120, 40)
	keys(m, "c", "2", "tab", "down", "enter")
	fits(t, m.View().Content, 120, 40)
}
