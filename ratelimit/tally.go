package ratelimit

import "sync/atomic"

// A tally counts what a rule decided. It is striped by the hash of the key, so
// that cores that decide about different keys seldom meet in a cache line.
type tally struct{ stripes [tallyStripes]tallyStripe }

const tallyStripes = 64

type tallyStripe struct {
	allowed, refused, banned, started, shadow, skipped, sketched, full atomic.Uint64
}

// count counts one outcome of a key with that hash.
func (t *tally) count(hash uint64, o *outcome, shadow bool) {
	s := &t.stripes[hash>>58]
	switch {
	case o.Skipped:
		s.skipped.Add(1)
	case !o.Refused:
		s.allowed.Add(1)
	case shadow:
		s.shadow.Add(1)
	case o.Banned:
		s.banned.Add(1)
	default:
		s.refused.Add(1)
	}
	if o.Started {
		s.started.Add(1)
	}
}

// elsewhere counts a decision about a key without a record: by the sketch, or for
// want of any room.
func (t *tally) elsewhere(hash uint64, full bool) {
	s := &t.stripes[hash>>58]
	if full {
		s.full.Add(1)
	} else {
		s.sketched.Add(1)
	}
}

// decided counts one outcome of a rule that is no shadow rule.
func (t *tally) decided(hash uint64, allowed, banned bool) {
	s := &t.stripes[hash>>58]
	switch {
	case allowed:
		s.allowed.Add(1)
	case banned:
		s.banned.Add(1)
	default:
		s.refused.Add(1)
	}
}

// add adds what t has counted to r.
func (t *tally) add(r *RuleStats) {
	for i := range t.stripes {
		s := &t.stripes[i]
		r.Allowed += s.allowed.Load()
		r.Refused += s.refused.Load()
		r.Shadow += s.shadow.Load()
		r.Banned += s.banned.Load()
		r.BansStarted += s.started.Load()
		r.Sketched += s.sketched.Load()
		r.Full += s.full.Load()
		r.Skipped += s.skipped.Load()
	}
}
