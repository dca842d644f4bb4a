package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

const sharedRules = `version: 1
limits:
  - {name: shared, key: client, limit: 4 per 1h}
  - {name: closed, key: user, limit: 4 per 1h, on_store_failure: closed}
`

// A node is a server with its limits in Redis.
type node struct {
	*Server
	t     *testing.T
	url   string
	rules string // the path of the file
	log   *safeBuffer
}

// slowStore ends the URL of a store on a busy machine.
const slowStore = "?dial_timeout=1m&write_timeout=1m"

func storeOf(redis *redistest.Server) string { return "unix://" + redis.Socket() + slowStore }

// newNode starts a server that shares limits in the store of that URL.
func newNode(t *testing.T, store string, change ...func(*Config)) *node {
	t.Helper()
	n := &node{t: t, rules: filepath.Join(t.TempDir(), "rules.yaml"), log: new(safeBuffer)}
	n.write(sharedRules)
	c := Config{
		RESP: "127.0.0.1:0", HTTP: "127.0.0.1:0", RulesFiles: []string{n.rules}, RulesPoll: -1, ShutdownDelay: -1, Store: store, StoreTimeout: 10 * time.Second,
	}
	for _, f := range change {
		f(&c)
	}
	n.Server, n.url = startedWith(t, c, slog.New(slog.NewTextHandler(n.log, nil)))
	return n
}

func (n *node) write(rules string) {
	n.t.Helper()
	must.Do(n.t, os.WriteFile(n.rules, []byte(rules), 0o600))
}

// resp returns the answers to lines that are sent together.
func (n *node) resp(lines ...string) string {
	n.t.Helper()
	addr, _ := n.Addresses()
	conn := must.Get(net.Dial("tcp", addr))(n.t)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute)) // a server that does not answer
	fmt.Fprint(conn, strings.Join(append(lines, "QUIT", ""), "\r\n"))
	text := must.Get(io.ReadAll(bufio.NewReader(conn)))(n.t)
	return string(text)
}

// take takes once of a rule over HTTP, and reports whether that was allowed.
func (n *node) take(rule, key string) bool {
	n.t.Helper()
	code, text := posted(n.t, n.url+"/v1/take", fmt.Sprintf(`{"rule":%q,"key":%q}`, rule, key))
	var d api.Decision
	if err := json.Unmarshal([]byte(text), &d); err != nil || code != 200 {
		n.t.Fatalf("%d %s: %v", code, text, err)
	}
	return d.Allowed
}

// store returns the state of the store as reported by n.
func (n *node) state() api.StoreStatus {
	n.t.Helper()
	_, text := got(n.t, n.url+"/v1/status")
	var s api.Status
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.Store == nil {
		n.t.Fatalf("%s: %v", text, err)
	}
	return *s.Store
}

func (n *node) wantReady(want int) {
	n.t.Helper()
	eventually(n.t, fmt.Sprint("/readyz ", want), func() bool {
		code, _ := got(n.t, n.url+"/readyz")
		return code == want
	})
}

// TestServersShareLimits takes over RESP from one server and over HTTP from another: both together have one limit. They
// report whether they enforce the same rules.
func TestServersShareLimits(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	a, b := newNode(t, storeOf(redis)), newNode(t, storeOf(redis))
	a.wantReady(200)
	b.wantReady(200)
	if text := a.resp("TAKE shared 192.0.2.1", "TAKE shared 192.0.2.1"); strings.Count(text, "*7\r\n:1\r\n:4\r\n") != 2 {
		t.Errorf("two are allowed over RESP: %q", text)
	}
	for i, want := range []bool{true, true, false} {
		if got := b.take("shared", "192.0.2.1"); got != want {
			t.Errorf("decision %d over HTTP: allowed %v, want %v", i, got, want)
		}
	}
	if text := a.resp("TAKE shared 192.0.2.1"); !strings.HasPrefix(text, "*7\r\n:0\r\n:4\r\n:0\r\n") {
		t.Errorf("the fifth over RESP: %q", text)
	}
	// A busy machine may take longer to answer a beat than it has.
	eventually(t, "INFO has the store up", func() bool { return strings.Contains(a.resp("INFO store"), "store_up:1\r\n") })
	eventually(t, "two nodes with the same rules", func() bool {
		x, y := a.state(), b.state()
		return x.Nodes == 2 && y.Nodes == 2 && x.OtherRules+y.OtherRules == 0 && x.RulesHash == y.RulesHash && x.Up && x.Failures == 0
	})
	b.write(strings.Replace(sharedRules, "4 per 1h", "5 per 1h", 1))
	must.Do(t, b.Reload())
	if !b.take("shared", "192.0.2.1") || b.take("shared", "192.0.2.1") {
		t.Error("after a reload the limit is 5, and 4 are used")
	}
	eventually(t, "two nodes with other rules", func() bool { return a.state().OtherRules == 1 && b.state().OtherRules == 1 })
	for _, want := range []string{"lately_store_up 1", "lately_store_nodes 2", "lately_store_nodes_other_rules 1", "lately_store_failures_total 0"} {
		eventually(t, "metrics have "+want, func() bool {
			_, text := got(t, a.url+"/metrics")
			return strings.Contains(text, "\n"+want+"\n")
		})
	}
}

