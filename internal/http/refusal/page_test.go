package refusal

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

const pageText = "<!doctype html>\n<title>{{status}}</title>\n<p>{{ title }}<p>Try again in {{retry_after}} s. {not this} {{ nor this }}</p>"

func TestNewPage(t *testing.T) {
	for text, want := range map[string]string{
		"": "empty: must be an HTML page", " \n": "empty: must be", "a\n{{rule}}\n": "line 2: {{rule}}: must be {{retry_after}}, {{status}} or {{title}}", "{{}}": "line 1: {{}}: must be",
		pageText: "", "plain": "", "{{status}}{{status}}": "",
	} {
		if _, err := NewPage(text); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	page := must.Get(NewPage(pageText))(t)
	odd := &problem{status: 429, title: `<script>"&`}
	want := "x<!doctype html>\n<title>429</title>\n<p>&lt;script&gt;&#34;&amp;<p>Try again in 7 s. {not this} {{ nor this }}</p>"
	if got := string(page.append([]byte("x"), odd, []string{"7"})); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(page.append(nil, odd, nil)); !strings.Contains(got, "in  s.") {
		t.Errorf("without a time:\n%s", got)
	}
}

// Browsers prefer the page; programs do not, whatever they accept besides.
func TestPrefersPage(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8": true, // Firefox and Chrome
		"": false, "*/*": false, "text/*": false, "application/json": false, "application/json, text/plain, */*": false, // curl and fetch libraries
		"text/html;q=0.5, application/json": false, "text/html, application/json;q=0.9": true, "text/html;q=0": false, "TEXT/HTML ; Q=0.1": true,
		"text/html;q=two": false, "text/html;q=-1": false, "text/html;q=NaN": false, "text/html;level=1;q=0.3,application/problem+json;q=0.4": false, "application/xhtml+xml": true,
		",;q=,": false, "text/htmlx": false,
	} {
		if got := prefersPage(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("%q: %t; want %t", accept, got, want)
		}
	}
	if !prefersPage(http.Header{"Accept": {"*/*", "text/html"}}) || prefersPage(nil) {
		t.Error("several lines are not one list")
	}
}

func FuzzPrefersPage(f *testing.F) {
	f.Add("text/html;q=0.5, application/json;q=1")
	f.Add(",;q=;;=,text/html;Q=1")
	f.Fuzz(func(t *testing.T, accept string) {
		if prefersPage(http.Header{"Accept": {accept}}) && !strings.Contains(strings.ToLower(accept), "html") {
			t.Errorf("%q asks for HTML", accept)
		}
	})
}
