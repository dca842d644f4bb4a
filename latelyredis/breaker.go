package latelyredis

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"
)

// ErrAway means that a call was not sent, because Redis, or the cluster node with the key, did not
// answer the last 20 calls. A question is sent every 250 ms; after an answer, all calls are sent again.
var ErrAway = errors.New("latelyredis: Redis does not answer: calls fail at once until it does")

const (
	// breakAfter is how many calls in a row are not answered until calls fail at once.
	breakAfter = 20

	// trialEvery is how often a question is sent then.
	trialEvery = 250 * time.Millisecond

	// ranges is how many parts the slots of a cluster are divided into.
	ranges = 16

	// moment is how long an answer shows that the client is connected.
	moment = 10 * time.Millisecond
)

// breakers make calls fail at once after several in a row were not answered: they would
// wait in vain for their deadlines, and the client keeps a goroutine for each of them. The first
// is about all calls, the others about a range of slots each. A node of a cluster has about whole
// ranges; which slots are its own, the store does not know.
type breakers struct {
	began time.Time
	parts [1 + ranges]breaker
}

// A breaker is open from the time when calls began to fail.
type breaker struct {
	failed atomic.Int32
	trial  atomic.Int64 // when a question was last sent, after breakers.began

	// answered is when a call was last answered, after breakers.began, to a tenth of a moment.
	answered atomic.Int64
}

// open reports whether c must fail at once, and whether a question is due.
func (b *breakers) open(c *call) (open, due bool) {
	for _, part := range []*breaker{&b.parts[0], &b.parts[c.part()]} {
		if part.failed.Load() >= breakAfter {
			now, last := int64(time.Since(b.began)), part.trial.Load()
			return true, now-last >= int64(trialEvery) && part.trial.CompareAndSwap(last, now)
		}
	}
	return false, false
}

// question asks whether the node with a key answers, which closes its breaker. It takes longer than calls may, since
// a client connects within the time of the call that finds no connection.
func (s *Store) question(l *layout, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), syncTimeout)
	defer cancel()
	s.send(ctx, l, []*call{{command: command{script: probeScript, keys: []string{key}, full: true}}})
}

// away reports whether no calls are answered, whatever they are about.
func (b *breakers) away() bool { return b.parts[0].failed.Load() >= breakAfter }

// note counts the results of calls that were sent together, once for each breaker: an answer to
// any of them closes it, also an answer that is an error.
func (b *breakers) note(calls []*call) {
	const lost, replied = 1, 2
	var came [1 + ranges]byte
	for _, c := range calls {
		what := byte(replied)
		if !answered(c.err) {
			what = lost
		}
		if !errors.Is(c.err, context.Canceled) {
			part := c.part()
			came[0], came[part] = max(came[0], what), max(came[part], what)
		}
	}
	now := int64(time.Since(b.began))
	for i, what := range came {
		part := &b.parts[i]
		switch {
		case what == replied:
			if i == 0 && b.away() { // it is over for all parts
				for j := range b.parts {
					b.parts[j].failed.Store(0)
				}
			}
			part.note(now)
		case what == lost && part.failed.Add(1) == breakAfter:
			part.trial.Store(now)
		}
	}
}

// answered reports whether err, of a call, is nil or an answer of the server.
func answered(err error) bool {
	_, told := errors.AsType[*ServerError](err)
	return err == nil || told
}

// note notes an answer. It writes seldom, since all goroutines read what it writes.
func (b *breaker) note(now int64) {
	if now-b.answered.Load() > int64(moment/10) {
		b.answered.Store(now)
	}
	if b.failed.Load() > 0 {
		b.failed.Store(0)
	}
}

// answering reports whether calls about the ranges of these were answered a moment ago.
func (b *breakers) answering(calls []*call) bool {
	now := int64(time.Since(b.began))
	for _, c := range calls {
		if now-b.parts[c.part()].answered.Load() >= int64(moment) {
			return false
		}
	}
	return true
}

// answeredWithin reports whether any call was answered within d.
func (b *breakers) answeredWithin(d time.Duration) bool {
	return time.Since(b.began)-time.Duration(b.parts[0].answered.Load()) <= d
}

// part returns which breaker is about the slot of c.
func (c *call) part() int {
	if c.inRange == 0 {
		c.inRange = 1 + int(slotOf(c.keys[0]))*ranges/slots
	}
	return c.inRange
}

// slots is how many slots a cluster has.
const slots = 16384

// slotOf returns the slot of a key: the CRC-16 of XMODEM of its hash tag, which each key of a store has.
func slotOf(key string) (crc uint16) {
	_, tag, _ := strings.Cut(key, "{")
	tag, _, _ = strings.Cut(tag, "}")
	for _, b := range []byte(tag) {
		crc = crc<<8 ^ crc16[byte(crc>>8)^b]
	}
	return crc % slots
}

var crc16 = func() (table [256]uint16) {
	const polynomial = 0x1021
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			top := crc >> 15
			crc = crc<<1 ^ top*polynomial
		}
		table[i] = crc
	}
	return table
}()
