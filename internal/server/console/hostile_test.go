package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/browsertest"
)

// testHostile shows the keys of strangers in every view: as text, with what hides
// or reorders text written out.
func testHostile(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	f.hostile()
	p := b.Open(t, f.URL, 1440, 900)
	p.Wait(isLive)
	harmless := func(where string) {
		t.Helper()
		var bad []string
		p.JS(`(() => {
			const bad = [];
			if (window.owned) bad.push('a key ran as code');
			for (const e of document.querySelectorAll('main img, main script, main i i, main iframe, dialog img')) bad.push('a key became ' + e.outerHTML.slice(0, 80));
			const text = document.body.innerText + document.title + [...document.querySelectorAll('[title], [aria-label]')].map((e) => e.title + e.getAttribute('aria-label')).join('');
			const sly = text.match(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g);
			if (sly) bad.push('shown raw: ' + JSON.stringify(sly));
			if (document.documentElement.scrollWidth > innerWidth) bad.push('a key makes the page wider');
			return bad;
		})()`, &bad)
		for _, x := range bad {
			t.Errorf("%s: %s", where, x)
		}
	}
	to(p, "overview")
	f.tell("ban", object{"type": "ban", "time": time.Now(), "ban": ban{Rule: "per-client", Key: []string{imgKey}, Since: time.Now(), Until: time.Now().Add(time.Hour), Reason: imgKey}})
	p.Wait(`[...document.querySelectorAll('.tickrow .key')].some((e) => e.textContent === ` + quoted(imgKey) + `)`)
	harmless("overview")
	to(p, "keys")
	p.Wait(`[...document.querySelectorAll('.toprow .key')].some((e) => e.textContent === ` + quoted(imgKey) + `)`)
	harmless("keys")
	to(p, "bans")
	p.Wait(`[...document.querySelectorAll('tbody .key')].some((e) => e.textContent === ` + quoted(imgKey) + `)`)
	p.Wait(`[...document.querySelectorAll('tbody .key')].some((e) => e.textContent === '\\u202egnp.exe\\u2066\\x1b[31m\\x00end')`)
	p.Wait(`[...document.querySelectorAll('tbody .key')].some((e) => e.textContent.includes('more') && e.getBoundingClientRect().width < 500)`)
	p.Picture("hostile-bans")
	harmless("bans")
	to(p, "hot")
	harmless("hot")

	// Each has its page, which requests exactly that key, and shows it.
	for i, k := range evil {
		p.JS(`location.hash = '#/key?' + new URLSearchParams({field: 'client', value: `+quoted(k)+`})`, nil)
		p.Wait(`document.querySelectorAll('.windowcard').length === 4 && document.querySelectorAll('.keybanrow').length === 1`)
		harmless(fmt.Sprintf("page of key %d", i))
		var text string
		p.JS(`document.querySelector('.subject dd').textContent`, &text)
		if want := written(k); text != want {
			t.Errorf("key %q is shown as %q, want %q", k, text, want)
		}
	}

	// A ban of bytes that are not UTF-8 is ended by these bytes. It has no page: the page of their replacement would be
	// that of another key.
	to(p, "bans")
	p.JS(`(() => { const row = [...document.querySelectorAll('tr.ban')].find((r) => r.textContent.includes('<i>')); row.querySelector('button').id = 'thatlift'; })()`, nil)
	p.Wait(`document.getElementById('thatlift').closest('tr').querySelector('span.key') && !document.getElementById('thatlift').closest('tr').querySelector('a')`)
	p.Click("#thatlift")
	p.Click("dialog .danger")
	p.Wait(`!document.querySelector('dialog')`)
	equal(t, f.posted("bans/unban"), `{"rule":"per-client","key_base64":["//48aT4="]}`)
	p.Clean()
}

// written is how the console writes a key of evil.
func written(k string) string {
	return strings.NewReplacer("\u202e", `\u202e`, "\u2066", `\u2066`, "\x1b", `\x1b`, "\x00", `\x00`).Replace(k)
}

func testRoles(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	f.role = "read"
	p := b.Open(t, f.URL, 1440, 900)
	p.Wait(isLive)
	for _, r := range routes {
		to(p, r.name)
		var shown []string
		p.JS(`[...document.querySelectorAll('main button')].filter((b) => b.checkVisibility() && /ban|reload|change|check/i.test(b.textContent)).map((b) => b.textContent)`, &shown)
		if len(shown) > 0 {
			t.Errorf("%s: a reader is shown %q", r.name, shown)
		}
	}
	f.set(func() { f.role = "admin" })
	f.tell("rules", object{"type": "rules", "time": time.Now()}) // the page reads the state again
	to(p, "bans")
	p.Wait(`document.querySelector('.head .primary').checkVisibility() && document.querySelector('tbody button').checkVisibility()`)
	p.Clean()
}