// TestStoreDies kills Redis under a server, and starts another. Meanwhile OnStoreFailure of each rule decides, and the
// server is not ready.
func TestStoreDies(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	n := newNode(t, storeOf(redis))
	n.wantReady(200)
	if !n.take("closed", "ada") {
		t.Error("refused in an empty Redis")
	}
	redis.Kill()
	for range 25 { // calls fail at once after 20
		if n.take("closed", "ada") {
			t.Error("a rule with on_store_failure: closed allows without its store")
		}
	}
	if code, _ := got(t, n.url+"/readyz"); code != 503 {
		t.Errorf("/readyz is %d while no call is sent", code)
	}
	for i := range 5 {
		if got, want := n.take("shared", "192.0.2.1"), i < 4; got != want {
			t.Errorf("decision %d in local memory: allowed %v, want %v", i, got, want)
		}
	}
	n.wantReady(503)
	if s := n.state(); s.Up || s.Error == "" || s.Failures < 6 {
		t.Errorf("the state without Redis: %+v", s)
	}
	eventually(t, "the log says that the store is down", func() bool { return strings.Contains(n.log.String(), "the store of limits is down") })
	must.Do(t, redis.Run())
	if n.wantReady(200); !n.take("closed", "ada") {
		t.Error("the server is ready, and Redis, which is back, does not decide")
	}
	if text := n.log.String(); strings.Count(text, "the store of limits is up") < 2 {
		t.Errorf("no line in the log:\n%s", text)
	}
}

// TestStartWithoutStore starts a server before its Redis.
func TestStartWithoutStore(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	redis.Kill()
	n := newNode(t, storeOf(redis))
	n.wantReady(503)
	if n.take("closed", "ada") || !n.take("shared", "192.0.2.1") {
		t.Error("without a store, closed is allowed or local is refused")
	}
	if text := n.resp("BAN shared 192.0.2.1 1h", "REFUND shared 192.0.2.1"); strings.Count(text, "-OVERLOAD the store of limits failed: ") != 2 {
		t.Errorf("commands without a store answer %q", text)
	}
	for _, path := range []string{"/v1/bans", "/v1/key?field=client&value=192.0.2.1"} {
		r := must.Get(http.Get(n.url + path))(t)
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "the store of limits failed") {
			t.Errorf("GET %s without a store: %d %s (%v), want 503 and the reason", path, r.StatusCode, body, err)
		}
	}
	n.write(strings.Replace(sharedRules, "4 per 1h", "1 per 1h", 1))
	must.Do(t, n.Reload())
	must.Do(t, redis.Run())
	n.wantReady(200)
	if !n.take("closed", "ada") || !n.take("shared", "192.0.2.7") || n.take("shared", "192.0.2.7") {
		t.Error("Redis does not decide by the rules of the reload")
	}
}

// TestStoreBatched has servers allow by themselves: many commands take fewer scripts, and the counts reach another server.
func TestStoreBatched(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	p := redis.Watch(t)
	batched := func(c *Config) { c.StoreBatched = true }
	left, right := newNode(t, "redis://"+p.Addr, batched), newNode(t, "unix://"+redis.Socket())
	for _, n := range []*node{left, right} {
		n.write("version: 1\nlimits:\n  - {name: many, key: client, limit: 60000 per 1h}\n")
		must.Do(t, n.Reload())
	}
	eventually(t, "200 commands take fewer than 10 scripts", func() bool {
		before := p.Scripts()
		left.resp(slices.Repeat([]string{"TAKE many 192.0.2.7"}, 200)...)
		return p.Scripts()-before < 10 // without batches: 13
	})
	eventually(t, "the other server knows of them", func() bool {
		_, text := posted(t, right.url+"/v1/take", `{"rule":"many","key":"192.0.2.7"}`)
		var d api.Decision
		return json.Unmarshal([]byte(text), &d) == nil && d.Remaining < 60000-200
	})
}

