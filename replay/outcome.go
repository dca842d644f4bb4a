package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

func outcomeOf(isRefused, byBan bool) byte {
	switch {
	case !isRefused:
		return allowed
	case byBan:
		return banned
	}
	return refused
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

// all returns allowed or refused for each event; one that no rule judged is allowed.
func (o outcomes) all() []byte {
	out := make([]byte, len(o))
	for i, b := range o {
		out[i] = min(cmp.Or(b, allowed), refused)
	}
	return out
}

// together counts what the limits and bans of a rules file did to all events.
type together struct {
	events, refused int64
	decisions       hash.Hash
}

func (t *together) count(o outcomes) {
	decisions := o.all()
	t.events += int64(len(decisions))
	t.refused += int64(bytes.Count(decisions, []byte{refused}))
	t.decisions.Write(decisions)
}

func (t *together) report() *Together {
	return &Together{Allowed: t.events - t.refused, Refused: t.refused, SHA256: hex.EncodeToString(t.decisions.Sum(nil))}
}

// ruleOutcomes is what a limit or ban itself did to the events that it is about or, in
// shadow mode, would have done.
type ruleOutcomes struct {
	*ratelimit.Rule
	keys            *keyColumn
	outcomes        outcomes // of the events of the chunk
	parts           []partOutcomes
	judged, refused []int64   // events of each key
	decisions       hash.Hash // of all outcomes
	bars            Refusals  // over time
}

// partOutcomes is what one part of the keys adds to that.
type partOutcomes struct {
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

// add adds the outcome of an event of the chunk. Parts are added to concurrently: they
// have no key and no event in common.
func (r *ruleOutcomes) add(event int, before int64, part int, at time.Time, own *ratelimit.Outcome) {
	if r.outcomes != nil {
		r.outcomes[event] = outcomeOf(own.Refused, own.Banned)
	}
	if !own.Refused {
		return
	}
	p, key := &r.parts[part], r.keys.ids[event]
	if own.Started {
		p.last[key] = len(p.banStarts)
		p.banStarts = append(p.banStarts, keyEvent{event: before + int64(event), at: at.UnixNano(), key: key})
	}
	if own.Banned { // the ban may have been extended
		ban := &p.banStarts[p.last[key]]
		ban.long = time.Duration(own.BannedUntil.UnixNano() - ban.at)
	}
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
