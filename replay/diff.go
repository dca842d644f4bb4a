package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// DiffConfig configures a [Diff]. Old and New are required; Rules and WhatIfs of the
// Config must not be set.
type DiffConfig struct {
	Config
	Old, New *rules.File

	// Protect are keys that the new rules must not refuse or ban more than the old:
	// values of Config.Key and, if that is the client, networks such as
	// 192.0.2.0/24.
	Protect []string
}

// A Difference contains the changes for the events of a log when new rules replace old
// ones. Its JSON is the report of lately diff --json.
type Difference struct {
	LogEvents

	// Difference has at most Config.Top keys and bans, by Config.Key.
	api.Difference

	Problems []string `json:"problems,omitempty"` // with files, as sentences

	// Since and Unknown are set for an [api.Trial]: the time from which the server has all
	// events, and the effects that the difference does not include.
	Since   *Epoch   `json:"since,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
}

// DifferenceOf returns the answer of the server at addr about a draft of its rules.
func DifferenceOf(addr string, t *api.Trial) *Difference {
	d := &Difference{LogEvents: LogEvents{Files: []string{addr}, Events: t.Events}, Difference: *t.Changes, Since: &Epoch{t.Since}, Unknown: t.Unknown}
	if t.Events > 0 {
		d.First, d.Last = &Epoch{t.First}, &Epoch{t.Last}
	}
	return d
}

// Diff judges the events of c.Files under c.Old and under c.New, each by itself as [Run]
// does, and returns the differences. Hot rules are not compared. Its errors are those of
// [Run].
func Diff(ctx context.Context, c DiffConfig) (*Difference, error) {
	if c.Old == nil || c.New == nil || c.Rules != nil || len(c.WhatIfs) > 0 {
		return nil, errors.New("diff: rules: must be given as Old and New, without other rules")
	}
	r, err := newRun(c.Config, c.Old, c.New)
	if err != nil {
		return nil, err
	}
	if len(c.Protect) > 0 && len(keyvalue.Fields(r.key)) > 1 {
		return nil, fmt.Errorf("--protect: needs a key of one field: must not be given with --key %q", r.Key)
	}
	for i := range r.rulesets {
		r.rulesets[i].diffed = true
	}
	e, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.checkRules(); err != nil {
		return nil, err
	}
	if err := e.judgeAll(ctx); err != nil {
		return nil, err
	}
	before, after, report := e.judgings[0], e.judgings[1], e.report
	for i, file := range []*rules.File{c.Old, c.New} {
		if e.judgings[i].lacked() {
			e.problem(fmt.Sprintf("rules %s: %d bytes were too little to count all keys of these events: some were evicted, or refused too early", file.Name, r.Budget))
		}
	}
	d := &Difference{LogEvents: e.described(report.Events - e.answers())}
	d.Field, d.Keys, d.Bans = r.Key, []api.KeyDifference{}, []api.BanDifference{}
	d.Old, d.New = before.side(c.Old.Name, d.Events), after.side(c.New.Name, d.Events)
	protected := newKeyList(keyvalue.Fields(r.key)[0], c.Protect)
	e.diffKeys(d, before.outcomes, after.outcomes, protected)
	e.diffBans(d, before.bannedTimes(), after.bannedTimes(), protected)
	d.Problems = report.Problems
	return d, nil
}

// lacked reports whether the memory of a limiter was too little.
func (j *judging) lacked() bool {
	return slices.ContainsFunc(j.judges, func(own *judge) bool {
		if own == nil {
			return false
		}
		s := own.limiter.Stats()
		return s.BansRefused > 0 || slices.ContainsFunc(s.Rules, func(r ratelimit.RuleStats) bool { return r.Evicted > 0 || r.Sketched > 0 || r.Full > 0 })
	})
}

// side sums up what a rules file does to so many events.
func (j *judging) side(name string, events int64) api.DiffSide {
	s := api.DiffSide{Rules: name}
	for _, o := range j.outcomes {
		if o >= refused {
			s.Refused++
		}
	}
	s.Allowed = events - s.Refused
	for i := range j.rules {
		for _, part := range j.rules[i].parts {
			if !j.rules[i].Shadow {
				s.Bans += int64(len(part.banStarts))
			}
		}
	}
	return s
}

// differences returns for each number of a key how its events are decided differently; 0 is no key.
func (e *events) differences(before, after outcomes) []api.KeyDifference {
	keys := e.top.keys
	all := make([]api.KeyDifference, len(keys.texts))
	for i, id := range keys.ids {
		k, was, is := &all[id], before[i] >= refused, after[i] >= refused
		if e.part(i) != match.Answer {
			k.Events++
		}
		switch {
		case was && is:
			k.OldRefused++
			k.NewRefused++
		case was:
			k.OldRefused++
			k.NewlyAllowed++
		case is:
			k.NewRefused++
			k.NewlyRefused++
		}
	}
	return all
}

// diffKeys fills in which events, of which keys, are decided differently.
func (e *events) diffKeys(d *Difference, before, after outcomes, protected *keyList) {
	all := e.differences(before, after)
	for id := range all {
		k := &all[id]
		d.NewlyRefused += k.NewlyRefused
		d.NewlyAllowed += k.NewlyAllowed
		if id == 0 || k.NewlyRefused == 0 && k.NewlyAllowed == 0 {
			continue
		}
		k.Key = e.top.keys.keyOf(uint32(id))
		d.Keys = append(d.Keys, *k)
		if k.NewlyRefused > 0 && protected.hasAny(e.run.key.Fields(), k.Values()) {
			d.Hurt = append(d.Hurt, *k)
		}
	}
	byHarm := func(a, b api.KeyDifference) int {
		return cmp.Or(cmp.Compare(b.NewlyRefused, a.NewlyRefused), cmp.Compare(b.NewlyAllowed, a.NewlyAllowed),
			slices.Compare(a.Values(), b.Values()))
	}
	slices.SortFunc(d.Hurt, byHarm)
	slices.SortFunc(d.Keys, byHarm)
	d.KeysLeftOut = int64(max(len(d.Keys)-e.run.Top, 0))
	d.Keys = d.Keys[:len(d.Keys)-int(d.KeysLeftOut)]
}

// diffBans fills in which keys of rules are banned for another time. A key that several
// rules of a file ban at once is banned once.
func (e *events) diffBans(d *Difference, before, after map[string]bannedKey, protected *keyList) {
	for name := range after {
		if _, ok := before[name]; !ok {
			before[name] = bannedKey{fields: after[name].fields, values: after[name].values}
		}
	}
	var old, changed time.Duration
	for name, was := range before {
		is := after[name]
		old, changed = old+was.long(), changed+is.long()
		if was.long() == is.long() {
			continue
		}
		ban := api.BanDifference{Fields: was.fields, Key: api.KeyOf(was.values...), OldSeconds: was.long().Seconds(), NewSeconds: is.long().Seconds()}
		d.Bans = append(d.Bans, ban)
		if ban.NewSeconds > ban.OldSeconds && protected.hasAny(was.fields, was.values) {
			d.HurtBans = append(d.HurtBans, ban)
		}
	}
	d.Old.BannedSeconds, d.New.BannedSeconds = old.Seconds(), changed.Seconds()
	byHarm := func(a, b api.BanDifference) int {
		return cmp.Or(cmp.Compare(b.NewSeconds-b.OldSeconds, a.NewSeconds-a.OldSeconds),
			slices.Compare(a.Fields, b.Fields), slices.Compare(a.Values(), b.Values()))
	}
	slices.SortFunc(d.HurtBans, byHarm)
	slices.SortFunc(d.Bans, byHarm)
	d.BansLeftOut = int64(max(len(d.Bans)-e.run.Top, 0))
	d.Bans = d.Bans[:len(d.Bans)-int(d.BansLeftOut)]
}

// A bannedKey is a key of some rules and when bans held for it.
type bannedKey struct {
	fields, values []string
	bans           []interval
}

type interval struct{ from, to time.Time }

// bannedTimes returns the keys that any rule bans, by their fields and values.
func (j *judging) bannedTimes() map[string]bannedKey {
	all := make(map[string]bannedKey)
	for i := range j.rules {
		rule := &j.rules[i]
		if rule.Shadow {
			continue
		}
		for _, start := range rule.banStarts() {
			key := rule.keys.texts[start.key]
			name := rule.Key.String() + "\x00" + key
			b, ok := all[name]
			if !ok {
				b = bannedKey{fields: rule.Key.Fields(), values: keyvalue.All(rule.Key, key)}
			}
			b.bans = append(b.bans, interval{time.Unix(0, start.at), time.Unix(0, start.at).Add(start.long)})
			all[name] = b
		}
	}
	return all
}

// long returns for how long at least one ban held.
func (b bannedKey) long() (sum time.Duration) {
	slices.SortFunc(b.bans, func(a, b interval) int { return a.from.Compare(b.from) })
	var end time.Time
	for _, ban := range b.bans {
		from := ban.from
		if from.Before(end) {
			from = end
		}
		if ban.to.After(from) {
			sum += ban.to.Sub(from)
			end = ban.to
		}
	}
	return sum
}

// A keyList is a list of values of one field. If that is the client, networks stand for
// the addresses in them.
type keyList struct {
	field    string
	values   map[string]bool
	networks address.Set
}

func newKeyList(field string, values []string) *keyList {
	l := &keyList{field: field, values: make(map[string]bool)}
	var networks []netip.Prefix
	for _, v := range values {
		l.values[v] = true
		if p, err := address.ParsePrefix(v); err == nil && field == match.Client.String() {
			networks = append(networks, p)
		}
	}
	l.networks = address.NewSet(networks...)
	return l
}

// has reports whether the list has a value of the field.
func (l *keyList) has(value string) bool {
	return l.values[value] || l.networks.Contains([]byte(value))
}

// hasAny reports whether the list has the value of the field in a key of these fields. A
// network in a key, as the address of a client is folded, is in the list if it has an
// address in common with it.
func (l *keyList) hasAny(fields, values []string) bool {
	for i, name := range fields {
		value := keyvalue.In(l.field, name, []byte(values[i]))
		if value == nil {
			continue
		}
		p, err := address.ParsePrefix(string(value))
		if l.has(string(value)) || err == nil && l.networks.Overlaps(p) {
			return true
		}
	}
	return false
}
