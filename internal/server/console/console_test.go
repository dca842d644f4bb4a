package console_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/browsertest"
)

// TestConsole drives the console in a headless browser against an API of canned
// answers, as its users do: with a mouse, a keyboard and a phone. Each part has a
// page of its own. LATELY_SCREENSHOTS names a folder for pictures.
func TestConsole(t *testing.T) {
	b := browsertest.Start(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *browsertest.Browser)
	}{
		{"overview", testOverview},
		{"chart", testChart},
		{"keys", testKeys},
		{"bans", testBans},
		{"hot", testHot},
		{"unban many", testUnbanMany},
		{"narrow", testNarrow},
		{"rules", testRules},
		{"keyboard", testKeyboard},
		{"hostile keys", testHostile},
		{"roles", testRoles},
		{"login", testLogin},
		{"reconnect", testReconnect},
		{"slow", testSlow},
		{"cut off", testCutOff},
		{"theme", testTheme},
		{"policy", testPolicy},
		{"empty", testEmpty},
		{"proxy without a client", testProxy},
		{"accessible", testAccessible},
		{"inspect finds", testInspectFinds},
		{"pictures", testPictures},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, b)
		})
	}
}

const isLive = `document.documentElement.dataset.link === 'live'`

func testOverview(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL, 1440, 900)
	p.Wait(isLive)
	to(p, "overview")
	p.Wait(`document.querySelector('.health.bad summary').textContent === 'webhook: fails, and 1 more'`)
	p.Click(".choice button:first-child") // 1 s
	f.second(7777, 200, 50, 9)
	p.Wait(`document.querySelector('.figures .big').textContent === '8,036'`)
	p.Wait(`document.querySelector('.figures .allowed b').textContent === '7,777' && document.querySelector('.figures .refused b').textContent === '200' && document.querySelector('.figures .banned b').textContent === '50' && document.querySelector('.figures .unmatched b').textContent === '9'`)
	p.Wait(`document.querySelector('.mark').getBoundingClientRect().width > 1`)

	now := time.Now()
	f.tell("ban", object{"type": "ban", "time": now, "ban": ban{Rule: "scanner", Key: []string{"192.0.2.66"}, Since: now, Until: now.Add(time.Hour)}})
	p.Wait(`document.querySelector('.tickrow.ban .key').textContent === '192.0.2.66'`)
	f.tell("unban", object{"type": "unban", "time": now.Add(time.Second), "rule": "scanner", "key": []string{"192.0.2.66"}})
	p.Wait(`document.querySelector('.tickrow').classList.contains('unban')`)

	// The most refused keys are named, and one that is not banned can be banned here.
	p.Wait(`document.querySelectorAll('.refusedrow').length === 6 && document.querySelector('.refusedrow .n').textContent === '517/s'`)
	p.Wait(`document.querySelector('.refusedrow .badge').checkVisibility() && !document.querySelector('.refusedrow button').checkVisibility()`)
	p.Click(".refusedrow:nth-child(2) button")
	p.Wait(`document.querySelector('dialog input[name=value]').value === '203.0.113.201' && document.querySelector('dialog select').value === 'per-client'`)
	p.Click("dialog .danger")
	p.Wait(`!document.querySelector('dialog') && document.querySelector('.refusedrow:nth-child(2) .badge').checkVisibility()`)
	equal(t, f.posted("bans"), `{"rule":"per-client","key":["203.0.113.201"],"for":"3600000ms","reason":""}`)

	// One legend: each outcome is named once.
	var names int
	p.JS(`[...document.querySelectorAll('.panel.now *')].filter((e) => !e.children.length && e.checkVisibility() && e.textContent.trim().toLowerCase() === 'unmatched').length`, &names)
	if names != 1 {
		t.Errorf("unmatched is named %d times beside the chart, want once", names)
	}

	// Reloads, restarts, and bans by hand are marked.
	p.Wait(`[...document.querySelectorAll('.turns text')].map((e) => e.textContent).join() === 'reload,3 bans by hand,unban'`)
	p.Wait(`document.querySelectorAll('.turns line.byhand').length === 2`)

	// So are the bans that rules began, each in its second.
	p.Wait(`document.querySelectorAll('.pins rect').length > 0 && document.querySelector('.chart .legend').checkVisibility()`)

	// Targets that enforce bans and followed logs, with their failures.
	p.Wait(`[...document.querySelectorAll('.enforcement .state')].map((e) => e.textContent + e.classList.contains('bad')).join() === 'Has all bansfalse,Failstrue'`)
	p.Wait(`document.querySelector('.enforcement .dim').textContent === '4,127 addresses and networks; 2 bans are not enforced' && document.querySelector('.enforcement').textContent.includes('12 failed attempts')`)
	p.Wait(`[...document.querySelectorAll('.followed .state')].map((e) => e.textContent).join() === 'Up to date,Silent' && document.querySelector('.followed').textContent.includes('1 gap')`)
	p.Wait(`document.querySelector('.health').open && document.querySelector('.health .why').textContent.startsWith('webhook: fails. Post <i>')`)
	f.set(func() { f.alone = true })
	f.tell("rules", object{"type": "rules", "time": now})
	p.Wait(`!document.querySelector('.enforcement').checkVisibility() && !document.querySelector('.followed').checkVisibility() && /^Healthy: 4 rules, 7 bans, .* of 256 MiB, up for 2 d /.test(document.querySelector('.health:not(.bad) summary').textContent)`)

	f.set(func() { f.broken = "rules.yaml:12:5: limt is no key." })
	f.tell("rules", object{"type": "rules", "time": now})
	p.Wait(`document.querySelector('.health.bad summary').textContent === 'The last reload failed' && document.querySelector('.health .why').textContent.includes('12:5')`)

	f.set(func() { f.disk = "journal-00000003: no space left on device" })
	f.tell("rules", object{"type": "rules", "time": now})
	p.Wait(`document.querySelector('.health summary').textContent === 'Bans are not written to disk, and 1 more' && document.querySelector('.health .why').textContent.includes('no space left')`)

	for i := range 7 {
		p.Click(fmt.Sprintf(".choice button:nth-child(%d)", i+1))
		p.Wait(`document.querySelectorAll('.scale path')[0].getAttribute('d').length > 20`)
	}

	// A bar in a quarter of an hour is a minute, and its figures show that.
	p.Click(".choice button:nth-child(4)")
	p.Wait(`document.querySelector('.figures .all dt').textContent === 'In the last 15 min' && document.querySelector('.plot').getAttribute('aria-valuemax') === '14'`)
	p.Wait(`/^per second, \d\d:\d\d to \d\d:\d\d$/.test(document.querySelector('.chart .when').textContent)`)
	p.Wait(`[...document.querySelectorAll('.turns text')].length === 1`)
	p.JS(`document.querySelector('.plot').focus()`, nil)
	p.Keys("Home")
	p.Wait(`/^\d\d:\d\d to \d\d:\d\d: .* allowed, .* per second, \d+ bans? began$/.test(document.querySelector('.plot').getAttribute('aria-valuetext')) && !document.querySelector('.guide').hidden`)
	p.Wait(`document.querySelector('.plot').getAttribute('aria-valuetext') === document.querySelector('.chart .when').textContent`)
	p.Click(".rulerow .name")
	p.Wait(`document.querySelector('.rulecard.chosen h3').textContent.startsWith('per-client')`)
	p.JS(`history.back()`, nil)
	p.Wait(`document.querySelector('.figures')`)
	p.Picture("overview-minutes")
	p.Clean()
}