func testLogin(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	f.token = "s3cret"
	p := b.Open(t, f.URL+"/#/bans", 1000, 700)
	p.Wait(`document.querySelector('#token') === document.activeElement`)
	p.Accessible("login")
	p.Picture("login")
	p.Write("wrong")
	p.Keys("Enter")
	p.Wait(`document.querySelector('.said').textContent === 'This token is unknown.'`)
	p.JS(`document.querySelector('#token').select()`, nil)
	p.Write("s3cret")
	p.Keys("Enter")
	p.Wait(isLive + ` && document.querySelectorAll('tr.ban').length === 6 && document.querySelector('h1').textContent === 'Bans'`)
	var kept string
	p.JS(`JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie`, &kept)
	if strings.Contains(kept, "s3cret") {
		t.Errorf("the page keeps the token where scripts can read it: %s", kept)
	}

	// The session ends: the form comes back.
	f.set(func() { f.token = "another" })
	f.cut()
	p.Wait(`document.querySelector('#token')`)
	for _, c := range p.Complaints() {
		if !strings.Contains(c, "status of 401") { // which the browser reports by itself
			t.Errorf("the page complains: %s", c)
		}
	}
}

func testReconnect(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL, 1440, 900)
	p.Wait(isLive)
	to(p, "overview")
	f.set(func() { f.away = true })
	f.cut()
	p.Wait(`document.querySelector('.pill').textContent === 'Reconnecting' && !document.querySelector('#notice').hidden`)
	p.Picture("reconnecting")
	p.Accessible("reconnecting")
	p.Wait(`document.querySelectorAll('.tickrow').length > 0`) // the old data stays
	f.set(func() { f.away = false })
	p.Wait(isLive + ` && document.querySelector('#notice').hidden`)

	// A stream that lost events reports it, and the page reads the state again.
	f.set(func() { f.bans = f.bans[:1] })
	f.tell("resync", object{})
	p.Wait(`document.querySelectorAll('.tickrow').length === 1`)
	for _, c := range p.Complaints() {
		if !strings.Contains(c, "status of 503") && !strings.Contains(c, "ERR_") {
			t.Errorf("the page complains: %s", c)
		}
	}
}

func testTheme(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL, 1440, 900)
	background := func() (c string) {
		p.JS(`getComputedStyle(document.documentElement).backgroundColor`, &c)
		return c
	}
	p.Media("prefers-color-scheme: dark")
	dark := background()
	p.Media("prefers-color-scheme: light")
	light := background()
	if dark == light {
		t.Errorf("the page does not follow the system: %s in both", dark)
	}
	p.Keys("t")
	if is := background(); is != dark {
		t.Errorf("after t the ground is %s, want %s", is, dark)
	}
	p.JS(`location.reload()`, nil)
	p.Wait(`document.querySelector('h1') && document.documentElement.dataset.theme === 'dark'`)
	p.Click(`[aria-label="Change between dark and light"]`)
	if is := background(); is != light {
		t.Errorf("after the second change the ground is %s, want %s", is, light)
	}
	p.Clean()
}

// testPolicy is the control of all tests that end with clean: what the policy forbids is reported, and does not happen.
func testPolicy(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL, 800, 600)
	p.Wait(isLive)
	p.Clean()
	for _, fault := range []string{
		`document.body.append(Object.assign(document.createElement('p'), {ariaLabel: 'x'})), document.body.lastChild.setAttribute('style', 'color: red')`,
		`(() => { const s = document.createElement('style'); s.textContent = 'p { color: red }'; document.head.append(s); })()`,
		`(() => { try { document.body.innerHTML = '<img src=x>'; } catch { } })()`,
		`(() => { const i = document.createElement('img'); i.src = 'http://203.0.113.1/x.png'; document.body.append(i); })()`,
		`(() => { const i = document.createElement('iframe'); i.src = 'http://203.0.113.1/'; document.body.append(i); })()`,
		`setTimeout(() => { throw new Error('a fault of ours') }, 0)`,
		`console.error('a fault of ours')`,
	} {
		p.JS(fault+`; 1`, nil)
		p.JS(`new Promise((done) => setTimeout(done, 30))`, nil)
		if len(p.Complaint()) == 0 {
			t.Errorf("nothing complains of %s", fault)
		}
	}
}
