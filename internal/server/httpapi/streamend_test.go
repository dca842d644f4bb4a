package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

// A sink is the writer of an answer without a reader.
type sink struct {
	mu     sync.Mutex
	header http.Header
	text   bytes.Buffer
}

func (s *sink) Header() http.Header              { return s.header }
func (s *sink) WriteHeader(int)                  {}
func (s *sink) Flush()                           {}
func (s *sink) SetReadDeadline(time.Time) error  { return nil }
func (s *sink) SetWriteDeadline(time.Time) error { return nil }

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// otherTokens returns tokens; one of them, for reading, is in tokens too.
func otherTokens(t testing.TB) *access.Tokens {
	t.Helper()
	return must.Get(access.Parse(strings.NewReader("read "+readToken+"\n"), "tokens"))(t)
}

// A stream ends when what let its subscriber in does not any more, and not before.
func TestStreamEndsWithItsTokens(t *testing.T) {
	for _, x := range []struct {
		name    string
		open    bool // without tokens at first
		session bool // it logs in, as browsers do
		change  func(t *testing.T, s *Server, now *atomic.Pointer[access.Tokens], cookie string)
		stays   bool
	}{
		{name: "same tokens", stays: true, change: func(t *testing.T, _ *Server, now *atomic.Pointer[access.Tokens], _ string) { now.Store(tokens(t)) }},
		{name: "same tokens, session", session: true, stays: true, change: func(t *testing.T, _ *Server, now *atomic.Pointer[access.Tokens], _ string) { now.Store(tokens(t)) }},
		{name: "other tokens", change: func(t *testing.T, _ *Server, now *atomic.Pointer[access.Tokens], _ string) { now.Store(otherTokens(t)) }},
		{name: "other tokens, session", session: true, change: func(t *testing.T, _ *Server, now *atomic.Pointer[access.Tokens], _ string) { now.Store(otherTokens(t)) }},
		{name: "tokens where there were none", open: true, change: func(t *testing.T, _ *Server, now *atomic.Pointer[access.Tokens], _ string) { now.Store(tokens(t)) }},
		{name: "still none", open: true, stays: true, change: func(*testing.T, *Server, *atomic.Pointer[access.Tokens], string) {}},
		{name: "logout", session: true, change: func(t *testing.T, s *Server, _ *atomic.Pointer[access.Tokens], cookie string) {
			if w := ask(s, request{method: "POST", path: "/v1/logout", body: "{}", header: http.Header{"Cookie": {cookie}}}); w.Code != 200 {
				t.Errorf("logout: %d", w.Code)
			}
		}},
		{name: "session over", session: true, change: func(*testing.T, *Server, *atomic.Pointer[access.Tokens], string) {
			time.Sleep(sessionLife - time.Hour - time.Second) // in the second after which it ends
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now atomic.Pointer[access.Tokens]
				if !x.open {
					now.Store(tokens(t))
				}
				s := newServer(t, func(c *Config) { c.Tokens = now.Load })
				ctx, stop := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer stop()
				r := httptest.NewRequestWithContext(ctx, "GET", "/v1/events", nil)
				r.Host = "localhost"
				cookie := ""
				switch {
				case x.session:
					cookie, _, _ = strings.Cut(post(s, "/v1/login", `{"token":"`+readToken+`"}`).Header().Get("Set-Cookie"), ";")
					r.Header.Set("Cookie", cookie)
				case !x.open:
					r.Header.Set("Authorization", "Bearer "+readToken)
				}
				w, ended := &sink{header: http.Header{}}, make(chan struct{})
				go func() {
					s.ServeHTTP(w, r)
					close(ended)
				}()
				time.Sleep(time.Hour)
				if n := strings.Count(w.String(), "event: rates\n"); n < 3590 {
					t.Fatalf("within an hour it received the rates %d times\n%.500s", n, w.String())
				}
				x.change(t, s, &now, cookie)
				began := time.Now()
				select {
				case <-ended:
					if x.stays || time.Since(began) > time.Second {
						t.Errorf("it ends after %v", time.Since(began))
					}
				case <-time.After(time.Hour):
					if !x.stays {
						t.Error("an hour later it still receives rates")
					}
				}
			})
		})
	}
}