// testChart checks that the chart slides: every tick moves to the left, as fast as time passes, over new seconds and new
// beginnings of the animation.
func testChart(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL, 1200, 800)
	p.Wait(isLive)
	to(p, "overview")
	p.JS(`window.jumps = new Promise((done) => {
		const speed = (document.querySelector('.moving').clientWidth) / 60e3;
		let last = new Map(), at = 0, worst = 0, steps = 0, n = 0;
		const look = (now) => {
			const here = new Map([...document.querySelectorAll('.ticks text')].map((e) => { const r = e.getBoundingClientRect(); return [e.textContent, r.x + r.width / 2]; }));
			for (const [label, x] of here) {
				if (!last.has(label)) continue;
				worst = Math.max(worst, Math.abs(last.get(label) - x - speed * (now - at)));
				steps++;
			}
			last = here, at = now;
			if (++n < 40) requestAnimationFrame(look);
			else done({worst, steps});
		};
		requestAnimationFrame(look);
	}); 1`, nil)
	p.Wait(`[...document.querySelectorAll('.ticks text')].every((e) => e.getBoundingClientRect().right < e.previousSibling.getBoundingClientRect().left + 2)`) // none is cut at the right edge
	f.second(9000, 100, 10, 0)
	f.second(30_000, 100, 10, 0) // another scale
	p.JS(`dispatchEvent(new Event('resize'))`, nil)
	var r struct {
		Worst float64
		Steps int
	}
	p.JS(`window.jumps`, &r)
	if r.Steps < 100 || r.Worst > 1 {
		t.Errorf("in %d steps, a tick was %.2f px away from where it had to be: must be at most 1", r.Steps, r.Worst)
	}

	p.JS(`document.querySelector('.plot').focus()`, nil)
	p.Keys("ArrowLeft", "ArrowLeft")
	p.Wait(`/^\d\d:\d\d:\d\d: .* allowed, .* unmatched, per second(, \d+ bans? began)?$/.test(document.querySelector('.chart .when').textContent) && !document.querySelector('.guide').hidden`)
	p.Wait(`/: .* allowed, .* refused, .* banned, .* unmatched, per second/.test(document.querySelector('.plot').getAttribute('aria-valuetext'))`)
	p.Keys("Home")
	p.Wait(`document.querySelector('.plot').getAttribute('aria-valuenow') === '0'`)

	p.Media("prefers-reduced-motion: reduce")
	f.second(9000, 100, 10, 0)
	p.Wait(`document.querySelector('.strip').getAnimations().length === 0`)
	p.Clean()
}

