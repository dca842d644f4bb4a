package replay_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

var resolutions = []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second, time.Minute}

// TestShortFormOfGeneratedLogs replays logs whose requests look real, with late and bad lines and with paths that are not
// UTF-8, under what-ifs of every kind.
func TestShortFormOfGeneratedLogs(t *testing.T) {
	rnd := randtest.New(t)
	for _, format := range []string{"clf", "json-nginx", "messages"} {
		log := generated(t, rnd, format, accesslogtest.Config{Lines: 3000, Duration: 2 * time.Hour})
		want := readLog(t, format, 2026, log)
		if want.lines != 3000 || want.bad < 2 || want.bad > 2 && format == "clf" {
			t.Fatalf("%s: the reference reads %d lines, %d bad", format, want.lines, want.bad)
		}
		path := writeFile(t, "access.log", log)
		for _, resolution := range resolutions {
			t.Run(fmt.Sprint(format, "/", resolution), func(t *testing.T) {
				checkShortForm(t, rnd, replay.Config{Files: []string{path}, Year: 2026, Resolution: resolution, Cores: 1 + rnd.IntN(4)}, want)
			})
		}
	}
}

// TestShortFormOfRandomLogs replays small logs made by the test, whose events are known without a parser, cut into several
// files.
func TestShortFormOfRandomLogs(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 400
	if testing.Short() {
		rounds = 60
	}
	dir := t.TempDir()
	for range rounds {
		resolution := pick(rnd, resolutions...)
		makers := []lineMaker{jsonListLine, csvLine, clfLine}
		maker := makers[rnd.IntN(len(makers))]
		c := replay.Config{
			Resolution: resolution, Cores: 1 + rnd.IntN(4),
			Key: pick(rnd, "client", "object", "user"), Top: pick(rnd, 0, 1, 3),
		}
		var want refLog
		step := pick(rnd, time.Millisecond, 300*time.Millisecond, 2*time.Second, time.Minute)
		clock := time.Date(pick(rnd, 1969, 1970, 2024), 12, 31, 23, 59, 50, 0, time.UTC)
		for file := range 1 + rnd.IntN(4) {
			var data []byte
			for range rnd.IntN(40) {
				clock = clock.Add(time.Duration(rnd.Int64N(int64(step)*10)) - 3*step)
				format, line, log := maker(rnd, clock)
				c.Format = format
				want.add(log)
				data = append(append(data, line...), pick(rnd, "\n", "\n", "\r\n")...)
			}
			if rnd.IntN(2) == 0 && !bytes.HasSuffix(data, []byte("\n\n")) && len(data) > 1 { // an empty line needs its end
				data = bytes.TrimSuffix(data, []byte("\n"))
			}
			if rnd.IntN(4) == 0 {
				data = gzipped(t, data)
			}
			path := filepath.Join(dir, fmt.Sprint(file))
			must.Do(t, os.WriteFile(path, data, 0o600))
			c.Files = append(c.Files, path)
		}
		if c.Format == "" {
			continue // no line at all
		}
		checkShortForm(t, rnd, c, want)
		if t.Failed() {
			for _, path := range c.Files {
				data, _ := os.ReadFile(path)
				t.Logf("%s\n%q", path, data)
			}
			t.Fatalf("config %+v", c)
		}
	}
}

// A lineMaker makes a line and returns its event.
type lineMaker func(rnd *rand.Rand, at time.Time) (format, line string, says refLog)

func good(records ...record) refLog { return refLog{lines: 1, records: records} }

var badLine = refLog{lines: 1, bad: 1}

