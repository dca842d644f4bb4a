package replaypage_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/replaypage"
	"github.com/lately-go/lately/internal/test/browsertest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

// TestInBrowser opens pages from files in a headless browser, as their readers do.
// LATELY_SCREENSHOTS names a folder for pictures.
func TestInBrowser(t *testing.T) {
	b := browsertest.Start(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *browsertest.Browser)
	}{
		{"figures", testFigures},
		{"together", testTogether},
		{"links", testLinks},
		{"timeline", testTimeline},
		{"milliseconds", testMilliseconds},
		{"slider", testSlider},
		{"zone", testZone},
		{"hostile keys", testHostile},
		{"nothing leaves the page", testNothingLeaves},
		{"accessible", testAccessible},
		{"no event", testNoEvent},
		{"picture", testPicture},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, b)
		})
	}
}

// TestPicture writes the pictures of the documents to the folder that LATELY_PICTURES names,
// and looks whether they can be made.
func TestPicture(t *testing.T) {
	if pictures := os.Getenv("LATELY_PICTURES"); pictures != "" {
		folder := must.Get(filepath.Abs(pictures))(t)
		t.Setenv("LATELY_SCREENSHOTS", folder)
	} else {
		t.Setenv("LATELY_SCREENSHOTS", "")
	}
	b := browsertest.Start(t)
	for _, c := range []struct{ name, rules string }{
		{"replay", ""},
		{"slow-morning", `limits:
  - {name: search, key: client, when: {path: /search}, limit: 5 per 1m, ban: {after: 20 refusals in 5m, for: 1h}}
`},
		{"fail2ban", `bans:
  - {name: web-login, key: client, when: {method: POST, path: /login, status: 401}, after: 9 hits in 10m, for: 1h, factor: 2, max: 7d}
`},
	} {
		t.Run(c.name, func(t *testing.T) { testPictureOf(t, b, c.name, c.rules) })
	}
}

// testPictureOf writes the picture of the page about the sample log, under rules, or limits of the
// command line if these are "".
func testPictureOf(t *testing.T, b *browsertest.Browser, name, text string) {
	var r *replay.Report
	if text == "" {
		r = sampleReport(t, replay.Config{}, "limit", "60/1m", "ban", "100/5m:1h")
	} else {
		file := must.Get(rules.Parse(name+".yaml", []byte("version: 1\n"+text)))(t)
		r = sampleReport(t, replay.Config{Rules: file})
	}
	p := open(t, b, r, time.UTC, 1280, 1080)
	p.Media("prefers-color-scheme: light")
	p.Wait(`document.querySelector('.plot path').getAttribute('d').length > 1000`)
	var height float64
	p.JS(`(document.querySelector('.slider') ?? document.querySelector('main').lastElementChild).getBoundingClientRect().bottom + 6`, &height)
	if height < 500 || height > 4000 {
		t.Fatalf("the picture would have a height of %v", height)
	}
	p.Size(1280, int(height))
	p.Picture(name)
	if name == "replay" { // the README has it in both
		p.Media("prefers-color-scheme: dark")
		p.Picture(name + "-dark")
	}
	p.Clean()
}

// open opens the page of a report.
func open(t *testing.T, b *browsertest.Browser, r *replay.Report, zone *time.Location, width, height int) *browsertest.Tab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	file := must.Get(os.Create(path))(t)
	must.Do(t, replaypage.Write(file, r, zone))
	must.Do(t, file.Close())
	return b.Open(t, (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String(), width, height)
}

// texts returns the text of every element that selector finds.
func texts(p *browsertest.Tab, selector string) (all []string) {
	quoted, _ := json.Marshal(selector)
	p.JS(`[...document.querySelectorAll(`+string(quoted)+`)].map((e) => e.innerText.replace(/\s+/g, ' ').trim())`, &all)
	return all
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s:\n%q\nwant\n%q", what, got, want)
	}
}

