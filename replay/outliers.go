package replay

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/counting/ring"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/match"
)

// An Outlier is a key whose events differ from those of most keys. Only crawlers affect
// the suggested limits.
type Outlier struct {
	api.Key
	Kind    OutlierKind `json:"kind"`
	Events  int64       `json:"events"`
	Hours   int         `json:"hours"` // of the log, in which it has an event
	Traffic *Traffic    `json:"traffic"`

	about string // a sentence without the key
}

// An OutlierKind is the probable kind of an outlier.
type OutlierKind string

// The kinds of outliers.
const (
	Monitor OutlierKind = "monitor" // repeats the same successful request for most of the log: proposed for allow
	Crawler OutlierKind = "crawler" // declares itself a crawler and read robots.txt: proposed for allow once its address is verified
	Scan    OutlierKind = "scan"    // most of its requests failed, on many paths or with statuses such as 403
	Login   OutlierKind = "login"   // tries to log in again and again
	Flood   OutlierKind = "flood"   // at its busiest, several times as busy as every other key
)

// ordinary reports whether the suggested limits must not refuse such keys.
func (k OutlierKind) ordinary() bool { return k == "" || k == Crawler }

// fewEvents is how many events a key has at least that is an outlier.
const fewEvents = 30

// findOutliers finds the outliers of the group of all events.
func (s *suggesting) findOutliers() {
	g, t, hours := &s.groups[0], s.run.newTally(), s.hours(nil)
	profileOf := func(id int) profile {
		own := g.own[g.from[id]:g.from[id+1]]
		t.reset()
		t.add(s.events, own)
		return s.profile(t, own, hours)
	}
	for id := range s.kinds {
		if g.from[id+1]-g.from[id] >= fewEvents {
			p := profileOf(id)
			switch s.kinds[id] = p.kind(); {
			case s.kinds[id] == Login && p.posts > 0:
				s.logins = append(s.logins, p.path)
			case s.kinds[id] == Monitor && !s.mayAllow(g.keys.texts[id]): // the limits have to spare it
				s.kinds[id] = ""
			}
		}
	}
	s.findFloods(g)
	if s.allOutliers(g) { // and so there is nobody whom limits must spare
		defer clear(s.kinds)
	}
	for id, kind := range s.kinds {
		if kind != "" {
			p := profileOf(id)
			s.outliers = append(s.outliers, Outlier{Key: api.KeyOf(g.keys.texts[id]), Kind: kind, Events: p.events, Hours: p.hours, Traffic: t.report(s.events, 3), about: p.about()})
		}
	}
	slices.SortFunc(s.outliers, func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), slices.Compare(a.Values(), b.Values()))
	})
}

// allOutliers reports whether no key of g is an ordinary one.
func (s *suggesting) allOutliers(g *suggestGroup) bool {
	for id, kind := range s.kinds {
		if g.from[id+1] > g.from[id] && kind.ordinary() {
			return false
		}
	}
	return true
}

// hours returns in how many hours of the clock there is an event.
func (s *suggesting) hours(own []int32) (n int) {
	last := int64(math.MinInt64)
	add := func(t int64) {
		if hour := ring.FloorDiv(t, int64(time.Hour)); hour != last {
			n, last = n+1, hour
		}
	}
	for _, event := range own {
		add(s.times[event])
	}
	if own == nil {
		for _, t := range s.times {
			add(t)
		}
	}
	return n
}

// A profile is the counts that distinguish the kinds of outliers.
type profile struct {
	events           int64
	hours, logHours  int
	path             string // the most frequent
	onPath, paths    int64
	failed, notFound int64  // events with status 4xx, and those of 404
	unchanged        int64  // of status 304
	succeeded        int64  // of status 2xx and 3xx
	posts, reads     int64  // of method POST, and of GET, HEAD and OPTIONS
	failures         int64  // events whose reason is a failed login
	reason           string // the most frequent of the other reasons
	faults, onReason int64  // events with these, and with that
	agent            string
	onAgent, agents  int64
	robots           bool
}

func (s *suggesting) profile(t *tally, own []int32, logHours int) profile {
	e := s.events
	p := profile{events: t.events, hours: s.hours(own), logHours: logHours}
	status, method, path, agent := t.field("status"), t.field("method"), t.field("path"), t.field("agent")
	p.path, p.onPath = path.top(e)
	p.agent, p.onAgent = agent.top(e)
	p.paths, p.agents = int64(len(path.seen)), int64(len(agent.seen))
	p.failed = status.count(e, func(v string) bool { return strings.HasPrefix(v, "4") && v != "408" && v != "499" })
	p.notFound = status.count(e, func(v string) bool { return v == "404" })
	p.unchanged = status.count(e, func(v string) bool { return v == "304" })
	p.succeeded = status.count(e, func(v string) bool { return v[0] == '2' || v[0] == '3' })
	p.posts = method.count(e, func(v string) bool { return v == "POST" })
	p.reads = method.count(e, func(v string) bool { return v == "GET" || v == "HEAD" || v == "OPTIONS" })
	p.robots = path.count(e, func(v string) bool { return v == "/robots.txt" }) > 0
	reason := t.field("reason")
	p.failures = reason.count(e, isLoginFailure)
	for _, fault := range faults {
		n := reason.count(e, func(v string) bool { return v == fault })
		if p.faults += n; n > p.onReason {
			p.reason, p.onReason = fault, n
		}
	}
	return p
}