func testKeys(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL+"/#/keys", 1440, 900)
	p.Wait(isLive)
	p.Wait(`document.querySelectorAll('.toprow').length === 20`)
	p.Click(`[aria-label="How many"] button:nth-child(2)`)
	p.Wait(`document.querySelectorAll('.toprow').length === 24`)
	p.Wait(`document.querySelector('.toprow .peak').textContent === 'peak 2,905/s' && document.querySelector('.toprow .refusedby').textContent === '48 % refused by per-client' && !document.querySelector('.toprow:nth-child(2) .refusedby').checkVisibility()`)
	p.Wait(`document.querySelector('.toprow .n').textContent === '61,000' && document.querySelector('.toprow .hi').textContent === 'to 67,777'`)
	for typed, asked := range map[string]string{"203.0.113.0/24": "203.0.113.0/24", "2001:db8::/32": "2001:db8::/32", "203.0": "203.0*", "/a*[b]/24": `/a\*\[b\]/24*`} {
		p.JS(`(() => { const i = document.querySelector('input[type=search]'); i.value = `+quoted(typed)+`; i.dispatchEvent(new Event('input')); })()`, nil)
		p.Wait(`document.querySelectorAll('.toprow').length === 1`)
		f.set(func() {
			if got := f.searched[len(f.searched)-1]; got != asked {
				t.Errorf("%s asks for %s, want %s", typed, got, asked)
			}
		})
		p.JS(`(() => { const i = document.querySelector('input[type=search]'); i.value = ''; i.dispatchEvent(new Event('input')); })()`, nil)
		p.Wait(`document.querySelectorAll('.toprow').length === 24`)
	}
	p.Click(".toprow .key")
	p.Wait(`document.querySelector('h1').textContent === 'Key' && document.querySelectorAll('.windowcard').length === 4`)
	p.Wait(`document.querySelector('.verdictrow .badge').textContent === 'would allow'`)
	p.Wait(`document.querySelectorAll('.verdictrow .rest')[1].textContent === 'after a wait of 1 min 30 s'`)
	p.Wait(`[...document.querySelectorAll('svg.window')].slice(1).every((s) => s.querySelectorAll('.cutslot').length === 1 && s.querySelectorAll('.slot, .current').length === 10)`)

	// Ban it, and unban it again.
	p.Click(".head .danger")
	p.Wait(`document.querySelector('dialog input[name=value]').value === '203.0.113.200'`)
	p.Click("dialog .chip:nth-child(2)") // 1h
	p.Click("dialog input[name=reason]")
	p.Write("seen on the wall screen")
	p.Keys("Enter")
	p.Wait(`!document.querySelector('dialog') && document.querySelectorAll('.keybanrow').length === 1`)
	p.Wait(`document.querySelector('.verdictrow .badge').textContent === 'banned'`)
	equal(t, f.posted("bans"), `{"rule":"per-client","key":["203.0.113.200"],"for":"3600000ms","reason":"seen on the wall screen"}`)
	p.Click(".keybanrow button")
	p.Wait(`document.querySelector('dialog h2').textContent === 'Unban this key?'`)
	p.Click("dialog .danger")
	p.Wait(`document.querySelectorAll('.keybanrow').length === 0`)
	equal(t, f.posted("bans/unban"), `{"rule":"per-client","key":["203.0.113.200"]}`)

	p.JS(`location.hash = '#/key?field=client&value=2001:db8:4:2::'`, nil)
	p.Wait(`document.querySelector('.keybanrow')?.textContent.includes(', ban number 2 of this key')`)
	p.Clean()
}