// testFigures compares what the page shows with the report.
func testFigures(t *testing.T, b *browsertest.Browser) {
	r := sampleReport(t, replay.Config{Compare: false}, "limit", "60/1m", "ban", "100/5m:1h", "hot", "200/1m")
	p := open(t, b, r, time.UTC, 1440, 900)
	same(t, "heading", texts(p, ".reporthead > *"), "Replay of access.log",
		"203.0.113.245 made 6.0 % of the events; the busiest 5 min began at 2026-03-02 13:55:00 with 6,188 of them; and 8,740 events (8.7 %) were refused, most by 100/5m:1h.",
		"99,994 events by 1,667 distinct values of client, from 2026-03-02 00:00:00 to 2026-03-02 23:59:50 UTC (23 h 59 min)")
	same(t, "effects", texts(p, ".did"), "5,700 of 99,994 events refused (5.7 %), of 1 key", "8,700 of 99,994 events refused (8.7 %), of 13 keys", "3 keys ran hot")
	same(t, "bans", texts(p, ".bans tbody tr:first-child > :not(:last-child)"), r.Rules[1].BanList[0].Values()[0], "100/5m:1h",
		r.Rules[1].BanList[0].Start.UTC().Format(time.DateTime), r.Rules[1].BanList[0].End.UTC().Format(time.DateTime), "1 h 00 min")
	same(t, "hot keys", texts(p, ".hotkeys tbody th"), r.Rules[2].FirstHot[0].Values()[0], r.Rules[2].FirstHot[1].Values()[0], r.Rules[2].FirstHot[2].Values()[0])
	same(t, "busiest", texts(p, ".busiest tbody tr:first-child > *"), "203.0.113.245", "6,000", "6.0 %", "20", "200", "1,200", "6,000", "6,000")
	if !strings.Contains(r.Summary, "203.0.113.245 made 6.0 % of the events; the busiest 5m began at 2026-03-02 13:55:00 UTC with 6,188 of them; and 8,740 events (8.7 %) were refused, most by 100/5m:1h.") {
		t.Errorf("the summary is %q", r.Summary)
	}
	if rows := len(texts(p, ".bans tbody tr")); rows != 13 {
		t.Errorf("%d bans are shown, want 13", rows)
	}

	// Folded parts are made when they are opened, also by the keyboard.
	if rows := len(texts(p, ".effects tbody tr")); rows != 0 {
		t.Errorf("%d rows of a folded table", rows)
	}
	p.JS(`document.querySelector('.effect:nth-child(2) summary').focus()`, nil)
	p.Keys("Enter")
	p.Wait(`document.querySelectorAll('.effects tbody tr').length === 20`)
	busiest := r.Rules[1].Busiest[0]
	same(t, "busiest of a rule", texts(p, ".effects tbody tr:first-child > *"), busiest.Values()[0], fmt.Sprint(grouped(busiest.Allowed)), grouped(busiest.Refused))
	p.Clean()
}

// testTogether has the rules of a file: the refusals of all rules together are there once, and each rule has its own.
func testTogether(t *testing.T, b *browsertest.Browser) {
	file := must.Get(rules.Parse("rules.yaml", []byte("version: 1\nlimits:\n- {name: a, key: client, limit: 1 per 1m}\n- {name: b, key: path, limit: 2 per 1m, mode: shadow}\n")))(t)
	path := filepath.Join(t.TempDir(), "log")
	must.Do(t, os.WriteFile(path, []byte("1,x,/\n2,x,/\n3,x,/\n4,y,/\n5,z,/\n"), 0o600))
	p := open(t, b, run(t, replay.Config{Files: []string{path}, Format: "csv:time=1@s,client=2,path=3,object=3", Rules: file}), time.UTC, 1440, 900)
	same(t, "about", texts(p, ".effects > .sentence"), "All rules together refuse 2 of 5 events (40 %). Below are the refusals of each rule alone.",
		"The times of the log are precise to 1 s. A live server also has the fractions, and may refuse more or fewer events near a limit.")
	same(t, "effects", texts(p, ".did"), "2 of 5 events refused (40 %), of 1 key", "1 of 5 events would have been refused (20 %), of 1 key")
	p.Clean()
}