// faults are the reasons of the format messages that are about something other than a login. That of a
// firewall says nothing about a client, since all of its clients have it.
var faults = []string{"banned", "denied", "error", "limited", "rejected", "scan"}

// isLoginFailure reports whether a reason of the format messages is about a login.
func isLoginFailure(reason string) bool {
	return reason != "blocked" && !slices.Contains(faults, reason)
}

// scanRate is how many events a scan has on average in an hour in which it has any. Slower ones are
// also proxies and broken clients.
const scanRate = 10

// kind returns the kind of a key with the profile p, "" for an ordinary one.
func (p *profile) kind() OutlierKind {
	const percent = 100
	atLeast := func(part, least int64) bool { return part*percent >= p.events*least }
	calm := atLeast(p.succeeded, 95) && atLeast(p.reads, 95)
	switch {
	case atLeast(p.failures, 50), atLeast(p.posts, 50) && atLeast(p.onPath, 50) && isLogin(p.path):
		return Login
	case atLeast(p.faults, 50) && p.events >= scanRate*int64(p.hours):
		return Scan
	case atLeast(p.failed, 40) && (p.paths >= 10 || p.notFound*2 < p.failed) && p.events >= scanRate*int64(p.hours):
		return Scan
	case calm && p.logHours >= 4 && p.hours*3 >= p.logHours && (atLeast(p.onPath, 90) || atLeast(p.unchanged, 50)):
		return Monitor
	case p.robots && namesCrawler(p.agent) && atLeast(p.onAgent, 90):
		return Crawler
	}
	return ""
}

// isLogin reports whether a path is probably that of a login.
func isLogin(path string) bool {
	path = strings.ToLower(path)
	return slices.ContainsFunc([]string{"login", "signin", "sign_in", "logon", "xmlrpc", "auth", "session", "token", "password"},
		func(word string) bool { return strings.Contains(path, word) })
}

// namesCrawler reports whether an agent names a crawler.
func namesCrawler(agent string) bool {
	agent = strings.ToLower(agent)
	return slices.ContainsFunc([]string{"bot", "crawl", "spider", "slurp", "+http"}, func(word string) bool { return strings.Contains(agent, word) })
}

// about returns a description of the events of a key.
func (p *profile) about() string {
	var parts []string
	share := func(n int64, text string) {
		if n*10 >= p.events {
			parts = append(parts, fmt.Sprintf("%.0f %% %s", 100*float64(n)/float64(p.events), text))
		}
	}
	share(p.failures, "failed logins")
	share(p.onReason, p.reason)
	share(p.failed-p.notFound, "403 or another 4xx")
	share(p.notFound, "404")
	share(p.unchanged, "304")
	share(p.posts, "POST")
	switch {
	case p.paths == 1:
		parts = append(parts, "one path")
	case p.paths > 1:
		parts = append(parts, fmt.Sprintf("%s paths", count(p.paths)))
	}
	switch {
	case p.agents == 1:
		parts = append(parts, "one agent")
	case p.agents > 1:
		parts = append(parts, fmt.Sprintf("%s agents", count(p.agents)))
	}
	parts = append(parts, fmt.Sprintf("in %s of %s", count(int64(p.hours)), plural(p.logHours, "hour", "hours")))
	return strings.Join(parts, ", ")
}

// A knee is a peak of one or few of the keys that is many times that of every other key.
const (
	kneeRatio = 3
	kneeShare = 100 // at most one of so many keys is above it
)

// findFloods finds the keys above the knee of the peaks of a minute and of an hour.
func (s *suggesting) findFloods(g *suggestGroup) {
	var floods []uint32
	for _, span := range []time.Duration{time.Minute, time.Hour} {
		peaks := s.peaks(g, int64(span))
		ids := g.keys.largest(len(peaks)/kneeShare+2, peaks)
		for above := len(ids) - 1; above > 0; above-- {
			if least := peaks[ids[above-1]]; least >= fewEvents && least >= kneeRatio*peaks[ids[above]] {
				floods = append(floods, ids[:above]...)
				break
			}
		}
	}
	for _, id := range floods {
		s.kinds[id] = Flood
	}
}

// mayAllow reports whether a key can be put under allow.
func (s *suggesting) mayAllow(key string) bool {
	_, ok := (&Outlier{Key: api.KeyOf(key)}).allowPrefix()
	return ok && s.run.Key == match.Client.String()
}

// allowPrefix returns the entry of allow for an outlier.
func (o *Outlier) allowPrefix() (p netip.Prefix, ok bool) {
	p, err := address.ParsePrefix(o.Values()[0])
	return p, err == nil
}
