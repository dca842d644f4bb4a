package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// secretMark is in each value of a hashed field of these tests.
const secretMark = "S3CRET"

const hashedRules = `version: 1
fields:
  api_key: {header: X-API-Key, hash: true, trusted: true}
  session: {cookie: sid, hash: true, trusted: true}
  token: {bearer: true, hash: true}
  page: {query: k, hash: true}
  account: {hash: true}
  user: {hash: true}
counters:
  by-key: {key: api_key, spans: 1m}
limits:
  - {name: per-key, key: api_key, limit: 2 per 1h, ban: {after: 1 refusals in 1h, for: 1h}}
  - {name: either, key: "api_key | client", limit: 3 per 1h}
  - {name: pair, key: [client, session], limit: 1 per 1h}
  - {name: per-token, key: token, limit: 1 per 1h}
  - {name: per-page, key: page, limit: 1 per 1h}
  - {name: per-account, key: account, limit: 1 per 1h}
  - {name: uploads, key: api_key, limit: 2 at once for 1h, algorithm: in-flight, when: {path: /upload}}
  - {name: planned, key: api_key, limit: {by: api_key, plans: plans.txt, default: 50 per 1h, at_most: 100 per 1h}}
bans:
  - {name: flood, key: session, after: 3 hits in 1h, for: 1h}
  - {name: failed, key: api_key, when: {status: 401}, after: 1 hits in 1h, for: 1h}
  - {name: guessing, key: client, after: 2 distinct user in 1h, for: 1h}
hot:
  - {name: pages, key: path, threshold: 2 per 1m}
`

// A leakTest is a server that received secrets in every way, and all its output.
type leakTest struct {
	*node
	mu    sync.Mutex
	sinks map[string]*bytes.Buffer
	hook  sink
	data  string
}

func (l *leakTest) told(sink, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sinks[sink] == nil {
		l.sinks[sink] = new(bytes.Buffer)
	}
	l.sinks[sink].WriteString(text + "\n")
}

// newLeakTest starts a server with every output, and with a store unless that is "".
func newLeakTest(t *testing.T, rules, store, log string) *leakTest {
	l := &leakTest{sinks: map[string]*bytes.Buffer{}, data: t.TempDir()}
	receiver := httptest.NewServer(&l.hook)
	t.Cleanup(receiver.Close)
	key := filepath.Join(t.TempDir(), "key")
	must.Do(t, os.WriteFile(key, []byte("a key of tests, and of no server"), 0o600))
	l.node = newNode(t, store, func(c *Config) {
		plans := "k-" + secretMark + "-planned 60\nother-" + secretMark + " 70\n"
		must.Do(t, errors.Join(os.WriteFile(c.RulesFiles[0], []byte(rules), 0o600),
			os.WriteFile(filepath.Join(filepath.Dir(c.RulesFiles[0]), "plans.txt"), []byte(plans), 0o600)))
		c.Data, c.KeepEvents, c.SnapshotEvery = l.data, 1<<20, time.Second
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Enforce.DenyFile.Path = filepath.Join(l.data, "deny")
		c.Enforce.Webhook = enforce.Webhook{URL: receiver.URL, SecretFile: key}
		if c.Store == "" {
			c.StoreTimeout = 0
			c.Follow, c.Lateness = []follow.Log{{Path: log}}, time.Hour // so that events wait
		}
	})
	return l
}

// ask sends secrets in every way, and reads all answers.
func (l *leakTest) ask(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	events := must.Get(http.NewRequestWithContext(ctx, "GET", l.url+"/v1/events", nil))(t)
	stream := must.Get(http.DefaultClient.Do(events))(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		text, _ := io.ReadAll(stream.Body)
		l.told("events", string(text))
	}()
	l.forward(t)
	l.outcomes(t)
	l.commands()
	l.calls(t)
	l.lists(t)
	time.Sleep(2 * time.Second) // for a snapshot and the webhook
	stop()
	<-ended
	stream.Body.Close()
	l.told("log", l.log.String())
	l.told("webhook", l.hook.String())
	must.Do(t, filepath.WalkDir(l.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		l.told("data", string(text))
		return err
	}))
}

