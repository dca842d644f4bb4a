package server

import (
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// The page for refused browsers is read again at a reload, which fails if the page has a mistake.
func TestRefusalPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refused.html")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	c := deployed(t)
	c.TrustedProxies, c.RefusalPage = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, path
	for text, want := range map[string]string{"": "empty: must be an HTML page", "\n{{wait}}": "line 2: {{wait}}: must be {{retry_after}}", strings.Repeat("x", maxPage+1): "too long"} {
		write(text)
		if _, err := New(c, "test", nil); err == nil || !strings.HasPrefix(err.Error(), "refusal-page: "+path+": "+want) {
			t.Errorf("%.20q: %v; want %s", text, err, want)
		}
	}
	write("<p>first {{status}}</p>")
	s, url := started(t, c)
	refused := func() string {
		t.Helper()
		for {
			r := must.Get(http.NewRequest("GET", url+"/v1/auth", nil))(t)
			r.Header = http.Header{"X-Forwarded-For": {"192.0.2.1"}, "X-Original-Uri": {"/"}, "Accept": {"text/html"}}
			w := must.Get(http.DefaultClient.Do(r))(t)
			body, err := io.ReadAll(w.Body)
			w.Body.Close()
			if err != nil || w.StatusCode != 204 {
				return string(body)
			}
		}
	}
	if got := refused(); got != "<p>first 429</p>" {
		t.Errorf("the page is %q", got)
	}
	write("<p>second</p>")
	if err := s.Reload(); err != nil || refused() != "<p>second</p>" {
		t.Errorf("after a reload: %v, %q", err, refused())
	}
	write("<p>{{oops}}</p>")
	if err := s.Reload(); err == nil || refused() != "<p>second</p>" {
		t.Errorf("after a reload of a page with a mistake: %v, %q", err, refused())
	}
}
