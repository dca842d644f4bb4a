package httpapi

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/eventlist"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestFeed judges the events of a follower at their own times, for the clients that the server's
// trusted proxies name.
func TestFeed(t *testing.T) {
	e := must.Get(engine.New(engine.Config{Rules: parseRules(t, `version: 1
bans:
  - {name: flood, key: client, after: 2 hits in 1m, for: 1h}
`)}))(t)
	t.Cleanup(e.Close)
	s := newServer(t, func(c *Config) {
		c.Engine = e
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
	send := func(path string, in, out any) {
		t.Helper()
		text := must.Get(json.Marshal(in))(t)
		w := ask(s, request{method: "POST", path: path, body: string(text)})
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil || w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body, err)
		}
	}
	var feed api.Feed
	send("/v1/feeds/open", api.FeedOpening{Feed: "web-1", Process: "p"}, &feed)
	at := time.Now().Add(-30 * time.Minute).Truncate(time.Second)
	var events []byte
	for i := range 5 {
		var ev match.Event
		ev.Set(match.Client, []byte("10.0.0.1"))
		ev.SetNamed("x_forwarded_for", []byte("203.0.113.9"))
		ev.SetNamed("user_agent", []byte("\xff"))
		events = eventlist.Append(events, at.Add(time.Duration(i)*time.Second), &ev)
	}
	batch := api.FeedBatch{Feed: "web-1", Session: feed.Session, Number: 1, Events: events, State: []byte("s"), Logs: []api.FollowedLog{{File: "/l", Lines: 5}}}
	var result api.FeedResult
	send("/v1/feeds/events", batch, &result)
	if result != (api.FeedResult{Events: 5, Refused: 3, Bans: 1}) {
		t.Errorf("%+v", result)
	}
	var bans api.BanPage
	if w := ask(s, request{method: "GET", path: "/v1/bans"}); json.Unmarshal(w.Body.Bytes(), &bans) != nil || len(bans.Bans) != 1 ||
		bans.Bans[0].Values()[0] != "203.0.113.9" || !bans.Bans[0].Until.Equal(at.Add(2*time.Second+time.Hour)) {
		t.Errorf("the bans are %s", w.Body)
	}
	if w := ask(s, request{method: "GET", path: "/metrics"}); !strings.Contains(w.Body.String(), `lately_log_lines_total{file="web-1:/l"} 5`) {
		t.Errorf("the metrics lack the log of the feed:\n%s", w.Body)
	}
	send("/v1/feeds/open", api.FeedOpening{Feed: "web-1", Process: "q"}, &feed)
	if string(feed.State) != "s" {
		t.Errorf("the state is %q", feed.State)
	}

	// Events that wait are counted when they are judged.
	batch.Session, batch.Until = feed.Session, at.Add(time.Second)
	send("/v1/feeds/events", batch, &result)
	if result.Events != 2 {
		t.Errorf("%+v", result)
	}
	batch.Number, batch.Until, batch.Events = 2, at.Add(time.Minute), nil
	send("/v1/feeds/events", batch, &result)
	if result.Events != 3 {
		t.Errorf("%+v", result)
	}
}