// grouped writes a number with a comma every three digits.
func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// testTimeline chooses a rule, points at bars with the keyboard, and reads the table.
func testTimeline(t *testing.T, b *browsertest.Browser) {
	r := sampleReport(t, replay.Config{}, "limit", "60/1m", "ban", "100/5m:1h")
	p := open(t, b, r, time.UTC, 1440, 900)
	p.Wait(`document.querySelector('.plot path').getAttribute('d').length > 1000`)
	sum := func(list []int64) (n int64) {
		for _, v := range list {
			n += v
		}
		return n
	}
	for i, of := range []replay.Refusals{r.Timeline.Refusals, *r.Rules[0].Timeline, *r.Rules[1].Timeline} {
		p.Click(fmt.Sprintf(".overtime .choice button:nth-child(%d)", i+1))
		refused, banned := sum(of.Refused), sum(of.Banned)
		same(t, "legend", texts(p, ".legend li"), grouped(r.Events-refused)+" not refused", grouped(refused-banned)+" refused by a limit", grouped(banned)+" refused by a ban")
	}
	p.JS(`document.querySelector('.plot').focus()`, nil)
	p.Keys("End", "Home", "ArrowRight", "ArrowRight", "ArrowLeft")
	ban := r.Rules[1].Timeline
	at := r.Timeline.Start.Add(time.Duration(r.Timeline.BarSeconds) * time.Second).UTC().Format(time.DateTime)
	want := fmt.Sprintf("%s: %d events, %d refused, %d of them by a ban", at, r.Timeline.Events[1], ban.Refused[1], ban.Banned[1])
	p.Wait(`document.querySelector('.plot').getAttribute('aria-valuetext') === '` + want + `'`)
	same(t, "bar", texts(p, ".when"), want)

	p.Click(".overtime summary")
	p.Wait(`document.querySelectorAll('.overtime tbody tr').length > 100`)
	for i, row := range texts(p, ".overtime tbody tr") {
		start := r.Timeline.Start.Add(time.Duration(float64(i) * r.Timeline.BarSeconds * float64(time.Second))).UTC().Format(time.DateTime)
		if want := fmt.Sprintf("%s %s %s %s", start, grouped(r.Timeline.Events[i]), grouped(ban.Refused[i]), grouped(ban.Banned[i])); row != want {
			t.Errorf("row %d of the table is %q, want %q", i, row, want)
		}
	}
	p.Clean()
}

// testMilliseconds has a timeline of less than a second: its bars and their names are fine
// enough.
func testMilliseconds(t *testing.T, b *browsertest.Browser) {
	path := filepath.Join(t.TempDir(), "log")
	must.Do(t, os.WriteFile(path, []byte("1772452800900,a\n1772452800999,b\n1772452801000,a\n1772452801150,a\n"), 0o600))
	p := open(t, b, run(t, replay.Config{Files: []string{path}, Format: "csv:time=1@ms,client=2"}), time.UTC, 1440, 900)
	p.Click(".overtime summary")
	p.Wait(`document.querySelectorAll('.overtime tbody tr').length === 4`)
	same(t, "bars", texts(p, ".overtime tbody tr"), "2026-03-02 12:00:00.9 1", "2026-03-02 12:00:00.999 1", "2026-03-02 12:00:01 1", "2026-03-02 12:00:01.15 1")
	p.Wait(`[...document.querySelectorAll('.ticks text')].map((e) => e.textContent).join() === '12:00:00.9,2026-03-02,12:00:01,12:00:01.1'`)
	p.Clean()
}

// testSlider moves the slider with the keyboard over each N, for each span.
func testSlider(t *testing.T, b *browsertest.Browser) {
	r := sampleReport(t, replay.Config{})
	p := open(t, b, r, time.UTC, 1440, 900)
	for i, limit := range r.SuggestedLimits {
		p.Click(fmt.Sprintf(".whatif .choice button:nth-child(%d)", i+1))
		var shown []string
		p.JS(`(() => {
			const range = document.querySelector('#limit'), shown = [];
			for (let i = 0; i <= Number(range.max); i++) {
				range.value = i;
				range.dispatchEvent(new Event('input'));
				shown.push([...document.querySelectorAll('.question .big')].map((e) => e.textContent).join(': '));
				if (!range.getAttribute('aria-valuetext').startsWith(shown.at(-1).replace(/ of .*/, ''))) shown.push('the value text is another');
			}
			return shown;
		})()`, &shown)
		span := []string{"1 s", "10 s", "1 min", "5 min", "1 h"}[i]
		var want []string
		if n := limit.KeysAbove[0][0]; n > 1 {
			want = append(want, fmt.Sprintf("%s per %s: %s of %s keys", grouped(n-1), span, grouped(int64(r.Keys)), grouped(int64(r.Keys))))
		}
		for _, step := range limit.KeysAbove {
			want = append(want, fmt.Sprintf("%s per %s: %s of %s keys", grouped(step[0]), span, grouped(step[1]), grouped(int64(r.Keys))))
		}
		same(t, "steps of "+limit.Span, shown, want...)
	}
	p.JS(`document.querySelector('#limit').focus()`, nil)
	p.Keys("Home")
	p.Wait(`document.querySelector('#limit').value === '0'`)
	p.Keys("ArrowRight")
	p.Wait(`document.querySelector('#limit').value === '1'`)
	p.Clean()
}