func (l *leakTest) forward(t *testing.T) {
	for i := range 6 {
		r := must.Get(http.NewRequest("GET", l.url+"/v1/auth?outcome_ms=60000", nil))(t)
		r.Header = http.Header{
			"X-Forwarded-For": {"203.0.113.5"}, "X-Original-Uri": {"/x?a=1&%6b=" + secretMark + "page"}, "X-Api-Key": {secretMark + "key"},
			"Cookie": {"a=b; sid=" + secretMark + "sid"}, "Authorization": {"Bearer " + secretMark + "token"},
		}
		if i > 3 {
			r.Header.Set("Authorization", "Basic "+"UzNDUkVUYWRhOnB3") // S3CRETada:pw
			r.Header.Set("X-Api-Key", secretMark+strings.Repeat("x", 1000*i))
		}
		answer := must.Get(http.DefaultClient.Do(r))(t)
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		l.told("auth", fmt.Sprint(answer.StatusCode, answer.Header, string(text)))
	}
}

// outcomes reports answers by the ids of decisions, which the test decodes, and by the fields.
func (l *leakTest) outcomes(t *testing.T) {
	for i := range 3 {
		k := fmt.Sprint(secretMark, "answered", i, l.url[len(l.url)-5:]) // other servers share the store
		lines := strings.Split(l.resp("CHECK api_key "+k+" account "+k+" OUTCOME 60000"), "\r\n")
		id := lines[len(lines)-3] // before the answer to QUIT
		sealed, err := base64.RawURLEncoding.DecodeString(id)
		if err != nil || len(sealed) == 0 {
			t.Fatalf("the id of a decision is %q: %v", id, err)
		}
		l.told("resp", strings.Join(lines, " ")+string(sealed))
		l.told("resp", l.resp("OUTCOME "+id+" status 401 user "+k, "OUTCOME "+id+" status 401", "OUTCOME "+id+" status 401 token "+k, "OUTCOME api_key "+k+" status 401"))
		code, text := posted(t, l.url+"/v1/outcome", fmt.Sprintf(`{"event":{"api_key":%q,"status":"401","session":%q}}`, k, k))
		l.told("http", fmt.Sprint(code, text))
	}
	const draft = "version: 1\nfields: {api_key: {hash: true}}\nlimits: [{name: a, key: api_key, when: {status: 401}, limit: 1 per 1h}]\n"
	code, text := posted(t, l.url+"/v1/rules/try", fmt.Sprintf(`{"rules":%q,"field":"api_key"}`, draft))
	l.told("http", fmt.Sprint(code, text))
}

func (l *leakTest) commands() {
	k := secretMark + "resp"
	for _, line := range []string{
		"CHECK api_key " + k + " client 203.0.113.6 session " + k + " token " + k + " page " + k + " account " + k + " user " + k,
		"CHECK api_key " + k + " client 203.0.113.6 session " + k + " token " + k + " page " + k + " account " + k + " path /x?k=" + k,
		"CHECK api_key " + k + " session " + k + " client 203.0.113.6",
		"TAKE per-key " + k, "TAKE per-key " + k, "TAKE per-key " + k, "TAKE per-key " + k, "PEEK per-key " + k, "REFUND per-key " + k, "CHARGE per-key " + k + " COST 3",
		"RESERVE per-key " + k + "2", "TAKE either " + k, "TAKE either api_key:" + k, "TAKE pair " + k, `TAKE pair "203.0.113.6\t` + k + `"`, "RELEASE uploads " + k, "TAKE per-key " + k + " COST x",
		"TAKE nothing " + k, "RESET per-key " + k, "BAN per-key " + k + " 10m because", "UNBAN per-key " + k, "BAN per-key " + k + " 10m because", "UNBAN either " + k, "BAN either " + k + " 10m",
		"ADD by-key " + k + " 1", "SUM by-key " + k, "RATE by-key " + k, "TOP by-key 10", "BANS", "STATS", "INFO", "TAKE per-account " + k, "TAKE per-account " + k, "CHECK api_key", "RULES",
	} {
		l.told("resp", l.resp(line))
	}
}

