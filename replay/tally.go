package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A tally is what one core saw of the rules of a file. Each rule has its own
// tallies, in the order of the set.
type tally struct {
	rules []ruleTally
	err   error
}

type ruleTally struct {
	allowed, refused    int64 // by the event's outcome
	byRule, wouldRefuse int64 // by the rule
	keys                map[string]*keyTally
	starts              []start
	fates               []fate              // of the events that the rule judged, in order
	busiest             map[uint32]*BusyKey // by number of the top key
}

type keyTally struct {
	refused, bans int64
	last          int       // the index of its last ban among the starts
	began         time.Time // when that was judged
}

// A start is a ban's: the event that began it, for how long it then held, and of
// which key.
type start struct {
	event int32
	key   string
	long  time.Duration
}

// A fate is the outcome of an event that a rule judged.
type fate struct {
	event int32
	byte
}

// add counts what a rule said of an event, and what became of the event.
func (rt *ruleTally) add(event int, at time.Time, key []byte, allowed bool, o ratelimit.Outcome, shadow bool) {
	fateByte := byte('A')
	if allowed {
		rt.allowed++
	} else {
		rt.refused++
		fateByte = 'D'
	}
	rt.fates = append(rt.fates, fate{int32(event), fateByte})
	if o.Refused && shadow {
		rt.wouldRefuse++
	} else if o.Refused {
		rt.byRule++
	}
	if allowed && !o.Started {
		return
	}
	k := rt.keys[string(key)]
	if k == nil {
		k = new(keyTally)
		rt.keys[string(key)] = k
	}
	if !allowed {
		k.refused++
	}
	if o.Started {
		k.bans++
		k.last = len(rt.starts)
		rt.starts = append(rt.starts, start{int32(event), string(key), 0})
		k.began = at
	}
	if o.Banned && k.bans > 0 { // it may have been extended
		rt.starts[k.last].long = o.BannedUntil.Sub(k.began)
	}
}

func (rt *ruleTally) addBusy(id uint32, allowed bool) {
	b := rt.busiest[id]
	if b == nil {
		b = new(BusyKey)
		rt.busiest[id] = b
	}
	if allowed {
		b.Allowed++
	} else {
		b.Refused++
	}
}

// merge adds the tallies of all parts for one rule. Keys that several parts
// saw are added up.
func merge(rule int, tallies []tally) ruleTally {
	all := ruleTally{keys: make(map[string]*keyTally), busiest: make(map[uint32]*BusyKey)}
	for i := range tallies {
		rt := &tallies[i].rules[rule]
		all.allowed += rt.allowed
		all.refused += rt.refused
		all.byRule += rt.byRule
		all.wouldRefuse += rt.wouldRefuse
		all.starts = append(all.starts, rt.starts...)
		all.fates = append(all.fates, rt.fates...)
		for key, k := range rt.keys {
			if all.keys[key] == nil {
				all.keys[key] = new(keyTally)
			}
			all.keys[key].refused += k.refused
			all.keys[key].bans += k.bans
		}
		for id, b := range rt.busiest {
			if all.busiest[id] == nil {
				all.busiest[id] = new(BusyKey)
			}
			all.busiest[id].Allowed += b.Allowed
			all.busiest[id].Refused += b.Refused
		}
	}
	slices.SortFunc(all.starts, func(a, b start) int { return cmp.Compare(a.event, b.event) })
	slices.SortFunc(all.fates, func(a, b fate) int { return cmp.Compare(a.event, b.event) })
	return all
}