// testZone writes times in the zone of the page.
func testZone(t *testing.T, b *browsertest.Browser) {
	r := sampleReport(t, replay.Config{}, "ban", "100/5m:1h")
	zone := must.Get(time.LoadLocation("Asia/Kolkata"))(t)
	p := open(t, b, r, zone, 1440, 900)
	same(t, "bans", texts(p, ".bans tbody tr:first-child > :nth-child(3)"), r.Rules[0].BanList[0].Start.In(zone).Format(time.DateTime))
	if head := texts(p, ".reporthead .sentence")[0]; !strings.Contains(head, "from 2026-03-02 05:30:00 to 2026-03-03 05:29:50 Asia/Calcutta (") && !strings.Contains(head, " Asia/Kolkata (") {
		t.Errorf("heading: %s", head)
	}
	p.Clean()
}

// testHostile shows the keys of strangers as text, with what hides or reorders text
// written out.
func testHostile(t *testing.T, b *browsertest.Browser) {
	r := hostileReport(t)
	for _, size := range [][2]int{{1440, 900}, {390, 844}} {
		p := open(t, b, r, time.UTC, size[0], size[1])
		p.JS(`document.querySelectorAll('details').forEach((e) => (e.open = true))`, nil)
		p.Wait(`document.querySelectorAll('.log tbody tr').length === 2 && document.querySelectorAll('.effects tbody tr').length > 10`)
		var bad []string
		p.JS(`(() => {
			const bad = [];
			if (window.owned) bad.push('a key ran as code');
			for (const e of document.querySelectorAll('img, iframe, object, main script, main [onclick], main [onerror], main [onload]')) bad.push('a key became ' + e.outerHTML.slice(0, 80));
			const text = document.body.innerText + document.title + [...document.querySelectorAll('[title], [aria-label]')].map((e) => e.title + e.getAttribute('aria-label')).join('');
			const sly = text.match(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g);
			if (sly) bad.push('shown raw: ' + JSON.stringify(sly));
			if (document.documentElement.scrollWidth > `+fmt.Sprint(size[0])+`) bad.push('a key makes the page wider');
			return bad;
		})()`, &bad)
		for _, x := range bad {
			t.Errorf("%d wide: %s", size[0], x)
		}
		shown := strings.Join(texts(p, ".busiest .key"), "\n")
		for _, want := range []string{`<img src=x onerror="window.owned=1">`, `</script><script>window.owned=1</script>`, `\u202egnp.exe\u2066\x1b[31m\x00end`, `a\u2028b\u2029c`, `bytes\xff\xfe</script>\x1b`, "more…"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%d wide: no %s in\n%s", size[0], want, shown)
			}
		}
		p.Picture(fmt.Sprintf("hostile-%d", size[0]))
		p.Clean()
	}
}

// testNothingLeaves opens a page and uses all of it: the only request is for the page. Any other is blocked, which shows
// that the policy is in force.
func testNothingLeaves(t *testing.T, b *browsertest.Browser) {
	p := open(t, b, hostileReport(t), time.UTC, 1440, 900)
	p.JS(`document.querySelectorAll('details, button').forEach((e) => e.matches('details') ? (e.open = true) : e.click())`, nil)
	p.Wait(`document.querySelectorAll('tbody tr').length > 50`)
	for i, address := range p.Requests() {
		if (i > 0 || !strings.HasPrefix(address, "file:")) && !strings.HasPrefix(address, "data:") {
			t.Errorf("the page requests %s", address)
		}
	}
	if len(p.Requests()) == 0 {
		t.Error("not even the page was requested: requests are not seen")
	}
	p.Clean()
	for _, fault := range []string{
		`fetch('http://127.0.0.1:9/').catch(() => 0)`,
		`document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:9/x.png'}))`,
		`document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', href: 'http://127.0.0.1:9/x.css'}))`,
		`(() => { const s = document.createElement('style'); s.textContent = 'p { color: red }'; document.head.append(s); })()`,
		`(() => { try { document.body.innerHTML = '<img src=x>'; } catch { } })()`,
		`(() => { const s = document.createElement('script'); try { s.textContent = 'window.owned = 1'; } catch { } document.head.append(s); })()`,
	} {
		p.JS(fault+`; new Promise((done) => setTimeout(done, 50))`, nil)
		if len(p.Complaint()) == 0 {
			t.Errorf("nothing complains of %s", fault)
		}
	}
	p.JS(`if (window.owned) throw new Error('a script ran')`, nil)
}