func testBans(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL+"/#/bans", 1440, 900)
	p.Wait(isLive)
	p.Wait(`document.querySelectorAll('tr.ban').length === 6`)

	// The bans are in groups by rule, each ban in one line.
	p.Wait(`[...document.querySelectorAll('tr.group')].map((e) => e.querySelector('.name').textContent + ' ' + e.querySelector('.dim').textContent).join() === 'per-client 3 bans,scanner 2 bans,login 1 ban'`)
	p.Wait(`[...document.querySelectorAll('tr.ban')].every((e) => e.getBoundingClientRect().height < 45)`)
	p.Click("input[type=search]")
	p.Write("4711")
	p.Wait(`document.querySelectorAll('tr.ban').length === 1 && document.querySelector('tbody .key').textContent === '192.0.2.200 · ada'`)
	p.JS(`(() => { const i = document.querySelector('input[type=search]'); i.value = ''; i.dispatchEvent(new Event('input')); })()`, nil)
	p.JS(`(() => { const s = document.querySelector('.controls select'); s.value = 'scanner'; s.dispatchEvent(new Event('change')); })()`, nil)
	p.Wait(`document.querySelectorAll('tr.ban').length === 2`)

	// Esc and Cancel leave the ban alone.
	p.Click("tbody button")
	p.Keys("Escape")
	p.Wait(`!document.querySelector('dialog')`)
	p.Click("tbody button")
	p.Click("dialog .actions button:not(.primary)")
	p.Wait(`!document.querySelector('dialog')`)
	equal(t, f.posted("bans/unban"))

	// A ban by hand, under a rule of two fields, for a time of one's own.
	p.Click(".head .primary")
	p.JS(`(() => { const s = document.querySelector('dialog select'); s.value = 'login'; s.dispatchEvent(new Event('change')); })()`, nil)
	p.Wait(`document.querySelectorAll('dialog input[name=value]').length === 2`)
	p.Click("dialog .inputs label:nth-child(1) input")
	p.Write("192.0.2.9")
	p.Click("dialog .inputs label:nth-child(2) input")
	p.Write("bob")
	p.Picture("dialog-ban")
	p.Accessible("adding a ban")
	p.JS(`document.querySelector('dialog input[name=for]').select()`, nil)
	p.Write("soon")
	p.Keys("Enter")
	p.Wait(`document.querySelector('dialog .said').textContent.startsWith('A duration is numbers with units')`)
	p.JS(`document.querySelector('dialog input[name=for]').select()`, nil)
	p.Write("1h30m")
	p.Keys("Enter")
	p.Wait(`!document.querySelector('dialog')`)
	equal(t, f.posted("bans"), `{"rule":"login","key":["192.0.2.9","bob"],"for":"5400000ms","reason":""}`)
	p.Clean()
}

