package storetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	bans "github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/ratelimit"
)

// banCases are about bans.
var banCases = []Case{
	{
		"BanJitter", anyStore, banJitterCase,
		"Jitter never shortens a ban, lengthens it by at most its share, and differs between keys.",
	},
	{
		"BanByHand", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			r := c.rule("bans")
			r.Ban = &ratelimit.Ban{After: c.rnd.Uint64N(4), Span: time.Hour, For: 3 * time.Hour, Factor: 2}
			return []ratelimit.Rule{named("limits", c.lasting(a, 100)), r}
		}, (*walk).take, (*walk).take, (*walk).peek, (*walk).ban, (*walk).unban),
		"A ban added by hand holds at once and does not replace a ban that ends later. Unban ends a ban at once, and the next ban does not count it as an earlier one.",
	},
	{
		"ListBans", anyStore, listBansCase,
		"The bans that hold are listed, each once, with their rule, key, start, end, count, reason and source. No number of other keys ends one.",
	},
}

func banJitterCase(c *check) {
	const jitter = 0.5
	b := ratelimit.Ban{Span: units(1), For: time.Hour, Factor: 2, Max: 2 * time.Hour, Jitter: jitter}
	r := c.rule("bans")
	r.Ban = &b
	s := c.session(r)
	seen := map[time.Duration]bool{}
	for i := range 64 {
		req := s.raw(1, false, about(0, fmt.Sprint("k", i)))
		o := req.Subjects[0].Outcome
		lasts := o.BannedUntil.Sub(time.Unix(0, req.Now))
		if least := (*bans.Policy)(&b).Duration(0); !o.Started || lasts < least || lasts > least+time.Duration(float64(least)*jitter) {
			c.fatal("ban %d lasts %v, want between %v and half as much again: %+v", i, lasts, least, o)
		}
		seen[lasts] = true
	}
	if len(seen) < 32 {
		c.fatal("64 keys have only %d different lengths of bans", len(seen))
	}
}

// record returns a ban by hand.
func (s *session) record(rule int, key string, ends int64) ratelimit.BanRecord {
	return ratelimit.BanRecord{
		Rule: s.model.set.Rules()[rule].Name, Key: []string{key}, Since: time.Unix(0, s.base), Until: time.Unix(0, ends),
		Reason: "tested", Source: "manual",
	}
}

// ban bans a key by hand.
func (s *session) ban(rule int, key string, ends int64) {
	s.noted("ban %d:%q until %+d ns", rule, key, ends-s.base)
	if err := s.store.Ban(ctx, s.record(rule, key, ends)); err != nil {
		s.broken("Ban returned %w", err)
	}
	s.model.add(about(rule, key), s.base, ends)
}

// unban ends a ban. A store may report whether it held at the start or now.
func (s *session) unban(rule int, key string) {
	s.noted("unban %d:%q", rule, key)
	name := s.model.set.Rules()[rule].Name
	held, err := s.store.Unban(ctx, name, []byte(key))
	if err != nil {
		s.broken("Unban returned %w", err)
	}
	was := s.model.unban(name, key)
	if want := was.holds(s.base); held != want && want == was.holds(s.now) {
		s.broken("Unban reports %v, want %v", held, want)
	}
}

func listBansCase(c *check) {
	hits := c.rule("hits")
	hits.Ban = &ratelimit.Ban{After: 2, Span: time.Hour, For: time.Hour, Factor: 2}
	refusals := named("refusals", c.lasting(ratelimit.Sliding, 1))
	refusals.Ban = &ratelimit.Ban{After: 1, Of: ratelimit.Refusals, Span: time.Hour, For: 2 * time.Hour}
	s := c.session(hits, refusals)
	s.listed()
	for i := range 20 {
		for range 1 + i%4 {
			s.take(1, about(i%2, fmt.Sprint("k", i)))
		}
	}
	s.ban(0, "k\xff\x00", c.base+int64(time.Hour))
	s.ban(1, "by hand", c.base+int64(3*time.Hour))
	for i := range 20 * c.config.Steps { // counts may be evicted
		s.raw(1, false, about(1, fmt.Sprint("other", i)))
	}
	s.listed()
	s.unban(0, "k2")
	s.unban(1, "by hand")
	s.listed()
	unknown := s.record(0, "k", c.base+int64(time.Hour))
	unknown.Rule = "no such rule"
	if err := s.store.Ban(ctx, unknown); err == nil {
		c.fatal("a ban under an unknown rule was accepted")
	}
	if held, _ := s.store.Unban(ctx, unknown.Rule, []byte("k")); held {
		c.fatal("a ban was reported under an unknown rule")
	}
}

// A listing has the checked fields of a ban in a list.
type listing struct {
	ends   int64
	count  uint64 // of a ban by a rule
	byRule bool
}

// listed complains if the store lists other bans than the model has.
func (s *session) listed() {
	got, want := map[place]listing{}, map[place]listing{}
	bans := s.store.Bans()
	if bans.Err != nil {
		s.broken("Bans returned %w", bans.Err)
	}
	for b := range bans.Table.All(bans.Now) {
		i := slices.Index(bans.Numbers, b.Rule)
		if i < 0 || b.Reason == "" || b.Since >= b.Until {
			s.broken("%+v is listed, want one of a rule, with a reason, and a start before the end", b)
		}
		p := place{bans.Set.Rules()[i].Name, string(b.Key)}
		if _, twice := got[p]; twice {
			s.broken("the ban of %q is listed twice", p)
		}
		got[p] = listing{b.Until, b.Count, b.Source == "rule"}
		if b.Source != "rule" {
			got[p] = listing{ends: b.Until}
		}
		stored, hash := bans.Find(b.Key)
		if found, ok := bans.Table.Get(b.Rule, hash, stored, bans.Now); !ok || found.Until != b.Until {
			s.broken("the ban of %q is listed, and found as %+v", p, found)
		}
	}
	for p, rec := range s.model.records {
		if b := rec.ban; b.holds(s.now) && b.byHand {
			want[p] = listing{ends: b.until}
		} else if b.holds(s.now) {
			want[p] = listing{b.until, uint64(b.count), true}
		}
	}
	if !maps.Equal(got, want) {
		s.broken("the bans listed are\n%+v\nwant\n%+v", got, want)
	}
}
