package latelyredis

import (
	"encoding/binary"
	"iter"
	"slices"
)

// eachRequest yields the groups of each request.
func eachRequest(groups []*group) iter.Seq[[]*group] {
	return func(yield func([]*group) bool) {
		for first, i := 0, 1; i <= len(groups); i++ {
			if i == len(groups) || groups[i].request != groups[first].request {
				if !yield(groups[first:i]) {
					return
				}
				first = i
			}
		}
	}
}

// beginning returns the groups that have answered so, with a call that counts the event. It is not counted where a ban of
// another subject holds.
func (s *Store) beginning(l *layout, groups []*group, answer string) (again []*group) {
	for of := range eachRequest(groups) {
		flags := byte(0)
		if of[0].request.Refused || slices.ContainsFunc(of, func(g *group) bool { return g.refused }) {
			flags = askAlso
		}
		if slices.ContainsFunc(of, func(g *group) bool { return g.banned }) {
			continue
		}
		for _, g := range of {
			if g.begins && g.data == answer {
				s.ask(g, l, flags)
				again = append(again, g)
			}
		}
	}
	return again
}

// revised returns the groups that did not know what another group of the request has answered: those that do not
// refuse, where another does, and those without a ban, where another has one. Their call withdraws what they have
// counted, and asks for the outcomes of a refused event.
func (s *Store) revised(l *layout, groups []*group) (again []*group) {
	for of := range eachRequest(groups) {
		if of[0].request.Answer {
			continue
		}
		refused, banned := false, false
		for _, g := range of {
			refused, banned = refused || g.refused, banned || g.banned
		}
		for _, g := range of {
			if g.err == nil && (refused && !g.refused && !g.also || banned && !g.banned) {
				s.revise(g, l, banned)
				again = append(again, g)
			}
		}
	}
	return again
}

// revise makes the second call of g. banned says that a ban held of another subject: then
// the bans of this one have not counted the event either.
func (s *Store) revise(g *group, l *layout, banned bool) {
	flags := byte(askRefused)
	if banned {
		flags |= askBanned
	}
	if g.begins {
		s.ask(g, l, askBanned) // nothing has changed: a ban of its own is still to be extended
		return
	}
	const notCounted = 1<<16 - 1 // no record was reset so often
	withdrawn, counted, struck := appendUint56(nil, readUint56(g.data)), false, byte(0)
	for k := range g.members {
		a := g.answer(k)
		if a.status&answerStarted != 0 {
			g.began = append(g.began, k)
		}
		if a.status&answerCounted == 0 || g.request.Peek {
			a.resets = notCounted
		} else {
			counted = true
		}
		withdrawn, struck = binary.BigEndian.AppendUint16(withdrawn, a.resets), byte(0)
		if banned && a.status&answerStruck != 0 {
			struck, counted = 1, true
		}
		withdrawn = append(withdrawn, struck)
	}
	if !counted {
		s.ask(g, l, flags)
		return
	}
	s.ask(g, l, flags|askWithdraw)
	g.script, g.returns = l.scripts.repair, true
	g.args = append(g.args, string(withdrawn))
}