func (l *leakTest) calls(t *testing.T) {
	k := secretMark + "http"
	for _, c := range [][2]string{
		{"check", `{"event":{"api_key":%q,"session":%q,"client":"203.0.113.7","token":%q,"page":%q}}`},
		{"check", `{"events":[{"event":{"api_key":%q,"session":%q}},{"event":{"api_key":%q,"account":%q}}]}`},
		{"take", `{"rule":"per-key","key":%q}`},
		{"take", `{"rule":"per-key","key":%q}`},
		{"take", `{"rule":"per-key","key":%q}`},
		{"take", `{"rule":"per-key","key":%q}`},
		{"take", `{"rule":"either","key":%q}`},
		{"take", `{"rule":"pair","key":["203.0.113.7",%q]}`},
		{"take", `{"rule":"pair","key":[%q]}`},
		{"peek", `{"rule":"per-key","key":%q}`},
		{"refund", `{"rule":"per-key","key":%q}`},
		{"reset", `{"rule":"per-key","key":%q}`},
		{"charge", `{"rule":"per-key","key":%q,"n":5}`},
		{"reserve", `{"rule":"per-key","key":%q}`},
		{"bans", `{"rule":"per-key","key":%q,"duration_ms":100000,"reason":"x"}`},
		{"bans/unban", `{"rule":"per-key","key":%q}`},
		{"counters/by-key/add", `{"key":%q,"n":3}`},
		{"hot", `{"rule":"pages","key":"/hot"}`},
		{"rules/try", `{"rules":"version: 1\nfields: {api_key: {hash: true}}\nlimits: [{name: a, key: api_key, limit: 1 per 1h}]\n","field":"api_key"}`},
	} {
		args := make([]any, strings.Count(c[1], "%q"))
		for i := range args {
			args[i] = k
		}
		code, text := posted(t, l.url+"/v1/"+c[0], fmt.Sprintf(c[1], args...))
		l.told("http", fmt.Sprint(code, text))
	}
}

func (l *leakTest) lists(t *testing.T) {
	value := url.QueryEscape(secretMark + "http")
	for _, path := range []string{
		"/v1/counters", "/v1/counters/by-key/top", "/v1/counters/by-key/sum?key=" + value, "/v1/key?field=api_key&value=" + value, "/v1/key?field=client&field=session&value=203.0.113.5&value=" + secretMark + "sid",
		"/v1/explain?key=" + value, "/v1/explain?key=" + secretMark + "nobody", "/v1/explain?key=203.0.113.5", "/v1/bans", "/v1/refused", "/v1/hot", "/v1/rates", "/v1/rules", "/v1/status", "/metrics", "/v1/decisions", "/openapi.json", "/",
	} {
		code, text := got(t, l.url+path)
		l.told("lists", fmt.Sprint(path[:min(12, len(path))], code, text))
	}
}

// leaks returns the outputs that have a secret.
func (l *leakTest) leaks() (names []string) {
	for name, text := range l.sinks {
		if i := strings.Index(text.String(), secretMark); i >= 0 {
			names = append(names, name+": "+text.String()[max(0, i-200):min(text.Len(), i+100)])
		}
	}
	return names
}

// TestHashedFieldsAreNowhere sends values of hashed fields on all ways, and looks for them in all outputs. The control has the same rules
// without hash: the values are then in these outputs.
func TestHashedFieldsAreNowhere(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "app.log")
	line := fmt.Sprintf(`{"time":%q,"client":"203.0.113.8","user":"%slog"}`, time.Now().UTC().Format(time.RFC3339), secretMark)
	must.Do(t, os.WriteFile(log, []byte(strings.Repeat(line+"\n", 3)), 0o600))
	l := newLeakTest(t, hashedRules, "", log)
	l.ask(t)
	for _, leak := range l.leaks() {
		t.Errorf("a secret is in %s", leak)
	}
	for _, name := range []string{"auth", "resp", "http", "lists", "events", "log", "data"} {
		if l.sinks[name] == nil || l.sinks[name].Len() < 100 {
			t.Errorf("there is nothing in %s", name)
		}
	}
	if !strings.Contains(l.sinks["lists"].String(), "hmac-") || !strings.Contains(l.sinks["data"].String(), "hmac-") {
		t.Error("the digests are in no list, or in no file")
	}
	control := newLeakTest(t, strings.NewReplacer(", hash: true", "", "{hash: true}", "{}", "  user: {}\n", "").Replace(hashedRules), "", log)
	control.ask(t)
	found := strings.Join(control.leaks(), "\n")
	for _, name := range []string{"resp: ", "http: ", "lists: ", "events: ", "log: ", "data: "} {
		if !strings.Contains("\n"+found, "\n"+name) {
			t.Errorf("the control finds no secret in %s of a server that does not hash", name)
		}
	}
}

