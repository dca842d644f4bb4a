package latelyredis

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/ring"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/ratelimit"
)

type entry = store.Entry[*ratelimit.Set]

var _ store.Importing[*ratelimit.Set] = (*Store)(nil)

// What the scripts place and merge answer.
const (
	importKnown   = "known" // it was imported before
	importExpired = "expired"
	importMerge   = "merge" // there is a record: merge has to add to it
)

// importApart is how far the clocks of the node and the server may be apart: times are then those of the
// node, as a difference of less than that may not be one.
const importApart = 100 * time.Millisecond

// Import implements [ratelimit.Limiter.CopyTo]. An entry is a record in the form in which Redis keeps it, with
// the limits that have counted it. It becomes the record of its key, or is added to that. A key beside it,
// the mark, says that it was imported, for as long as anything of it counts. So nothing is
// counted twice, however often entries come.
func (s *Store) Import(ctx context.Context, id string, entries []entry) error {
	l := s.layout.Load()
	if !s.read.Load() {
		if err := s.sync(ctx); err != nil { // what time it is on the server is not known yet
			return err
		}
	}
	ahead := time.Duration(s.mirror.ahead.Load()) * time.Microsecond
	var bans []ban.Ban
	places, merges := &imports{s: s, l: l, id: id}, &imports{s: s, l: l, id: id}
	was := make(map[int]*rule)
	for i := range entries {
		e := &entries[i]
		if e.Set != l.set {
			return store.ErrStale
		}
		if e.Ban != nil {
			b := *e.Ban
			b.Rule = l.rules[e.Rule].banID
			bans = append(bans, b)
			continue
		}
		if was[e.WasRule] == nil {
			r, err := newRule(e.Was.Rule(e.WasRule))
			if err != nil {
				return err
			}
			was[e.WasRule] = &r
		}
		if ahead.Abs() > importApart {
			move(e, int64(ahead))
		}
		places.add(e, l.scripts.place, was[e.WasRule].counted(e))
	}
	if err := s.addBans(ctx, l, bans); err != nil {
		return err
	}
	if err := places.send(ctx); err != nil {
		return err
	}
	for i, c := range places.calls {
		if c.data == importMerge {
			merges.add(places.entries[i], l.scripts.merge, c.args[1])
		}
	}
	return merges.send(ctx)
}

// imports are entries that are sent together.
type imports struct {
	s       *Store
	l       *layout
	id      string
	calls   []*call
	entries []*entry
}

// add adds the call of a script that imports the record of e.
func (im *imports) add(e *entry, script *script, record string) {
	c := im.s.callAbout(im.l, script, strconv.FormatInt(micros(e.Ends), 10), e.Key, e.Rule)
	c.keys = append(c.keys, c.keys[0]+"~"+im.id)
	if script == im.l.scripts.place {
		c.args, c.calendars = c.args[:1], false // it needs no rule
	}
	c.args = append(c.args, record)
	im.calls, im.entries = append(im.calls, &c), append(im.entries, e)
}

// send sends all, and notes which entries were imported before.
func (im *imports) send(ctx context.Context) error {
	err := im.s.exchange(ctx, im.l, im.calls)
	for i, c := range im.calls {
		im.entries[i].Known, im.entries[i].Expired = c.data == importKnown, c.data == importExpired
	}
	return err
}

// move makes the times of e those of a clock that is ahead by d. Slots are moved to the next ones,
// so none leaves too early, but the two of TwoBucket, which are as long as the span, only by whole ones. The
// periods of a calendar stay.
func move(e *entry, d int64) {
	r := e.Was.Rule(e.WasRule)
	e.At, e.Ends = e.At+d, e.Ends+d
	for i := range e.States {
		s := &e.States[i]
		for j := range s.Times {
			s.Times[j] += d
		}
		s.Since += d
		if i >= len(r.Limits) {
			continue // what the ban counts has times
		}
		span := int64(r.Limits[i].Span)
		switch width := ring.Width(span); {
		case s.Counts != nil && r.Algorithm == ratelimit.TwoBucket:
			s.Newest += ring.FloorDiv(d, span)
		case s.Counts != nil:
			s.Newest -= ring.FloorDiv(-d, width)
		case s.Ends != 0 && r.Algorithm != ratelimit.Calendar:
			s.Ends += d
		}
	}
}

