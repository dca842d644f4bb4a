package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

// A mixedLog is a day of people, with clients that a reader would notice.
type mixedLog struct {
	lines []string
	times []int64
}

func (l *mixedLog) add(at int64, client, request string, status int, agent string) {
	l.times = append(l.times, at)
	l.lines = append(l.lines, fmt.Sprintf("%s - - [%s] %q %d 512 \"-\" %q\n", client, time.Unix(at, 0).UTC().Format("02/Jan/2006:15:04:05 -0700"), request, status, agent))
}

// text returns the lines in the order of time.
func (l *mixedLog) text() string {
	order := make([]int, len(l.times))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(l.times[a] - l.times[b]) })
	var b strings.Builder
	for _, i := range order {
		b.WriteString(l.lines[i])
	}
	return b.String()
}

// The clients of a mixed log that are not people.
const (
	monitorAddress = "192.0.2.10"
	crawlerAddress = "192.0.2.20"
	bruteAddress   = "203.0.113.1"
	scraperAddress = "203.0.113.2"
	scanAddress    = "203.0.113.3"
)

// newMixedLog returns people, a monitor and a crawler and, with attacks, a brute force, a
// scraper and a scan.
func newMixedLog(t *testing.T, attacks bool) *mixedLog {
	rnd, l := randtest.New(t), new(mixedLog)
	const start, day = 1_700_006_400, 86_400
	for person := range 200 {
		client := fmt.Sprintf("198.51.100.%d", person)
		for range 1 + rnd.IntN(3) {
			at := start + rnd.Int64N(day-600)
			for range 5 + rnd.IntN(25) {
				status := 200
				if rnd.IntN(25) == 0 {
					status = 404
				}
				l.add(at, client, fmt.Sprintf("GET /page/%d HTTP/1.1", rnd.IntN(50)), status, "Mozilla/5.0")
				at += rnd.Int64N(8)
			}
			if rnd.IntN(10) == 0 {
				l.add(at, client, "POST /login HTTP/1.1", 200, "Mozilla/5.0")
			}
		}
	}
	for minute := range int64(day / 60) {
		l.add(start+60*minute, monitorAddress, "GET /health HTTP/1.1", 200, "checks")
	}
	for i := range int64(300) {
		path := fmt.Sprintf("/page/%d", i%50)
		if i == 0 {
			path = "/robots.txt"
		}
		l.add(start+i*200, crawlerAddress, "GET "+path+" HTTP/1.1", 200, "ExampleBot/1.0 (+http://bot.example/)")
	}
	if !attacks {
		return l
	}
	for i := range int64(900) {
		l.add(start+30_000+2*i, bruteAddress, "POST /login HTTP/1.1", 200, "curl/8")
	}
	for i := range int64(5000) {
		l.add(start+50_000+i/5, scraperAddress, fmt.Sprintf("GET /page/%d HTTP/1.1", i), 200, "Mozilla/5.0 (scraper)")
	}
	for i := range int64(400) {
		l.add(start+70_000+i, scanAddress, fmt.Sprintf("GET /%d.php HTTP/1.1", i), 404, "Mozilla/5.0")
	}
	return l
}

// TestSuggestAllowsMonitors has more monitors than attackers are named, one of them with the name of a host: the suggested
// file refuses none of their events.
func TestSuggestAllowsMonitors(t *testing.T) {
	log := newMixedLog(t, false)
	for part := range int64(24 * 6) {
		at := 1_700_006_400 + 600*part
		for i := range 12 {
			for range 30 {
				log.add(at, fmt.Sprintf("192.0.2.%d", 100+i), "GET /health HTTP/1.1", 200, "checks")
			}
		}
		log.add(at, "monitor.example", "GET /health HTTP/1.1", 200, "checks")
	}
	c := replay.Config{Files: []string{writeFile(t, "log", []byte(log.text()))}}
	s := mustSuggest(t, replay.SuggestConfig{Config: c})
	c.Rules = must.Get(rules.Parse("suggested", []byte(s.Rules)))(t)
	r := mustRun(t, c)
	if n := len(c.Rules.Allow.Clients); n != 13 || r.All.Refused != 0 || s.All.Refused != 0 {
		t.Errorf("%d clients under allow, %d events refused, %d by the suggestion\n%s", n, r.All.Refused, s.All.Refused, s.Rules)
	}
	if want := fmt.Sprintf("by %d distinct values of client", r.Keys); !strings.Contains(s.Rules, want) {
		t.Errorf("the suggestion is not about limits %s\n%.200s", want, s.Rules)
	}
}

