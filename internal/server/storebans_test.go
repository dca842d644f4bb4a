package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/events"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

const banRules = `version: 1
bans:
  - {name: flood, key: client, after: 2 hits in 1m, for: 1h}
`

// TestStoreBans begins a ban by a rule on one of two servers: the other receives it, lists it in each of its listeners, and
// bans, unbans and ends as before.
func TestStoreBans(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	a := newNode(t, storeOf(redis), func(c *Config) { rewrite(t, c, banRules) })
	b := &node{t: t, log: new(safeBuffer)}
	config := a.config
	config.ShutdownDelay = -1
	server := must.Get(New(config, "test", slog.New(slog.NewTextHandler(b.log, nil))))(t)
	_, addr := server.Addresses()
	b.Server, b.url = server, "http://"+addr
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the server does not end")
		}
	})
	a.wantReady(200)
	b.wantReady(200)

	a.resp("TAKE flood 192.0.2.1", "TAKE flood 192.0.2.1", "TAKE flood 192.0.2.1")
	for _, n := range []*node{a, b} {
		eventually(t, "BANS lists the ban of the rule", func() bool { return strings.Contains(n.resp("BANS"), "192.0.2.1") })
	}
	if text := b.resp("BAN flood 192.0.2.2 1h seen", "BANS COUNT 1"); !strings.HasPrefix(text, "+OK\r\n*1\r\n") || !strings.Contains(text, "192.0.2.2") {
		t.Errorf("BAN, and BANS right after it: %q", text)
	}
	for _, n := range []*node{a, b} {
		eventually(t, "/v1/bans lists both bans", func() bool { return n.bans("").Total == 2 })
		if page := n.bans("q=seen"); page.Total != 1 || len(page.Bans) != 1 || page.Bans[0].Reason != "seen" || page.Bans[0].Source != "resp" {
			t.Errorf("the ban by hand is listed as %+v", page)
		}
		first := n.bans("limit=1")
		second := n.bans("limit=1&cursor=" + url.QueryEscape(first.Next))
		if len(first.Bans) != 1 || len(second.Bans) != 1 || first.Bans[0].Source == second.Bans[0].Source || second.Next != "" {
			t.Errorf("pages of one: %+v and %+v", first, second)
		}
	}
	if _, text := got(t, b.url+"/v1/key?field=client&value=192.0.2.1"); !strings.Contains(text, `"reason":"more than 2 hits in 1m"`) {
		t.Errorf("/v1/key of a banned client: %s", text)
	}
	if text := b.resp("UNBAN flood 192.0.2.1", "BANS"); !strings.HasPrefix(text, ":1\r\n*1\r\n") {
		t.Errorf("UNBAN, and BANS right after it: %q", text)
	}
	eventually(t, "the other server learns of the end", func() bool { return a.bans("").Total == 1 })
	if text := a.resp("UNBANALL PATTERN *"); !strings.HasPrefix(text, ":1\r\n") {
		t.Errorf("UNBANALL of the ban that another server has added: %q", text)
	}
	eventually(t, "no ban is left", func() bool { return b.bans("").Total == 0 })
}

// TestStoreBansNotReceived has Redis decide, and answer requests for the list of bans with an error, as with a changed ACL:
// the servers report it in /readyz, in their state and in a metric, and are ready when it is mended.
func TestStoreBansNotReceived(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	n := newNode(t, storeOf(redis))
	n.wantReady(200)
	age := func() (seconds float64) {
		_, text := got(t, n.url+"/metrics")
		_, text, _ = strings.Cut(text, "\nlately_store_sync_age_seconds ")
		if _, err := fmt.Sscan(text, &seconds); err != nil {
			t.Fatalf("no lately_store_sync_age_seconds: %v", err)
		}
		return seconds
	}
	eventually(t, "the age is small", func() bool { return age() < 5 })
	redis.Do(t, "DEL", "lately:{bans}:nodes")
	redis.Do(t, "SET", "lately:{bans}:nodes", "of another type")
	n.wantReady(503)
	_, text := got(t, n.url+"/readyz")
	if want := "store: the bans of all servers were last learned "; !strings.Contains(text, want) || strings.Contains(text, "WRONGTYPE") {
		t.Errorf("/readyz: %q, want %s", text, want)
	}
	if s := n.state(); s.Up || !strings.Contains(s.Error, "WRONGTYPE") || s.SyncAge < 5000 || age() < 5 {
		t.Errorf("the state without the list of bans: %+v", s)
	}
	if !n.take("closed", "ada") {
		t.Error("Redis does not decide")
	}
	redis.Do(t, "DEL", "lately:{bans}:nodes")
	n.wantReady(200)
	eventually(t, "the age is small again", func() bool { return age() < 5 })
}

// rewrite makes the rules file of c another.
func rewrite(t *testing.T, c *Config, text string) {
	t.Helper()
	(&node{t: t, rules: c.RulesFiles[0]}).write(text)
}

// bans returns the page of bans that a query selects.
func (n *node) bans(query string) (page api.BanPage) {
	n.t.Helper()
	code, text := got(n.t, n.url+"/v1/bans?"+query)
	if err := json.Unmarshal([]byte(text), &page); err != nil || code != 200 {
		n.t.Fatalf("/v1/bans?%s: %d %s", query, code, text)
	}
	return page
}

// TestStoreBansByHand bans and unbans by hand at one of two servers. Both publish it, to streams of events and to
// enforcement.
func TestStoreBansByHand(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	nodes := []*node{newNode(t, storeOf(redis)), newNode(t, storeOf(redis))}
	var published []*events.Subscription
	for _, n := range nodes {
		n.wantReady(200)
		sub := n.engine.Subscribe()
		defer sub.Close()
		published = append(published, sub)
	}
	steps := []struct {
		command, answer string
		published       api.EventType
	}{
		{"BAN shared 192.0.2.1 1h", "+OK", api.BanStarted},
		{"UNBAN shared 192.0.2.1", ":1", api.BanEnded},
	}
	for _, step := range steps {
		if text := nodes[0].resp(step.command); !strings.HasPrefix(text, step.answer) {
			t.Fatalf("%s answers %q", step.command, text)
		}
		for i, sub := range published {
			eventually(t, fmt.Sprintf("%s at server %d", step.published, i), func() bool {
				ev, ok := sub.Next()
				if !ok || ev.Type != step.published {
					return false
				}
				key := []string(nil)
				if ev.Ban != nil {
					key = ev.Ban.Values()
				} else {
					key = ev.Values()
				}
				return slices.Equal(key, []string{"192.0.2.1"})
			})
		}
	}
}