func jsonListLine(rnd *rand.Rand, at time.Time) (format, line string, says refLog) {
	const spec = "json:time=t@ms,client=c,object=o[],user=u"
	at = at.Truncate(time.Millisecond)
	ms := at.UnixMilli()
	client := pick(rnd, "a", "b", "c\u00e9")
	switch rnd.IntN(8) {
	case 0:
		return spec, fmt.Sprintf(`{"t":%d,"o":["x"]}`, ms), badLine // no client
	case 1:
		return spec, fmt.Sprintf(`{"t":%d,"c":%q}`, ms, client), badLine // no list
	case 2:
		return spec, pick(rnd, "", "{", "null", `{"t":"soon","c":"a","o":[]}`), badLine
	}
	first := record{at, map[string]string{"client": client}}
	user := ""
	if rnd.IntN(2) == 0 {
		first.values["user"] = "u1"
		user = `,"u":"u1"`
	}
	var list []string
	records := []record{first}
	for i := range rnd.IntN(4) {
		object := pick(rnd, "x", "y", "7")
		list = append(list, strings.ReplaceAll(`"`+object+`"`, `"7"`, "7"))
		if i == 0 {
			first.values["object"] = object
			continue
		}
		values := map[string]string{"object": object}
		if user != "" {
			values["user"] = "u1"
		}
		records = append(records, record{at, values})
	}
	return spec, fmt.Sprintf(`{"t":%d,"c":%q,"o":[%s]%s}`, ms, client, strings.Join(list, ","), user), good(records...)
}

func csvLine(rnd *rand.Rand, at time.Time) (format, line string, says refLog) {
	const spec = "csv:time=1@ms,client=2,object=3,user=4"
	at = at.Truncate(time.Millisecond)
	client, object, user := pick(rnd, "a", "b", "\xff\x80"), pick(rnd, "x", "y,y", "\xe9", ""), pick(rnd, "u1", "u2", "")
	cell := func(s string) string {
		if strings.Contains(s, ",") || rnd.IntN(4) == 0 {
			return `"` + s + `"`
		}
		return s
	}
	line = fmt.Sprintf("%d,%s,%s,%s", at.UnixMilli(), cell(client), cell(object), cell(user))
	switch rnd.IntN(10) {
	case 0:
		return spec, fmt.Sprintf("%d,,%s,%s", at.UnixMilli(), cell(object), cell(user)), badLine // no client
	case 1:
		return spec, pick(rnd, "", "time,client,object,user", "5,a,x", "0x5,a,x,u"), badLine
	}
	values := map[string]string{"client": client, "user": user} // an empty column is an empty key
	if object != "" {
		values["object"] = object // but an empty object is not an event
	}
	return spec, line, good(record{at, values})
}

func clfLine(rnd *rand.Rand, at time.Time) (format, line string, says refLog) {
	at = at.Truncate(time.Second)
	client, user := pick(rnd, "192.0.2.1", "::1", "h\xff"), pick(rnd, "-", "u1", "u 2")
	values := map[string]string{"client": client}
	if user != "-" {
		values["user"] = user
	}
	request := "-"
	if rnd.IntN(5) > 0 {
		object := pick(rnd, "/a", "/\xe9", "", "/b")
		request = "GET " + object + pick(rnd, "?", "?q=1") + " HTTP/1.1"
		values["object"] = object // which is empty when all of the target is a query
	}
	zone := time.FixedZone("", 60*pick(rnd, 0, 330, -90))
	line = fmt.Sprintf(`%s - %s [%s] "%s" 200 -`, client, user, at.In(zone).Format("02/Jan/2006:15:04:05 -0700"), request)
	switch rnd.IntN(10) {
	case 0:
		return "clf", line[:len(line)-7], badLine
	case 1:
		return "clf", strings.Replace(line, "["+at.In(zone).Format("02"), "[32", 1), badLine
	}
	return "clf", line, good(record{at, values})
}