// testUnbanMany selects bans and ends them together, and ends those of a rule.
func testUnbanMany(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL+"/#/bans", 1440, 900)
	p.Wait(isLive)
	p.Wait(`document.querySelectorAll('tr.ban').length === 6 && !document.querySelector('.chosenbans').checkVisibility()`)
	p.Click("tbody tr:nth-child(6) input")
	p.Click("tbody tr:nth-child(9) input")
	p.Wait(`document.querySelector('.chosenbans .danger').textContent === 'Unban 2 selected…' && document.querySelector('thead input').indeterminate`)
	p.Picture("bans-selected")
	p.Accessible("selected bans")
	p.Click(".chosenbans .danger")
	p.Wait(`document.querySelectorAll('dialog .some li').length === 2`)
	p.Click("dialog .danger")
	p.Wait(`!document.querySelector('dialog') && document.querySelectorAll('tr.ban').length === 4 && !document.querySelector('.chosenbans').checkVisibility()`)
	equal(t, f.posted("bans/unban"), `{"rule":"scanner","key":["198.51.100.23"]}`, `{"rule":"login","key":["192.0.2.200","ada"]}`)

	p.Click("thead input")
	p.Wait(`document.querySelector('.chosenbans .danger').textContent === 'Unban 4 selected…'`)
	p.Click(".chosenbans button:last-child") // Select none
	p.Wait(`document.querySelectorAll('tbody input:checked').length === 0`)

	p.Click(".head button:not(.primary)") // Unban many
	p.Picture("dialog-unban-many")
	p.Accessible("unbanning many")
	p.Click("dialog .primary")
	p.Wait(`document.querySelector('dialog .said').textContent.startsWith('Choose a rule')`)
	p.JS(`document.querySelector('dialog select').value = 'per-client'`, nil)
	p.Click("dialog input[name=network]")
	p.Write("203.0.113.0/24")
	p.Click("dialog .primary")
	p.Wait(`!document.querySelector('dialog') && document.querySelector('.toast').textContent.endsWith('unbanned.')`)
	p.Wait(`document.querySelectorAll('tr.ban').length === 1`)
	equal(t, f.posted("bans/unban")[2:], `{"rule":"per-client","network":"203.0.113.0/24"}`)
	p.Clean()
}

// testNarrow looks at the page of a banned key on phones: no text stands in a column of
// a few letters, and nothing is wider than the screen.
func testNarrow(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL+"/#/key?field=client&field=user&value=192.0.2.200&value=ada", 390, 840)
	p.Wait(isLive)
	p.Wait(`document.querySelectorAll('.keybanrow').length === 1 && document.querySelectorAll('.verdictrow').length === 2 && document.querySelectorAll('.refusalrow').length === 2`)
	for _, width := range []int{340, 360, 390, 430, 600, 768, 861} {
		p.Size(width, 840)
		var bad []string
		p.JS(`(() => {
			const bad = [];
			if (document.documentElement.scrollWidth > innerWidth) bad.push('the page is wider than the screen');
			for (const e of document.querySelectorAll('.keybanrow > *, .verdictrow > *, .refusalrow > *')) {
				const { width, height } = e.getBoundingClientRect();
				if (height > 30 && width < 120) bad.push(e.className + ' is ' + width.toFixed() + ' wide and ' + height.toFixed() + ' high: ' + e.textContent);
			}
			return bad;
		})()`, &bad)
		for _, x := range bad {
			t.Errorf("at %d px: %s", width, x)
		}
		if width == 390 {
			p.JS(`document.querySelector('.keybanrow').scrollIntoView({block: 'center'})`, nil)
			p.Picture("phone-banned-key")
			p.JS(`document.querySelector('.refusals').scrollIntoView({block: 'center'})`, nil)
			p.Picture("phone-refusals")
		}
	}
	p.Clean()
}

