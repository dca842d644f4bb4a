package console_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/browsertest"
)

// Each page of a server that has counted nothing and has no rules shows three commands to copy.
func testEmpty(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	f.set(f.clear)
	p := b.Open(t, f.URL, 1280, 900)
	p.Wait(isLive)
	for _, page := range []struct{ hash, command string }{
		{"overview", "lately check --addr " + f.URL + " client=192.0.2.1 path=/"},
		{"keys", "curl " + f.URL + "/v1/counters/requests/add -H 'Content-Type: application/json' -d '{\"key\":[\"192.0.2.1\"]}'"},
		{"bans", "lately suggest access.log > rules.yaml"},
		{"rules", "lately suggest access.log > rules.yaml"},
		{"hot", "lately replay --hot 200/1m access.log"},
	} {
		p.JS(`location.hash = '#/`+page.hash+`'`, nil)
		p.Wait(`document.querySelector('main').className === 'view-` + page.hash + `' && document.querySelectorAll('.commands li').length === 3 && document.querySelector('.commands').checkVisibility() && document.querySelector('.commands code').textContent === ` + quoted(page.command))
		p.Accessible(page.hash + ", empty")
	}
	p.JS(`location.hash = '#/overview'`, nil)
	p.Wait(`document.querySelector('.health:not(.bad) summary').textContent.startsWith('Healthy: no rules, 0 bans, ')`)
	p.Wait(`document.querySelector('.commands li:nth-child(3) code').textContent === 'redis-cli -p 7399 CHECK client 192.0.2.1 path /'`)
	for address, command := range map[string]string{"0.0.0.0:8": "redis-cli -p 8", "[::1]:8": "redis-cli -h ::1 -p 8", "": ""} {
		f.set(func() { f.resp = address })
		f.tell("rules", object{"type": "rules", "time": time.Now()}) // the page reads the state again
		p.Wait(`(document.querySelector('.commands li:nth-child(3) code')?.textContent ?? '').startsWith(` + quoted(command) + `) && document.querySelectorAll('.commands li').length === ` + map[bool]string{true: "2", false: "3"}[command == ""])
	}
	p.JS(`navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }`, nil)
	p.Click(".commands li:nth-child(2) button")
	p.Wait(`window.copied === 'curl ' + location.origin + "/v1/check -H 'Content-Type: application/json' -d '{\"event\":{\"client\":\"192.0.2.1\",\"path\":\"/\"}}'"`)
	p.Clean()
}

// A client such as proxy:127.0.0.1 is explained on its page, and the page of the address leads to it.
func testProxy(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL+"/#/key?field=client&value=127.0.0.1", 1280, 900)
	p.Wait(isLive)
	p.Wait(`document.querySelector('.note').textContent === 'This address is also a trusted proxy. Requests that it sent without naming the client are counted as proxy:127.0.0.1.'`)
	p.Click(".note a")
	p.Wait(`document.querySelector('.subject dd').textContent === 'proxy:127.0.0.1' && document.querySelector('.note').textContent.includes('it must send X-Forwarded-For')`)
	p.JS(`location.hash = '#/key?field=client&value=ada'`, nil)
	p.Wait(`document.querySelector('.subject dd').textContent === 'ada' && document.querySelectorAll('.windowcard').length === 4 && document.querySelector('.windowlegend').checkVisibility()`)
	p.Wait(`!document.querySelector('.note').checkVisibility()`)
	p.Clean()
}