// TestSuggestFindsOutliers has a proposal that refuses each attacker in a mixed log and no other client, and allows the
// monitor. Without the attacks, the proposal refuses no client: the control for both.
func TestSuggestFindsOutliers(t *testing.T) {
	for _, attacks := range []bool{true, false} {
		log := newMixedLog(t, attacks).text()
		c := replay.Config{Files: []string{writeFile(t, "log", []byte(log))}}
		s := mustSuggest(t, replay.SuggestConfig{Config: c})
		kinds := map[string]replay.OutlierKind{}
		for _, o := range s.Outliers {
			kinds[o.Values()[0]] = o.Kind
		}
		want := map[string]replay.OutlierKind{monitorAddress: replay.Monitor, crawlerAddress: replay.Crawler}
		var refused []string
		if attacks {
			want[bruteAddress], want[scraperAddress], want[scanAddress] = replay.Login, replay.Flood, replay.Scan
			refused = []string{bruteAddress, scraperAddress, scanAddress}
		}
		if fmt.Sprint(kinds) != fmt.Sprint(want) {
			t.Errorf("outliers %v, want %v", kinds, want)
		}
		file, err := rules.Parse("suggested", []byte(s.Rules))
		if err != nil {
			t.Fatalf("%v\n%s", err, s.Rules)
		}
		if fmt.Sprint(file.Allow.Clients) != "["+monitorAddress+"/32]" {
			t.Errorf("allow %v, want the monitor", file.Allow)
		}
		checkSuggestedTotals(t, c, s, file)
		c.Rules, c.Sort, c.Top = file, replay.SortRefused, 1000
		var got []string
		for _, k := range mustRun(t, c).Top {
			got = append(got, k.Values()[0])
		}
		slices.Sort(got)
		if !slices.Equal(got, refused) || s.All.KeysRefused != int64(len(refused)) || s.All.Outliers != int64(len(refused)) {
			t.Errorf("the proposal refuses %q, want %q; %+v\n%s", got, refused, s.All, s.Rules)
		}
		if attacks != strings.Contains(s.Rules, `when: {method: "POST", path: "/login"}`) || attacks != strings.Contains(s.Rules, `when: {status: "4xx"}`) {
			t.Errorf("groups of logins and failures, want %v:\n%s", attacks, s.Rules)
		}
	}
}

// TestSuggestByShareAlone has the limits of a share spare attackers as they do others.
func TestSuggestByShareAlone(t *testing.T) {
	c := replay.Config{Files: []string{writeFile(t, "log", []byte(newMixedLog(t, true).text()))}}
	s := mustSuggest(t, replay.SuggestConfig{Config: c, Share: 100})
	if s.All.Refused != 0 || len(s.Outliers) != 0 || strings.Contains(s.Rules, "allow:") {
		t.Errorf("--share 100 refuses %d events and names %d outliers\n%s", s.All.Refused, len(s.Outliers), s.Rules)
	}
}

// TestSuggestBansInProportion has bans of ten times the span, from a minute to a day.
func TestSuggestBansInProportion(t *testing.T) {
	c := replay.Config{Files: []string{writeFile(t, "log", []byte(newMixedLog(t, true).text()))}}
	s := mustSuggest(t, replay.SuggestConfig{Config: c})
	file := must.Get(rules.Parse("suggested", []byte(s.Rules)))(t)
	want := map[time.Duration]time.Duration{time.Second: time.Minute, time.Minute: 10 * time.Minute, time.Hour: 10 * time.Hour, 24 * time.Hour: 24 * time.Hour}
	for _, r := range file.Limits.Rules() {
		if r.Ban == nil || r.Ban.For != want[r.Limits[0].Span] {
			t.Errorf("%s: ban %+v, want for %v", r.Name, r.Ban, want[r.Limits[0].Span])
		}
	}
}

// A client limited by a server differs from one with failed logins: an outlier gets the reason that the log has for most of
// its events.
func TestSuggestNamesReasons(t *testing.T) {
	for message, want := range map[string]string{
		`limiting requests, excess: 5.000 by zone "x"`: "192.0.2.1, scan: 60 events (100.0 %), 100 % limited, in 1 of 1 hour",
		`user "x": password mismatch`:                  "192.0.2.1, login: 60 events (100.0 %), 100 % failed logins, in 1 of 1 hour",
	} {
		var log strings.Builder
		for i := range 60 {
			fmt.Fprintf(&log, "2018/04/17 06:25:%02d [error] 1#1: *%d %s, client: 192.0.2.1, server: _, request: \"GET / HTTP/1.1\", host: \"h\"\n", i, i, message)
		}
		s := mustSuggest(t, replay.SuggestConfig{Config: replay.Config{Files: []string{"-"}, Stdin: strings.NewReader(log.String()), Key: "client"}})
		if !strings.Contains(s.Rules, want) {
			t.Errorf("%s: no %q in\n%s", message, want, s.Rules)
		}
	}
}