func testRules(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL+"/#/rules", 1440, 900)
	p.Wait(isLive)
	p.Wait(`document.querySelectorAll('.rulecard').length === 6 && document.querySelector('.rulecard .now').textContent.includes('/s refused')`)
	p.Wait(`document.querySelector('.rulecard .sums').textContent.endsWith('; 4 bans in force, 2,210 since the start')`)
	p.Wait(`document.querySelector('textarea').readOnly && document.querySelector('.lines').textContent.split('\n').length > 30`)
	p.Click(".bartop .admin") // Try a change
	p.Wait(`!document.querySelector('textarea').readOnly && !document.querySelector('.rulecards').checkVisibility()`)

	// The effects of the change are beside the editor, the three numbers first.
	p.Wait(`document.querySelector('.trypanel').getBoundingClientRect().left > document.querySelector('.editor').getBoundingClientRect().right`)
	p.Wait(`document.querySelector('.trialresult').firstElementChild.matches('.figures') && [...document.querySelectorAll('.trialresult dt')].map((e) => e.textContent).join() === 'Newly refused,Newly allowed,Bans'`)
	p.JS(`(() => { const a = document.querySelector('textarea'); a.value = a.value.replace('limit: [', 'limt: ['); a.dispatchEvent(new Event('input')); })()`, nil)
	p.Wait(`document.querySelector('.verdict .at').textContent === '12:5' && document.querySelector('.lines mark').textContent === '12' && document.querySelector('.back mark').textContent === 'limt'`)
	p.Picture("rules-mistake")
	p.Accessible("rules with a mistake")
	p.Click(".verdict .at")
	p.Wait(`(() => { const a = document.querySelector('textarea'); return document.activeElement === a && a.value.slice(a.selectionStart).startsWith('limt') && a.value.slice(0, a.selectionStart).split('\n').length === 12; })()`)
	p.JS(`(() => { const a = document.querySelector('textarea'); a.value = a.value.replace('limt', 'limit'); a.dispatchEvent(new Event('input')); })()`, nil)
	p.Click(".bartop button:nth-of-type(2)") // Check
	p.Wait(`document.querySelector('.verdict .good').textContent === 'This file would be accepted.' && !document.querySelector('.lines mark')`)

	// A draft is tried on the recent events: the file itself changes nothing.
	try := `[...document.querySelectorAll('.bartop button')].find((b) => b.textContent === 'Try on recent events').click()`
	p.JS(try, nil)
	p.Wait(`document.querySelector('.trialresult .none').checkVisibility() && document.querySelector('.trialresult .sentence').textContent.startsWith('412,300 events, from ')`)
	p.JS(`(() => { const a = document.querySelector('textarea'); a.value = a.value.replace('600 per 1m', '60 per 1m'); a.dispatchEvent(new Event('input')); })()`, nil)
	p.JS(try, nil)
	p.Wait(`document.querySelectorAll('.changerow').length === 13 && !document.querySelector('.trialresult .none').checkVisibility()`)
	p.Wait(`document.querySelector('.changerow').textContent === '203.0.113.77310 newly refused700 of 9,100 events refused, was 400'`)
	p.Wait(`[...document.querySelectorAll('.changerow')].at(-1).textContent.endsWith('not bannedby client, user; was banned for 1 h 00 min')`)
	p.Wait(`document.querySelectorAll('.trialresult .unknown li').length === 2 && !/[\u202e\u0000\u001b]/.test(document.querySelector('.trialresult').textContent)`)
	p.Accessible("a draft that was tried")
	p.Picture("rules-tried")
	p.Size(390, 840)
	p.Wait(`document.documentElement.scrollWidth <= innerWidth`)
	p.Picture("rules-tried-phone")
	p.Media("prefers-color-scheme: light")
	p.Picture("rules-tried-phone-light")
	p.Size(1440, 900)
	p.Picture("rules-tried-light")
	if posts := f.posted("rules/try"); len(posts) != 2 || !strings.Contains(posts[1], "60 per 1m") {
		t.Errorf("tried %q", posts)
	}
	p.Click(".bartop .admin") // Back to the file
	p.Wait(`!document.querySelector('.trypanel').checkVisibility() && document.querySelector('.rulecards').checkVisibility()`)
	p.Wait(`document.querySelector('textarea').readOnly && document.querySelector('textarea').value.includes('limit: [20 per 1s')`)

	p.Click(".head .admin") // Reload
	p.Wait(`document.querySelector('.toast').textContent === 'The rules file is in force.'`)
	f.set(func() { f.broken = "rules.yaml:12:5: limt is no key of a limit." })
	p.Click(".head .admin")
	p.Wait(`document.querySelector('.toast.bad').textContent.includes('12:5') && document.querySelector('.failure').textContent.includes('the previous rules stay in force')`)
	f.set(func() { f.broken, f.drops = "", true })
	p.Click(".head .admin")
	p.Wait(`document.querySelector('dialog').textContent.includes('would drop 3 bans')`)
	p.Click("dialog .danger")
	p.Wait(`!document.querySelector('dialog')`)
	if posts := f.posted("rules/reload"); len(posts) != 4 || posts[2] != "{}" || posts[3] != `{"drop_bans":true}` {
		t.Errorf("reloaded with %q, want four times, the last with drop_bans", posts)
	}
	for _, c := range p.Complaints() {
		if !strings.Contains(c, "status of 400") && !strings.Contains(c, "status of 409") { // which the browser reports by itself
			t.Errorf("the page complains: %s", c)
		}
	}
}

