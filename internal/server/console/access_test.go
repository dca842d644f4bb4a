package console_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/browsertest"
)

var routes = []struct{ name, hash, ready string }{
	{"overview", "#/overview", `document.querySelectorAll('.tickrow').length && document.querySelectorAll('.rulerow').length && document.querySelectorAll('.refusedrow').length`},
	{"keys", "#/keys", `document.querySelectorAll('.toprow').length`},
	{"key", "#/key?field=client&value=203.0.113.77", `document.querySelectorAll('.windowcard').length === 4 && document.querySelectorAll('.keybanrow').length && document.querySelectorAll('.refusalrow').length`},
	{"bans", "#/bans", `document.querySelectorAll('tr.ban').length`},
	{"rules", "#/rules", `document.querySelectorAll('.rulecard').length > 4 && document.querySelector('textarea').value`},
	{"hot", "#/hot", `document.querySelectorAll('.hotline').length`},
}

// to goes to a route, and waits until its contents are shown.
func to(p *browsertest.Tab, name string) {
	i := slices.IndexFunc(routes, func(r struct{ name, hash, ready string }) bool { return r.name == name })
	p.JS(`location.hash = '`+routes[i].hash+`'`, nil)
	p.Wait(`document.querySelector('main').className === 'view-` + name + `' && ` + routes[i].ready)
}

// testAccessible looks at every view, dark on a desk and light on a phone; in its long
// form also the other way round.
func testAccessible(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	f.hostile()
	p := b.Open(t, f.URL, 1440, 900)
	p.Wait(`document.documentElement.dataset.link === 'live'`)
	for _, theme := range []string{"dark", "light"} {
		p.Media("prefers-color-scheme: "+theme, "prefers-reduced-motion: reduce")
		for _, size := range [][2]int{{1440, 900}, {360, 740}} {
			if (theme == "dark") != (size[0] > 1000) && os.Getenv("LATELY_LONG") == "" {
				continue
			}
			p.Size(size[0], size[1])
			for _, r := range routes {
				to(p, r.name)
				p.Wait(`document.querySelectorAll('nav[aria-label]').length === 1`)
				p.Accessible(fmt.Sprintf("%s, %s, %d wide", r.name, theme, size[0]))
			}
		}
	}
	p.Clean()
}

// testInspectFinds plants each fault, and checks that inspect finds it.
func testInspectFinds(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL, 1000, 700)
	to(p, "bans")
	p.JS(`(() => {
		const add = (tag, f) => { const e = document.createElement(tag); f(e); document.querySelector('main').append(e); };
		add('p', (e) => { e.textContent = 'pale'; e.style.color = '#888'; e.style.background = '#777'; });
		add('button', (e) => {});
		add('div', (e) => { e.id = 'main'; });
		add('h1', (e) => { e.textContent = 'Another'; });
		add('div', (e) => { e.style.width = '3000px'; e.style.height = '1px'; });
		add('p', (e) => { e.setAttribute('aria-describedby', 'nowhere'); });
	})()`, nil)
	found := strings.Join(p.Inspected(), "\n")
	for _, want := range []string{"contrast 1.", "no name: button", "id twice: main", "h1: 2 of them", "wide, the window", "no such id: nowhere", "tells no name of a button"} {
		if !strings.Contains(found, want) {
			t.Errorf("a planted fault is not found: %s\nfound:\n%s", want, found)
		}
	}
}