// TestStoreEvicts starts with a Redis that evicts keys: the log and the state report it until it no longer does.
func TestStoreEvicts(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	n := newNode(t, storeOf(redis))
	n.wantReady(200)
	const want = "maxmemory-policy: allkeys-lru: must be noeviction"
	eventually(t, "the state warns", func() bool { return strings.Contains(n.state().Warning, want) })
	if text := n.log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, want) {
		t.Errorf("the log does not warn:\n%s", text)
	}
	other := newNode(t, storeOf(redistest.Own(t)))
	other.wantReady(200)
	if s := other.state(); s.Warning != "" {
		t.Errorf("a warning about noeviction: %q", s.Warning)
	}
}

// TestStoreUser uses the ACL user of the documentation, and a wrong password, which is in no
// log and no answer.
func TestStoreUser(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/redis.md"))(t)
	redis := redistest.Own(t)
	client := redis.Client(t)
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "ACL ") {
			must.Do(t, client.Do(t.Context(), client.B().Arbitrary(strings.Fields(line)...).Build()).Error())
		}
	}
	right := newNode(t, strings.Replace(storeOf(redis), "//", "//lately:password@", 1), func(c *Config) { c.StorePrefix = "lately:" })
	right.wantReady(200)
	if !right.take("closed", "ada") || !right.state().Up || right.state().Failures > 0 {
		t.Errorf("the documented user: %+v\n%s", right.state(), right.log)
	}
	wrong := newNode(t, strings.Replace(storeOf(redis), "//", "//lately:hunter2@", 1))
	wrong.wantReady(503)
	_, status := got(t, wrong.url+"/v1/status")
	_, metrics := got(t, wrong.url+"/metrics")
	if !strings.Contains(status, "WRONGPASS") || !strings.Contains(wrong.log.String(), "WRONGPASS") {
		t.Errorf("a wrong password: %s\n%s", status, wrong.log)
	}
	if all := status + metrics + wrong.log.String() + wrong.resp("INFO"); strings.Contains(all, "hunter2") {
		t.Error("the password is shown")
	}
}

// TestStoreRules starts with rules that the store cannot keep.
func TestStoreRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	text := sharedRules + "  - name: moving\n    key: client\n    limit: 100 per 1m\n    adapt: {steps: [200 below 1000 per 1s], above: 50}\n"
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := New(Config{RESP: "127.0.0.1:0", HTTP: Off, RulesFiles: []string{path}, Store: "unix:///nowhere"}, "test", nil)
	if want := path + `:5:11: rule "moving": adapt: `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
}

// TestStoreSettings names the error in the settings of the store, and shows no password.
func TestStoreSettings(t *testing.T) {
	for _, x := range []struct {
		c    Config
		want string
	}{
		{Config{Store: "redis://u:pa/ss@host"}, "store: must be the URL of Redis or Valkey"},
		{Config{Store: "http://u:ss@host"}, "store: must be the URL"},
		{Config{StorePrefix: "x:"}, "store: missing"},
		{Config{StoreBatched: true}, "store: missing"},
		{Config{StoreNodes: 3}, "store: missing"},
		{Config{Store: "redis://h", StoreCA: "f"}, "store-ca and store-cert: set for a store without TLS"},
		{Config{Store: "rediss://h", StoreCert: "f"}, "store-cert and store-key: one is missing"},
		{Config{Store: "redis://h", StorePrefix: "{a}"}, "store-prefix: "},
	} {
		if err := x.c.Validate(); err == nil || !strings.HasPrefix(err.Error(), x.want) || strings.Contains(err.Error(), "ss@") {
			t.Errorf("%+v: %v; want %s", x.c, err, x.want)
		}
	}
	var c Config
	for _, s := range c.Settings() {
		if s.Name != "store" {
			continue
		}
		if err := s.SetText("redis://u:pa/ss@host"); err == nil || strings.Contains(err.Error(), "ss@") {
			t.Errorf("the flag: %v", err)
		}
	}
	if err := ReadSettings(new(Config), "lately.yaml", []byte("store: redis://u:pa/ss@host\n")); err == nil || strings.Contains(err.Error(), "ss@") {
		t.Errorf("the settings file: %v", err)
	}
}

// TestStoreNodes starts servers while Redis is away: together they allow a limit, not one each.
func TestStoreNodes(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	redis.Kill()
	allowed := 0
	for range 3 {
		n := newNode(t, storeOf(redis), func(c *Config) {
			c.StoreNodes = 3
			rewrite(t, c, "version: 1\nlimits:\n  - {name: shared, key: client, limit: 12 per 1h}\n")
		})
		for range 20 {
			if n.take("shared", "192.0.2.1") {
				allowed++
			}
		}
	}
	if allowed != 12 {
		t.Errorf("three servers that started without their store allow %d, want 12", allowed)
	}
}