// TestListedDigests copies a digest from a list: commands for people take it, and a client that sends it has another key.
func TestListedDigests(t *testing.T) {
	t.Parallel()
	l := newLeakTest(t, hashedRules, "", filepath.Join(t.TempDir(), "none"))
	take := "TAKE per-key " + secretMark
	for range 4 {
		l.resp(take)
	}
	digest := regexp.MustCompile("hmac-[a-z2-7]{26}").FindString(l.resp("BANS"))
	if digest == "" {
		t.Fatalf("no digest in the list of bans: %s", l.resp("BANS"))
	}
	if answer := l.resp("TAKE per-key " + digest); !strings.HasPrefix(answer, "*7\r\n:1\r\n") {
		t.Errorf("a client that sends the digest of another is taken for it: %s", answer)
	}
	for _, who := range []string{digest, secretMark} {
		if _, text := got(t, l.url+"/v1/explain?key="+who); !strings.Contains(text, `"rule":"per-key"`) {
			t.Errorf("explain of %s: %s", who, text)
		}
		if _, text := got(t, l.url+"/v1/key?field=api_key&value="+who); !strings.Contains(text, `"bans":[{"rule":"per-key","key":["`+digest) {
			t.Errorf("the report on %s: %s", who, text)
		}
	}
	if answer := l.resp("UNBAN per-key " + digest); !strings.HasPrefix(answer, ":1\r\n") {
		t.Errorf("unban by digest: %s", answer)
	}
	if answer := l.resp("RESET per-key "+digest, take); !strings.HasPrefix(answer, "+OK\r\n*7\r\n:1\r\n") {
		t.Errorf("reset by digest, and a request: %s", answer)
	}
	if answer := l.resp("BAN per-key "+secretMark+" 10m", "UNBAN per-key "+secretMark); !strings.HasPrefix(answer, "+OK\r\n:1\r\n") {
		t.Errorf("ban and unban by value: %s", answer)
	}
}

// TestHashedFieldsInStore does the same with two servers on a store: they agree on the digests, and the store is sent no value.
func TestHashedFieldsInStore(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	sent, stop := monitored(t, redis.Socket())
	inStore := strings.Replace(hashedRules, "2 distinct user", "2 hits", 1)
	one, other := newLeakTest(t, inStore, storeOf(redis), ""), newLeakTest(t, inStore, storeOf(redis), "")
	if a, b := one.take("per-account", secretMark+"shared"), other.take("per-account", secretMark+"shared"); !a || b {
		t.Errorf("one of a limit of 1 for two servers: %t and %t; want them to agree on the digest", a, b)
	}
	one.ask(t)
	other.ask(t)
	for _, l := range []*leakTest{one, other} {
		for _, leak := range l.leaks() {
			t.Errorf("a secret is in %s", leak)
		}
	}
	stop()
	if text := sent(); strings.Contains(text, secretMark) {
		i := strings.Index(text, secretMark)
		t.Errorf("the store was sent a secret: %s", text[max(0, i-200):min(len(text), i+100)])
	} else if !strings.Contains(text, "hmac-") {
		t.Error("the store was sent no digest")
	}
}

// monitored returns all commands that the Redis at a socket gets until stop is called.
func monitored(t *testing.T, socket string) (sent func() string, stop func()) {
	t.Helper()
	conn := must.Get(net.Dial("unix", socket))(t)
	must.Get(io.WriteString(conn, "MONITOR\r\n"))(t)
	var text bytes.Buffer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(&text, conn)
	}()
	return func() string { <-ended; return text.String() }, func() { conn.Close() }
}
