package replay

import (
	"cmp"
	"crypto/sha256"
	"hash"
	"slices"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// outcomes has for each event whether it was allowed or refused, and 0 if it was not
// judged.
type outcomes []byte

// The outcomes, the strictest last. One from refused on is a refusal.
const (
	allowed byte = 'A'
	refused byte = 'D' // by a limit
	banned  byte = 'E' // by a ban; written as refused
)

func outcomeOf(d *ratelimit.Decision) byte {
	switch {
	case d.Allowed:
		return allowed
	case d.BannedUntil.IsZero():
		return refused
	}
	return banned
}

// has reports whether an event was judged.
func (o outcomes) has(event int) bool { return o[event] != 0 }

// judged returns allowed or refused for each event that was judged.
func (o outcomes) judged() []byte {
	out := make([]byte, 0, len(o))
	for _, b := range o {
		if b != 0 {
			out = append(out, min(b, refused))
		}
	}
	return out
}

// ruleOutcomes is what happened to the events that a limit or ban judged.
type ruleOutcomes struct {
	*ratelimit.Rule
	keys            *keyColumn
	outcomes        outcomes // of the events of the chunk, whichever rule refused them
	parts           []partOutcomes
	judged, refused []int64   // events of each key
	decisions       hash.Hash // of all outcomes
	bars            Refusals  // over time
}

// partOutcomes is what one part of the keys adds to that.
type partOutcomes struct {
	byRule    int64 // events that the rule itself refused or, in shadow mode, would have
	banStarts []keyEvent
	last      map[uint32]int // of a key, the index in banStarts of its newest ban
}

func newRuleOutcomes(rule *ratelimit.Rule, keys *keyColumn, parts int) ruleOutcomes {
	r := ruleOutcomes{Rule: rule, keys: keys, parts: make([]partOutcomes, parts), decisions: sha256.New()}
	for i := range r.parts {
		r.parts[i].last = make(map[uint32]int)
	}
	return r
}

// add adds the outcome of an event of the chunk, and the rule's own. Parts are added to
// concurrently: they have no key and no event in common.
func (r *ruleOutcomes) add(event int, before int64, part int, at time.Time, outcome byte, own *ratelimit.Outcome) {
	r.outcomes[event] = outcome
	if !own.Refused {
		return
	}
	p, key := &r.parts[part], r.keys.ids[event]
	p.byRule++
	if own.Started {
		p.last[key] = len(p.banStarts)
		p.banStarts = append(p.banStarts, keyEvent{event: before + int64(event), at: at.UnixNano(), key: key})
	}
	if own.Banned { // the ban may have been extended
		ban := &p.banStarts[p.last[key]]
		ban.long = time.Duration(own.BannedUntil.UnixNano() - ban.at)
	}
}

// byRule returns how many events the rule itself refused or, in shadow mode, would have.
func (r *ruleOutcomes) byRule() (n int64) {
	for i := range r.parts {
		n += r.parts[i].byRule
	}
	return n
}

// banStarts returns the bans of all keys in the order of judging.
func (r *ruleOutcomes) banStarts() []keyEvent {
	var all []keyEvent
	for i := range r.parts {
		all = append(all, r.parts[i].banStarts...)
	}
	slices.SortFunc(all, func(a, b keyEvent) int { return cmp.Compare(a.event, b.event) })
	return all
}

// count adds up the outcomes of the chunk: how many events of each key were judged, and
// how many of them were refused.
func (r *ruleOutcomes) count() {
	r.judged, r.refused = grown(r.judged, len(r.keys.texts)), grown(r.refused, len(r.keys.texts))
	for i, o := range r.outcomes {
		if o != 0 {
			r.judged[r.keys.ids[i]]++
		}
		if o >= refused {
			r.refused[r.keys.ids[i]]++
		}
	}
	r.decisions.Write(r.outcomes.judged())
}

// grown returns s with at least n elements.
func grown[T any](s []T, n int) []T { return append(s, make([]T, max(n-len(s), 0))...) }
