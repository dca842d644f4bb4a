package enforce

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/address"
)

// CrowdSec answers the bouncers of CrowdSec as its local API does: programs that ask for
// all decisions and then, every few seconds, for what changed since they asked last.
type CrowdSec struct {
	bans *bans
	now  func() time.Time

	mu       sync.Mutex
	bouncers map[string]bouncer
}

// A bouncer is a client program of CrowdSec.
type bouncer struct {
	have uint64    // the version that it has
	at   time.Time // when it asked last
}

// maxBouncers bounds the bouncers: programs with a token of their own. One more replaces the bouncer
// that asked least recently, which receives all decisions when it asks again.
const maxBouncers = 1024

// Decisions returns the decisions in force that a query of /v1/decisions selects: nil, which
// is null in JSON, if there are none. The error names the parameter that is wrong.
func (c *CrowdSec) Decisions(query url.Values) (api.CrowdSecDecisions, error) {
	f, err := newFilter(query)
	if err != nil {
		return nil, err
	}
	if f.address.IsValid() {
		return f.decisions(c.bans.covering(f.address), c.now(), false), nil
	}
	changes, _ := c.bans.after(0, 0)
	return f.decisions(changes, c.now(), false), nil
}

// Stream returns what changed since the bouncer of that name asked last, or with startup=true
// all decisions. Call sent when the answer is sent: then the bouncer has it.
func (c *CrowdSec) Stream(name string, query url.Values) (s api.CrowdSecStream, sent func(), err error) {
	f, err := newFilter(query)
	if err != nil {
		return s, nil, err
	}
	startup, err := boolOf(query, "startup", false)
	if err != nil {
		return s, nil, err
	}
	c.mu.Lock()
	have := c.bouncers[name].have
	c.mu.Unlock()
	if startup {
		have = 0
	}
	changes, version := c.bans.after(have, 0)
	now := c.now()
	s = api.CrowdSecStream{Deleted: []api.CrowdSecDecision{}, New: []api.CrowdSecDecision{}}
	s.Deleted = append(s.Deleted, f.decisions(changes, now, true)...)
	s.New = append(s.New, f.decisions(changes, now, false)...)
	return s, func() { c.reached(name, version) }, nil
}

// reached notes that a bouncer has a version.
func (c *CrowdSec) reached(name string, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.bouncers[name]; !ok && len(c.bouncers) >= maxBouncers {
		var oldest string
		for n, b := range c.bouncers {
			if oldest == "" || b.at.Before(c.bouncers[oldest].at) {
				oldest = n
			}
		}
		delete(c.bouncers, oldest)
	}
	c.bouncers[name] = bouncer{version, c.now()}
}

// A filter is what a query selects. Parameters that only CrowdSec's own lists need, such as
// community_pull, select nothing here and are ignored.
type filter struct {
	scopes, origins, with, without []string
	kind, value                    string
	address                        netip.Prefix // decisions about it or around it
	within                         netip.Prefix // decisions in it
}

func newFilter(query url.Values) (f filter, err error) {
	f = filter{
		scopes: listOf(query, "scopes", "scope"), origins: listOf(query, "origins"),
		with: listOf(query, "scenarios_containing"), without: listOf(query, "scenarios_not_containing"),
		kind: query.Get("type"), value: query.Get("value"),
	}
	contains, err := boolOf(query, "contains", true)
	if err != nil {
		return f, err
	}
	for _, name := range []string{"ip", "range"} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		network, err := address.ParsePrefix(text)
		switch {
		case err != nil:
			return f, fmt.Errorf("%s: %w", name, err)
		case contains:
			f.address = network
		default:
			f.within = network
		}
	}
	return f, nil
}

// listOf returns the values of parameters, which commas separate.
func listOf(query url.Values, names ...string) (values []string) {
	for _, name := range names {
		for v := range strings.SplitSeq(query.Get(name), ",") {
			if v = strings.ToLower(strings.TrimSpace(v)); v != "" {
				values = append(values, v)
			}
		}
	}
	return values
}

// boolOf returns the value of a parameter that is true or false.
func boolOf(query url.Values, name string, otherwise bool) (bool, error) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s: %.20q: must be true or false", name, text)
	}
	return v, nil
}

// decisions returns those changes that f selects and that have ended, or not.
func (f *filter) decisions(changes []change, now time.Time, ended bool) (all []api.CrowdSecDecision) {
	for i := range changes {
		c := &changes[i]
		if c.ended != ended || f.within.IsValid() && (!f.within.Contains(c.network.Addr()) || c.network.Bits() < f.within.Bits()) {
			continue
		}
		if d := c.decision(now); f.selects(&d) {
			all = append(all, d)
		}
	}
	return all
}

// selects reports whether f selects d.
func (f *filter) selects(d *api.CrowdSecDecision) bool {
	has := func(part string) bool { return strings.Contains(strings.ToLower(d.Scenario), part) }
	return (f.scopes == nil || slices.Contains(f.scopes, strings.ToLower(d.Scope))) &&
		(f.origins == nil || slices.Contains(f.origins, d.Origin)) &&
		(f.with == nil || slices.ContainsFunc(f.with, has)) && !slices.ContainsFunc(f.without, has) &&
		(f.kind == "" || f.kind == d.Type) && (f.value == "" || f.value == d.Value)
}

// decision returns c as bouncers read it. Durations are whole seconds, rounded up: some
// bouncers misread fractions, and take 0 as forever.
func (c *change) decision(now time.Time) api.CrowdSecDecision {
	left := c.ban.Until.Sub(now)
	if left = left.Truncate(time.Second); !c.ended {
		left += time.Second
	} else if left >= 0 { // ended by hand
		left = -time.Second
	}
	d := api.CrowdSecDecision{
		Duration: left.String(), ID: int64(c.id), Origin: "crowdsec", Scenario: "lately/" + c.ban.Rule,
		Scope: "Range", Type: "ban", Value: c.network.String(),
	}
	if c.network.IsSingleIP() {
		d.Scope, d.Value = "Ip", c.network.Addr().String()
	}
	if c.ban.Source != ruleSource {
		d.Origin = "cscli"
	}
	return d
}
