package console_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/browsertest"
)

// The view shows the answer to the last choice, which is requested as soon as the current request is answered.
func testSlow(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL+"/#/bans", 1440, 900)
	p.Wait(isLive + ` && document.querySelectorAll('tr.ban').length === 6`)
	p.JS(`(() => { const set = setTimeout; window.setTimeout = (f, ms) => (ms < 1500 || !Number.isInteger(ms)) && set(f, ms); })()`, nil) // nothing else is requested at such intervals; the wait for a new connection is not a whole number
	watch := func(wrong string) {
		t.Helper()
		p.JS(`new MutationObserver(() => { if (`+wrong+`) window.wrong = true; }).observe(document.querySelector('main'), {childList: true, subtree: true})`, nil)
	}
	answered := func(hold chan bool) {
		t.Helper()
		select {
		case hold <- true:
		case <-time.After(browsertest.Patience):
			t.Fatal("nothing was requested")
		}
	}
	right := func() {
		t.Helper()
		var wrong bool
		p.JS(`Boolean(window.wrong)`, &wrong)
		if wrong {
			t.Error("the answer to an earlier question was shown")
		}
	}
	choose := func(value string) string {
		return `(() => { const s = document.querySelector('.controls select'); s.value = '` + value + `'; s.dispatchEvent(new Event('change')); })()`
	}
	hold := make(chan bool)
	f.set(func() { f.hold = hold })
	watch(`document.querySelectorAll('tr.ban').length === 1`)
	p.JS(choose("login")+`, `+choose("scanner"), nil)
	answered(hold)
	answered(hold)
	p.Wait(`document.querySelectorAll('tr.ban').length === 2`)
	right()

	// The keys of one counter are not shown as another's.
	f.set(func() { f.hold = nil })
	to(p, "keys")
	f.set(func() { f.hold = hold })
	watch(`document.querySelector('.toprow a[href*="field=path"][href*="203.0.113"]')`)
	p.JS(`document.querySelector('[aria-label="How many"] button:nth-child(2)').click(), `+choose("pages"), nil)
	answered(hold)
	answered(hold)
	p.Wait(`document.querySelectorAll('.toprow').length === 1 && document.querySelector('.toprow .key').textContent === '/search'`)
	right()
	p.Clean()
}

// A list that is cut off on its way does not count as empty.
func testCutOff(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL+"/#/bans", 1440, 900)
	p.Wait(isLive + ` && document.querySelectorAll('tr.ban').length === 6`)
	f.set(func() { f.short = true })
	const lists = `performance.getEntriesByType('resource').filter((e) => e.name.includes('v1/bans')).length`
	var before int
	p.JS(lists, &before)
	p.JS(`document.querySelector('.controls select').dispatchEvent(new Event('change'))`, nil)
	p.Wait(fmt.Sprintf(`%s > %d`, lists, before))
	var shown string
	p.JS(`document.querySelector('.head .total').textContent + ', ' + document.querySelectorAll('tr.ban').length + ' rows'`, &shown)
	equal(t, []string{shown}, "6 in force, 6 rows")
}