// checkShortForm replays c under random what-ifs, and compares the whole report
// with the reference.
func checkShortForm(t *testing.T, rnd *rand.Rand, c replay.Config, want refLog) {
	t.Helper()
	c.CountRefused = rnd.IntN(2) == 0
	c.Algorithm = pick(rnd, ratelimit.Exact, ratelimit.Sliding)
	span := func() string {
		return rulevalue.FormatDuration(c.Resolution * pick[time.Duration](rnd, 1, 2, 7, 60, 300))
	}
	n := func() int { return pick(rnd, 0, 1, 2, 5, 10, 40) }
	has := make(map[string]bool)
	for _, rec := range want.records {
		for field, value := range rec.values {
			has[field] = has[field] || value != ""
		}
	}
	if !has["client"] || !has["object"] { // which what-ifs are about by default
		return
	}
	if c.Key != "" && !has[c.Key] {
		c.Key = "client"
	}
	hot := []string{"", "", "client:"}
	if has["user"] {
		hot = append(hot, "user:")
	}
	for range 3 {
		c.WhatIfs = append(c.WhatIfs,
			whatIf(t, replay.Limit, "%d/%s", n(), span()),
			whatIf(t, replay.Ban, "%d/%s:%s", n(), span(), pick(rnd, "1s", "90s", "1h", "7ms")),
			whatIf(t, replay.Hot, "%s%d/%s", pick(rnd, hot...), 1+n(), span()))
	}
	rnd.Shuffle(len(c.WhatIfs), func(i, j int) { c.WhatIfs[i], c.WhatIfs[j] = c.WhatIfs[j], c.WhatIfs[i] })
	r := must.Get(replay.Run(t.Context(), c))(t)
	for _, p := range r.Problems {
		if !strings.Contains(p, "none of its ") { // one file's lines may all be bad
			t.Fatal(p)
		}
	}
	if r.Lines != want.lines || r.Bad != want.bad || r.Parsed != want.lines-want.bad || r.Events != int64(len(want.records)) {
		t.Errorf("lines, bad, parsed, events: %d %d %d %d; want %d lines, %d bad, %d events",
			r.Lines, r.Bad, r.Parsed, r.Events, want.lines, want.bad, len(want.records))
		return
	}
	moments := ordered(want.records, c.Resolution)
	text := strings.HasPrefix(r.Format, "json")
	checkRank(t, r, c, refRank(hitsOf(moments, r.Key)))
	for i, w := range c.WhatIfs {
		got := &r.Rules[i]
		field := w.Key
		if field == "" && w.Kind == replay.Hot {
			field = "object"
		} else if field == "" {
			field = r.Key
		}
		if got.Name != w.Text || got.Kind != w.Kind || got.Fields[0] != field || got.N != w.N || got.SpanSeconds != w.Span.Seconds() {
			t.Errorf("rule %d is %+v, want %+v", i, got, w)
		}
		checkWhatIf(t, c, got, w, hitsOf(moments, field), text)
	}
}

var peakSpans = map[string]time.Duration{"1s": time.Second, "10s": 10 * time.Second, "60s": time.Minute, "300s": 5 * time.Minute, "3600s": time.Hour}

func checkRank(t *testing.T, r *replay.Report, c replay.Config, want []refTop) {
	t.Helper()
	if r.Keys != len(want) {
		t.Errorf("%d keys, want %d", r.Keys, len(want))
	}
	most := c.Top
	if most == 0 {
		most = 20
	}
	want = want[:min(most, len(want))]
	if len(r.Top) != len(want) {
		t.Fatalf("%d top keys, want %d", len(r.Top), len(want))
	}
	for i, w := range want {
		got := r.Top[i]
		if got.Values()[0] != w.key || got.Count != int64(len(w.times)) {
			t.Errorf("top key %d is %q with %d, want %q with %d", i, got.Values()[0], got.Count, w.key, len(w.times))
		}
		for name, span := range peakSpans {
			if got.Peaks[name] != int64(w.peak(span)) {
				t.Errorf("peak of %q in %s is %d, want %d", w.key, name, got.Peaks[name], w.peak(span))
			}
		}
		if len(got.Peaks) != len(peakSpans) {
			t.Errorf("peaks %v", got.Peaks)
		}
	}
}