// testLinks follows the link of a busy key to its part of the report.
func testLinks(t *testing.T, b *browsertest.Browser) {
	r := sampleReport(t, replay.Config{Traffic: true}, "limit", "60/1m", "ban", "100/5m:1h")
	p := open(t, b, r, time.UTC, 1440, 900)
	if shown := texts(p, ".abouts details[open]"); len(shown) != 0 {
		t.Errorf("open before a link is followed: %q", shown)
	}
	p.JS(`document.querySelector('.busiest tbody tr:nth-child(1) a').click()`, nil)
	p.Wait(`document.querySelectorAll('#key-1[open] table').length > 2`)
	k := r.Top[0]
	same(t, "summary", texts(p, "#key-1 summary"), k.Values()...)
	same(t, "sentence", texts(p, "#key-1 .sentence"), fmt.Sprintf("%s events, %.1f %% of all, and %s bytes.", commas(k.Count), 100*float64(k.Count)/float64(r.Events), commas(*k.Traffic.Bytes)))
	same(t, "tables", texts(p, "#key-1 thead th:first-child")[:2], "Rule", "Banned by")
	want := []string{}
	for _, v := range k.Traffic.Fields[0].Top {
		want = append(want, v.Values()[0])
	}
	same(t, "statuses", texts(p, "#key-1 .scroll[aria-label$=' of status'] tbody th"), want...)
	if others := texts(p, ".abouts details[open]"); len(others) != 1 {
		t.Errorf("%d keys are open; want 1", len(others))
	}
	p.Clean()
}

// commas returns n with a comma between thousands.
func commas(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// testAccessible looks at the page, dark and light, on a desk and on a phone, with all
// tables open.
func testAccessible(t *testing.T, b *browsertest.Browser) {
	r := sampleReport(t, replay.Config{Traffic: true}, "limit", "60/1m", "ban", "100/5m:1h", "hot", "200/1m")
	r.Problems = []string{"other.log: cannot be read: permission denied"}
	p := open(t, b, r, time.UTC, 1440, 900)
	p.JS(`document.querySelectorAll('details').forEach((e) => (e.open = true))`, nil)
	p.Wait(`document.querySelectorAll('.tables tbody tr').length > 100`)
	for _, theme := range []string{"dark", "light"} {
		p.Media("prefers-color-scheme: " + theme)
		for _, size := range [][2]int{{1440, 900}, {390, 844}} {
			p.Size(size[0], size[1])
			p.Wait(fmt.Sprint(`document.documentElement.scrollWidth <= `, size[0]))
			p.Wait(`innerWidth < 1440 || document.querySelector('.busiest .scroll').scrollWidth <= document.querySelector('.busiest .scroll').clientWidth`)
			p.Accessible(fmt.Sprintf("%s, %d wide", theme, size[0]))
		}
	}
	p.Clean()
}

// testNoEvent shows a report without events.
func testNoEvent(t *testing.T, b *browsertest.Browser) {
	p := open(t, b, &replay.Report{Files: []string{"empty.log"}, Top: []replay.TopKey{}, Rules: []replay.RuleReport{}, Problems: []string{"empty.log: no line"}}, time.UTC, 390, 844)
	same(t, "heading", texts(p, ".reporthead > *"), "Replay of empty.log", "There is no event.")
	same(t, "problems", texts(p, ".notice"), "empty.log: no line")
	p.Accessible("no event")
	p.Clean()
}

// testPicture makes the pictures that people look at, and needs LATELY_SCREENSHOTS.
func testPicture(t *testing.T, b *browsertest.Browser) {
	if os.Getenv("LATELY_SCREENSHOTS") == "" {
		t.Skip("LATELY_SCREENSHOTS names no folder")
	}
	r := sampleReport(t, replay.Config{Traffic: true}, "limit", "60/1m", "ban", "100/5m:1h", "hot", "200/1m")
	for _, theme := range []string{"dark", "light"} {
		for _, width := range []int{1440, 390} {
			p := open(t, b, r, time.UTC, width, 900)
			p.Media("prefers-color-scheme: " + theme)
			var height int
			p.JS(`document.documentElement.scrollHeight`, &height)
			p.Size(width, height)
			p.Picture(fmt.Sprintf("replay-%s-%d", theme, width))
		}
	}
}