func testKeyboard(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL, 1440, 900)
	p.Wait(isLive)
	for _, c := range [][2]string{{"k", "Keys"}, {"b", "Bans"}, {"r", "Rules"}, {"h", "Hot"}, {"o", "Decisions"}} {
		p.Keys("g", c[0])
		p.Wait(`document.querySelector('h1').textContent === '` + c[1] + `' && document.activeElement === document.querySelector('h1')`)
	}
	p.Keys("?")
	p.Wait(`document.querySelector('dialog[open] h2').textContent === 'Keys'`)
	p.Accessible("help")
	p.Picture("dialog-help")
	p.Keys("g", "k") // not for the page behind
	p.Keys("Escape")
	p.Wait(`!document.querySelector('dialog') && document.querySelector('h1').textContent === 'Decisions'`)

	p.Keys("/")
	p.Wait(`document.activeElement.matches('dialog input')`)
	p.Accessible("search")
	p.Picture("dialog-search")
	p.Write("203.0.113.77")
	p.Keys("Enter")
	p.Wait(`location.hash === '#/key?field=client&value=203.0.113.77' && document.querySelectorAll('.windowcard').length === 4`)

	// It completes the typed text to keys that were counted, and keys that are banned.
	p.Keys("/")
	p.Wait(`document.activeElement.matches('dialog input')`)
	p.Write("203.0.113.5")
	p.Wait(`[...document.querySelectorAll('.found li')].map((e) => e.textContent).join() === '203.0.113.2009 counted,203.0.113.5banned under per-client' && document.activeElement.getAttribute('aria-expanded') === 'true'`)
	p.Accessible("search with keys")
	p.Picture("dialog-search-found")
	p.Keys("ArrowDown", "ArrowDown")
	p.Wait(`document.querySelector('.found li[aria-selected=true]').id === document.activeElement.getAttribute('aria-activedescendant')`)
	p.Keys("Enter")
	p.Wait(`location.hash === '#/key?field=client&value=203.0.113.5'`)
	p.Keys("Escape")
	p.Wait(`location.hash === '#/key?field=client&value=203.0.113.77'`)
	p.Keys("Escape")
	p.Wait(`document.querySelector('h1').textContent === 'Decisions'`)

	p.Keys("p")
	p.Wait(`document.querySelector('.pill').textContent === 'Paused' && document.querySelector('.strip').getAnimations().length === 0`)
	var before string
	p.JS(`document.querySelector('.figures .big').textContent`, &before)
	f.second(123_456, 0, 0, 0)
	f.tell("hot", object{}) // comes after it, and no view receives it
	p.Wait(`performance.getEntriesByType('resource').length > 0`)
	p.Wait(`document.querySelector('.figures .big').textContent === ` + quoted(before))
	p.Keys("p")
	p.Wait(`document.querySelector('.pill').textContent === 'Live' && document.querySelector('.figures .big').textContent !== ` + quoted(before))

	// The focused element is visibly focused.
	p.JS(`document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex')`, nil)
	p.Keys("Tab")
	p.Wait(`document.activeElement.className === 'skip' && document.activeElement.getBoundingClientRect().y >= 0`)
	p.Keys("Tab", "Tab")
	p.Wait(`document.activeElement.matches('#nav a') && getComputedStyle(document.activeElement).outlineStyle === 'solid'`)
	p.Clean()
}

func quoted(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("posted %q, want %q", got, want)
	}
}