// counted returns what e has counted, under the rule that rl was made of, in the form of a record.
func (rl *rule) counted(e *entry) string {
	const cut = 1 << 15 // see record.lua
	r, resets := e.Was.Rule(e.WasRule), uint16(0)
	if e.Cut {
		resets = cut
	}
	b := appendUint56(slices.Clip(rl.head), micros(e.At))
	b = binary.BigEndian.AppendUint16(b, resets)
	for i, limits := 0, int(rl.head[1]); i < limits; i++ {
		a, l := ratelimit.Exact, ratelimit.Limit{} // what the ban counts
		if i < len(r.Limits) {
			a, l = r.Algorithm, r.Limits[i]
		}
		var body []byte
		if i < len(e.States) {
			body = appendBody(nil, a, l, micros(e.At), &e.States[i])
		}
		if i < limits-1 {
			b = appendUint(b, uint64(len(body)), 3)
		}
		b = append(b, body...)
	}
	return string(b)
}

// appendBody appends the body of a limit, which the script of its window reads, in a record whose newest
// time is at.
func appendBody(b []byte, a ratelimit.Algorithm, l ratelimit.Limit, at int64, s *limit.State) []byte {
	switch {
	case len(s.Times) > 0:
		return appendTimes(b, s)
	case a == ratelimit.TwoBucket && s.Counts != nil:
		return appendTwo(b, at/l.Span.Microseconds()-s.Newest, s)
	case s.Counts != nil:
		return appendRing(appendUint56(append(b, 1), micros(s.Since)), l.N, s)
	case s.Count > 0:
		return appendWindow(b, s)
	case s.Ends != 0:
		return appendLevel(b, l.N, s)
	}
	return b
}

// appendTwo appends the counts of two slots, after so many more have begun.
func appendTwo(b []byte, passed int64, s *limit.State) []byte {
	older, newer := uint64(0), uint64(0)
	switch {
	case passed <= 0:
		older, newer = s.Counts[0], s.Counts[1]
	case passed == 1:
		older = s.Counts[1]
	}
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(older)), uint32(newer))
}

// appendWindow appends when a window ends, and what is in it.
func appendWindow(b []byte, s *limit.State) []byte {
	if b = appendUint56(b, micros(s.Ends)); s.Count < 1<<32 {
		return binary.BigEndian.AppendUint32(b, uint32(s.Count))
	}
	return appendUint56(b, int64(min(s.Count, maxCost)))
}

// appendTimes appends a log.
func appendTimes(b []byte, s *limit.State) []byte {
	lost := byte(0)
	if s.Lost {
		lost = 1
	}
	b = append(b, lost)
	for _, t := range s.Times {
		b = appendUint56(b, micros(t))
	}
	return b
}

// appendRing appends the slots of a limit of n, from the oldest with a count on.
func appendRing(b []byte, n uint64, s *limit.State) []byte {
	counts, full := s.Counts, uint64(1<<32-1)
	switch {
	case n < 1<<8-1:
		full = 1<<8 - 1
	case n < 1<<16-1:
		full = 1<<16 - 1
	}
	for counts[0] == 0 {
		counts = counts[1:]
	}
	sum, most := uint64(0), uint64(0)
	for _, count := range counts {
		sum, most = sum+min(count, full), max(most, min(count, full))
	}
	b = appendUint(appendUint56(b, s.Newest), sum, 6)
	width := 1
	switch {
	case most > 1<<16-1:
		width = 4
	case most > 1<<8-1:
		width = 2
	}
	b = append(b, byte(width))
	for _, count := range counts {
		b = appendUint(b, min(count, full), width)
	}
	return b
}

// appendUint appends the last bytes of n, big-endian.
func appendUint(b []byte, n uint64, width int) []byte {
	var all [8]byte
	binary.BigEndian.PutUint64(all[:], n)
	return append(b, all[8-width:]...)
}

// appendLevel appends when a bucket that drains n in its span is empty: microseconds and
// 1/n of one, rounded up.
func appendLevel(b []byte, n uint64, s *limit.State) []byte {
	at, rest := s.Ends/1000, (uint64(s.Ends%1000)*n+s.Rest+999)/1000
	if rest >= n {
		at, rest = at+1, rest-n
	}
	if b = appendUint56(b, at); n <= 1<<16 {
		return binary.BigEndian.AppendUint16(b, uint16(rest))
	}
	return binary.BigEndian.AppendUint32(b, uint32(rest))
}

// micros returns the first microsecond that is not before t, in nanoseconds.
func micros(t int64) int64 { return (t + int64(time.Microsecond) - 1) / int64(time.Microsecond) }
