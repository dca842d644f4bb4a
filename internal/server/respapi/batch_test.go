package respapi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// inRedis returns an engine of rules without bans, whose limits are in a Redis behind a proxy.
func inRedis(t testing.TB) (*engine.Engine, *redistest.Proxy) {
	t.Helper()
	p := redistest.Own(t).Watch(t)
	client := p.Client(t)
	e := must.Get(engine.New(engine.Config{
		Rules: withoutBans(t), StoreTimeout: time.Minute,
		Store: func(set *ratelimit.Set, _ func(ratelimit.BanRecord), _ func(string, []string)) (store.Store[*ratelimit.Set, ratelimit.BanRecord], error) {
			s, err := latelyredis.New(latelyredis.NewConn(client), set, latelyredis.Config{})
			if err == nil {
				t.Cleanup(s.Close)
			}
			return s, err
		},
	}))(t)
	t.Cleanup(e.Close)
	return e, p
}

// withoutBans returns the rules of the tests that a store in Redis keeps.
func withoutBans(t testing.TB) *rules.File {
	t.Helper()
	before, after, _ := strings.Cut(testRules, "bans:")
	_, hot, _ := strings.Cut(after, "hot:")
	return must.Get(rules.Parse("rules.yaml", []byte(before+"hot:"+hot)))(t)
}

// TestPipelineInRedis sends 100 TAKE in one write. The proxy passes on no reply before it has
// seen all of them: they take one round trip.
func TestPipelineInRedis(t *testing.T) {
	e, p := inRedis(t)
	c := start(t, Config{Engine: e}, true).dial()                   // a pipe, so that a write is a read
	c.want("TAKE per-client 192.0.2.1", "[1 1000000000 999999999…") // Redis receives the script
	var all []byte
	for i := range 100 {
		all = append(all, encode(fmt.Sprint("TAKE per-client 198.51.100.", i))...)
	}
	before := p.Scripts()
	const scripts = 7 // of 16 keys at most
	p.Hold(scripts)
	must.Get(c.conn.Write(all))(t)
	for i := range 100 {
		if got := c.next(); !strings.HasPrefix(got, "[1 1000000000 999999999 ") {
			t.Errorf("reply %d is %s", i, got)
		}
	}
	if n := p.Scripts() - before; n != scripts {
		t.Errorf("%d scripts, want %d", n, scripts)
	}
}

// TestMixedPipelineInRedis compares the replies to a pipeline of decisions, errors and other
// commands with those to the same commands one after the other, and with those of memory.
func TestMixedPipelineInRedis(t *testing.T) {
	lines := []string{
		"TAKE login ada", "PEEK login ada", "TAKE nosuch ada", "TAKE login ada COST 2", "TAKE login ada", "PING", "CHECK user bob client 192.0.2.1",
		"CHECK nosuch 1", "CHECK user bob COST 0", "PEEK pair a^b", "TAKE pair a^b", "TAKE pair a", "nosuch", "SUM requests 192.0.2.1", "TAKE login ada COST x",
		"TAKE pair a^b", "TAKE pair a^b", "MULTI", "TAKE login eve", "ECHO x", "TAKE login eve COST 9", "EXEC", "TAKE login bob COST 4", "REFUND login bob", "TAKE login bob",
		"*oops",
	}
	replies := func(e *engine.Engine, together bool) (all []string) {
		c := start(t, Config{Engine: e}, false).dial()
		var pipeline bytes.Buffer
		for _, line := range lines {
			command := encode(line)
			if line == "*oops" { // an error of the protocol, which closes the connection
				command = []byte("*oops\r\n")
			}
			pipeline.Write(command)
			if !together {
				c.conn.Write(command)
				all = append(all, untimed(c.next()))
			}
		}
		if together {
			c.conn.Write(pipeline.Bytes())
			for range lines {
				all = append(all, untimed(c.next()))
			}
		}
		c.wantEnd()
		return all
	}
	memory := must.Get(engine.New(engine.Config{Rules: withoutBans(t)}))(t)
	t.Cleanup(memory.Close)
	want := replies(memory, false)
	for _, together := range []bool{false, true} {
		e, _ := inRedis(t)
		got := replies(e, together)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("together %v: %s\n answers  %s\n in memory %s", together, lines[i], got[i], want[i])
			}
		}
	}
}

// untimed returns a reply with the times of decisions left out.
func untimed(reply string) string {
	words := strings.Fields(reply)
	for i, w := range words {
		if n, ok := resp.ParseInt([]byte(w)); ok && n > 1000 && n < 1_000_000_000_000 {
			words[i] = "…"
		}
	}
	return strings.Join(words, " ")
}
