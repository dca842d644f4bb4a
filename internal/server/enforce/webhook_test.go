package enforce

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
)

const secret = "a secret of tests, and of no server"

// A receiver is the other end of a webhook, which keeps the banned keys.
type receiver struct {
	t      *testing.T
	mu     sync.Mutex
	banned map[string]time.Time
	most   int // events in a request
	fail   int // requests that are yet to fail
	failed int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail > 0 {
		r.fail--
		r.failed++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(q.Body)
	var seconds int64
	var mac string
	if n, _ := fmt.Sscanf(strings.ReplaceAll(q.Header.Get("Lately-Signature"), ",", " "), "t=%d v1=%s", &seconds, &mac); n != 2 || err != nil {
		r.t.Errorf("the header is %v, %v", q.Header, err)
	}
	at := time.Unix(seconds, 0)
	if age := time.Since(at).Abs(); age > time.Hour || Sign([]byte(secret), at, body) != q.Header.Get(SignatureHeader) {
		r.t.Errorf("the signature %s is of another body, or was made %v ago", q.Header.Get(SignatureHeader), age)
	}
	var list api.EventList
	if err := json.Unmarshal(body, &list); err != nil || q.Header.Get("Content-Type") != "application/json" || q.Method != http.MethodPost {
		r.t.Errorf("%s of %v: %v", q.Method, q.Header, err)
	}
	r.most = max(r.most, len(list.Events))
	for _, ev := range list.Events {
		switch ev.Type {
		case api.BanStarted:
			r.banned[ev.Ban.Values()[0]] = ev.Ban.Until
		case api.BanEnded:
			delete(r.banned, ev.Values()[0])
		}
		if ev.Time.IsZero() {
			r.t.Errorf("an event without a time: %+v", ev)
		}
	}
}

// hooked returns an Enforcer that does not run, with a webhook, and the other end.
func hooked(t *testing.T) (*Enforcer, *receiver) {
	t.Helper()
	r := &receiver{t: t, banned: make(map[string]time.Time)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	c := config(t)
	c.Webhook = Webhook{URL: server.URL + "/bans", SecretFile: filepath.Join(t.TempDir(), "secret")}
	must.Do(t, os.WriteFile(c.Webhook.SecretFile, []byte(secret+"\n"), 0o600))
	e := must.Get(New(c))(t)
	return e, r
}

// want waits until what the receiver has is banned is these clients.
func (r *receiver) want(clients ...string) {
	r.t.Helper()
	eventually(r.t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		missing := len(r.banned) != len(clients)
		for _, c := range clients {
			missing = missing || r.banned[c].IsZero()
		}
		if missing {
			return fmt.Errorf("the receiver has %d clients, want %.200q", len(r.banned), clients)
		}
		return nil
	})
}

// A receiver that fails for a while has, after its recovery, what holds: in requests of at
// most 500 events, each with a signature.
func TestWebhook(t *testing.T) {
	e, r := hooked(t)
	var clients []string
	var bans []api.Ban
	for i := range 1200 {
		clients = append(clients, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
		bans = append(bans, banOf(clients[i], time.Hour))
	}
	r.fail = 2
	must.Do(t, e.Replace(all(bans...)))
	run(t, e)
	r.want(clients...)
	r.mu.Lock()
	if r.most != webhookBatch || r.failed != 2 {
		t.Errorf("a request has up to %d events, want %d; %d failed", r.most, webhookBatch, r.failed)
	}
	r.fail = 3
	r.mu.Unlock()
	for _, c := range clients[2:] {
		e.Remove("client", []string{c})
	}
	soon := banOf("192.0.2.1", 2*time.Second)
	e.Add(&soon)
	r.want(clients[:2]...)
	if s := e.Status().Targets[0]; s.Name != "webhook" || s.Failures != 5 || s.Dropped != 0 {
		t.Errorf("the status is %+v", s)
	}
}

// The signature is one that other programs compute: printf '1700000000.{}' | openssl dgst
// -sha256 -hmac secret.
func TestSign(t *testing.T) {
	const want = "t=1700000000,v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163"
	if got := Sign([]byte("secret"), time.Unix(1700000000, 0), []byte("{}")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A redirect is not followed, and a body that does not end is not read.
func TestWebhookHostile(t *testing.T) {
	for _, answer := range []http.HandlerFunc{
		func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "http://192.0.2.1/", http.StatusTemporaryRedirect)
		},
		func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			for range 1000 {
				_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<16))
			}
		},
	} {
		server := httptest.NewServer(answer)
		w := webhook{url: server.URL, now: time.Now, client: http.Client{Timeout: webhookTimeout, CheckRedirect: stay}}
		err := w.apply(context.Background(), false, networks(t, "192.0.2.1"))
		if err == nil || !strings.Contains(err.Error(), "must be 2xx") {
			t.Errorf("the error is %v", err)
		}
		server.Close()
	}
}

func TestWebhookConfig(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	must.Do(t, os.WriteFile(short, []byte("  too short  \n"), 0o600))
	for _, x := range []struct {
		Webhook
		want string
	}{
		{Webhook{URL: "https://example.org"}, "webhook and webhook-secret-file: one is missing"},
		{Webhook{SecretFile: short}, "webhook and webhook-secret-file: one is missing"},
		{Webhook{URL: "example.org/bans", SecretFile: short}, "webhook: must be a URL such as"},
		{Webhook{URL: "ftp://example.org/bans", SecretFile: short}, "webhook: must be a URL such as"},
		{Webhook{URL: "https://example.org", SecretFile: short}, "webhook-secret-file: a secret of 9 bytes: must be at least 16"},
		{Webhook{URL: "https://example.org", SecretFile: short + "-missing"}, "webhook-secret-file: "},
	} {
		c := config(t)
		c.Webhook = x.Webhook
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: the error is %v, want %s", x.Webhook, err, x.want)
		}
	}
}

// The URL of a webhook may have secrets: neither the status nor the log has them, whatever fails.
func TestWebhookSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(path, []byte(secret), 0o600))
	moved := httptest.NewServer(http.RedirectHandler("/hooks/path-secret", http.StatusFound))
	defer moved.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	hung := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}))
	defer hung.Close()
	for name, server := range map[string]string{"redirect": moved.URL, "refused": closed.URL, "closed": hung.URL, "no TLS": strings.Replace(moved.URL, "http:", "https:", 1)} {
		var log bytes.Buffer
		c := config(t)
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Webhook = Webhook{URL: strings.Replace(server, "://", "://user-secret:password-secret@", 1) + "/hooks/path-secret?token=query-secret", SecretFile: path}
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		b := banOf("192.0.2.1", time.Hour)
		e.Add(&b)
		r := e.runners[0]
		err = r.follow(t.Context())
		r.note(err)
		text := fmt.Sprintf("%v %+v %s", err, e.Status(), log.String())
		if err == nil || strings.Contains(strings.ReplaceAll(text, "secret-file", ""), "secret") {
			t.Errorf("%s: the error, status and log are %s", name, text)
		}
		if !strings.Contains(text, "webhook: ") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
