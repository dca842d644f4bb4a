package httpapi

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/ratelimit"
)

const limitsText = `version: 1
limits:
  - {name: per-client, key: client, limit: 60 per 1m, when: {path: /**}}
  - {name: login, key: [client, user], limit: 5 per 10m, when: {path: /login}}
`

// TestListsInRedis judges lists in Redis: each in one round trip, since the proxy passes on no
// reply before it has seen all decisions; and answers what memory answers.
func TestListsInRedis(t *testing.T) {
	p := redistest.Own(t).Watch(t)
	client := p.Client(t)
	newServerOf := func(c engine.Config) *Server {
		c.Rules = parseRules(t, limitsText)
		e := must.Get(engine.New(c))(t)
		t.Cleanup(e.Close)
		return newServer(t, func(c *Config) { c.Engine = e })
	}
	memory := newServerOf(engine.Config{})
	redis := newServerOf(engine.Config{StoreTimeout: time.Minute, Store: func(set *ratelimit.Set, _ func(ratelimit.BanRecord), _ func(string, []string)) (store.Store[*ratelimit.Set, ratelimit.BanRecord], error) {
		s, err := latelyredis.New(latelyredis.NewConn(client), set, latelyredis.Config{})
		if err == nil {
			t.Cleanup(s.Close)
		}
		return s, err
	}})
	// Redis learns the scripts.
	post(redis, "/v1/check", `{"event":{"client":"192.0.2.1","path":"/login","user":"ada"}}`)
	post(redis, "/v1/take", `{"rule":"per-client","key":"192.0.2.1"}`)
	post(redis, "/v1/peek", `{"rule":"per-client","key":"192.0.2.1"}`)

	var events, takes strings.Builder
	for i := range 100 {
		fmt.Fprintf(&events, `{"event":{"client":"203.0.113.%d","path":"/"}},`, i)
		fmt.Fprintf(&takes, `{"rule":"per-client","key":"198.51.100.%d","cost":2},`, i)
	}
	wrong := `{"rule":"none","key":"a"},{"rule":"login","key":"a"},`
	for _, x := range []struct {
		path, body string
		scripts    int // 7 for some 100 keys: latelyredis takes 16 in one
	}{
		{"/v1/check", `{"events":[` + events.String() + `{"event":{"client":"203.0.113.1","path":"/","nosuch":"x"}}]}`, 7},
		{"/v1/check", `{"events":[` + events.String() + `{"event":{"client":"203.0.113.1"},"cost":0}]}`, 7},
		{"/v1/take", `{"takes":[` + wrong + takes.String() + wrong + `{"rule":"per-client","key":"198.51.100.200"}]}`, 7},
		{"/v1/peek", `{"takes":[` + wrong + takes.String() + `{"rule":"per-client","key":"198.51.100.200"}]}`, 7},
		{"/v1/take", `{"rule":"per-client","key":"198.51.100.7"}`, 1},
	} {
		before := p.Scripts()
		p.Hold(x.scripts)
		got, want := post(redis, x.path, x.body), post(memory, x.path, x.body)
		p.Release()
		if got.Code != want.Code || untimed(got.Body.String()) != untimed(want.Body.String()) {
			t.Errorf("%s %.200s\n answers   %d %.500s\n in memory %d %.500s", x.path, x.body, got.Code, got.Body, want.Code, want.Body)
		}
		if n := p.Scripts() - before; n != x.scripts {
			t.Errorf("%s %.100s: %d scripts, want %d", x.path, x.body, n, x.scripts)
		}
	}
}

var times = regexp.MustCompile(`_ms":[0-9]+`)

// untimed returns an answer with its times left out.
func untimed(answer string) string { return times.ReplaceAllString(answer, `_ms":0`) }
