package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/http/refusal"
	"github.com/lately-go/lately/internal/test/must"
)

const refusalPage = "<!doctype html>\n<title>{{status}}</title>\n<style>p { color: red }</style>\n<p>{{title}}: try again in {{retry_after}} s, \"then\".</p>\n"

// startPaged is start for a server with a page for refusals.
func startPaged(t *testing.T, p *proxied) {
	t.Helper()
	page := must.Get(refusal.NewPage(refusalPage))(t)
	p.s.config.RefusalPage = func() *refusal.Page { return page }
}

// refusals checks that a refused browser gets the page with that title, and another client a problem document.
func (p *proxied) refusals(title string) {
	p.t.Helper()
	c := from(p.t, "127.0.0.26")
	for range 60 {
		p.send(c, "GET", "/page", "", nil)
	}
	for _, want := range []struct{ accept, media, body string }{
		{"text/html,application/xhtml+xml,*/*;q=0.8", "text/html", ""},
		{"*/*", "application/problem+json", `,"status":429`},
		{"application/json, text/html;q=0.1", "application/problem+json", `,"status":429`},
	} {
		if title == "Too Many Requests" && strings.Contains(want.accept, "0.1") {
			continue // nginx does not compare weights
		}
		w, body := p.send(c, "GET", "/page?q", "", http.Header{"Accept": {want.accept}})
		p.wantRefusal(w, "per-client", want.accept)
		if want.body == "" {
			want.body = "<title>429</title>\n<style>p { color: red }</style>\n<p>" + title + ": try again in " + w.Header.Get("Retry-After") + " s, \"then\".</p>\n"
		}
		if media, _, _ := strings.Cut(w.Header.Get("Content-Type"), ";"); media != want.media || !strings.Contains(body, want.body) {
			p.t.Errorf("Accept %q: %s\n%s\nwant %s\n%s", want.accept, media, body, want.media, want.body)
		}
		if w.Header.Get("Content-Security-Policy") != "" && want.media == "text/html" {
			p.t.Errorf("the page has the policy %q, which forbids its style", w.Header.Get("Content-Security-Policy"))
		}
	}
}

// Behind real proxies, with the documented lines.
func TestRefusalPages(t *testing.T) {
	const title = "Request cannot be satisfied as assigned quota has been exceeded"
	for name, start := range map[string]startProxy{"Caddy": startCaddy, "HAProxy": startHAProxy, "Traefik": startTraefik} {
		t.Run(name, func(t *testing.T) {
			p := behind(t, start, "")
			startPaged(t, p)
			p.refusals(title)
		})
	}
	t.Run("nginx", func(t *testing.T) {
		start := func(t *testing.T, wait timeouts, app, lately, token string, change ...string) string {
			dir := socketDir(t)
			write(t, dir, "refused.html", refusalPage)
			page := snippetOf(t, "nginx", "A body of your own", 0, "/lately/", "/", "root /etc/nginx;", "root "+dir+";")
			answer := snippetOf(t, "nginx", "A body of your own", 1, "/lately/", "/")
			return startNginx(t, wait, app, lately, token, append(change, "        return 429;\n", answer, "    location @lately_refused {", page+"    location @lately_refused {")...)
		}
		behind(t, start, "").refusals("Too Many Requests")
	})
}