func checkWhatIf(t *testing.T, c replay.Config, got *replay.RuleReport, w replay.WhatIf, hits []hit, text bool) {
	t.Helper()
	if w.Kind == replay.Hot {
		checkFirst(t, got, refHot(hits, w.N, w.Span), text)
		return
	}
	var decisions []byte
	var starts []hit
	if w.Kind == replay.Limit {
		decisions = refLimit(hits, w.N, w.Span, c.CountRefused)
	} else {
		decisions, starts = refBan(hits, w.N, w.Span, w.For)
		banned := make(map[string]bool)
		for _, s := range starts {
			banned[s.key] = true
		}
		if *got.Bans != int64(len(starts)) || *got.BannedKeys != int64(len(banned)) || got.StartsSHA256 != hitDigest(starts, text) {
			t.Errorf("ban %s: %d bans of %d keys, digest %s; want %v", w.Text, *got.Bans, *got.BannedKeys, got.StartsSHA256, starts)
		}
	}
	allowed, refused := make(map[string]int64), make(map[string]int64)
	for i, h := range hits {
		if decisions[i] == 'A' {
			allowed[h.key]++
		} else {
			refused[h.key]++
		}
	}
	if *got.KeysRefused != int64(len(refused)) || got.SHA256 != hexDigest(decisions) {
		t.Errorf("%s %s: %d keys refused, digest %s; want %d keys, decisions %s", w.Kind, w.Text, *got.KeysRefused, got.SHA256, len(refused), decisions)
	}
	if n := int64(bytes.Count(decisions, []byte("D"))); *got.Refused != n || *got.Allowed != int64(len(decisions))-n {
		t.Errorf("%s %s: %d allowed, %d refused; want %d of %d refused", w.Kind, w.Text, *got.Allowed, *got.Refused, n, len(decisions))
	}
	most := c.Top
	if most == 0 {
		most = 20
	}
	for i, k := range refRank(hits)[:len(got.Busiest)] {
		if b := got.Busiest[i]; b.Values()[0] != k.key || b.Allowed != allowed[k.key] || b.Refused != refused[k.key] {
			t.Errorf("%s %s: busiest %d is %+v; want %q, %d, %d", w.Kind, w.Text, i, b, k.key, allowed[k.key], refused[k.key])
		}
	}
	if n := min(most, len(refRank(hits))); len(got.Busiest) != n {
		t.Errorf("%s %s: %d busiest keys, want %d", w.Kind, w.Text, len(got.Busiest), n)
	}
}

func checkFirst(t *testing.T, got *replay.RuleReport, want []hit, text bool) {
	t.Helper()
	if *got.HotKeys != int64(len(want)) || got.SHA256 != hitDigest(want, text) {
		t.Errorf("hot %s: %d keys, digest %s; want %v", got.Name, *got.HotKeys, got.SHA256, want)
	}
	want = want[:min(len(want), 100)]
	if len(got.FirstHot) != len(want) {
		t.Errorf("hot %s: %d first edges, want %d", got.Name, len(got.FirstHot), len(want))
		return
	}
	for i, h := range want {
		if m := got.FirstHot[i]; m.T.String() != epochText(h.t) || strings.Join(m.Values(), "\t") != h.key {
			t.Errorf("hot %s: edge %d is %s %q, want %s %q", got.Name, i, m.T, m.Key, epochText(h.t), h.key)
		}
	}
}

// TestEmptyElementIsSkipped has an empty text in a list: no object, wherever
// in the list it stands.
func TestEmptyElementIsSkipped(t *testing.T) {
	path := writeFile(t, "a.json", []byte(`{"t":1,"c":"a","o":["","x",""]}`+"\n"))
	r := mustRun(t, replay.Config{Files: []string{path}, Format: "json:time=t@s,client=c,object=o[]", Key: "object"})
	if r.Keys != 1 || len(r.Top) != 1 || r.Top[0].Count != 1 {
		t.Errorf("objects %+v, want x alone", r.Top)
	}
}
