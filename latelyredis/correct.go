package latelyredis

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/ratelimit"
)

// What the script correct does.
const (
	correctRefund = 1 // what was charged at a time
	correctCharge = 2
	correctOldest = 3 // refund the oldest
	correctReset  = 4
	correctBan    = 5
	correctUnban  = 6

	// anyResets is the number of resets of a correction that does not depend on it.
	anyResets = 1<<16 - 1
)

// A correction is a call of the script correct.
func (s *Store) correction(l *layout, what byte, amount uint64, at int64, resets uint16, rule int, key []byte) call {
	head := appendUint56([]byte{what}, int64(min(amount, maxCost)))
	head = binary.BigEndian.AppendUint16(appendUint56(head, at), resets)
	c := s.callAbout(l, l.scripts.correct, string(head), key, nil, rule)
	c.what, c.returns = what, what == correctRefund || what == correctOldest || what == correctReset
	return c
}

// correct sends one correction, and returns the time at which it was done, in
// microseconds, and how much was given back.
func (s *Store) correct(ctx context.Context, l *layout, c *call) (now int64, taken uint64, err error) {
	s.exchange(ctx, l, []*call{c})
	return c.corrected()
}

func (c *call) corrected() (now int64, taken uint64, err error) {
	switch {
	case c.err != nil:
		return 0, 0, c.err
	case len(c.data) != 2*uint56 && len(c.data) != 2*uint56+banBytes:
		return 0, 0, errAnswer
	}
	return readUint56(c.data), uint64(readUint56(c.data[uint56:])), nil
}

// Settle implements the store of a Limiter. It identifies a charge by its time and the
// number of resets of its record.
func (s *Store) Settle(ctx context.Context, st *settlement) error {
	l := s.of(st.Set)
	if l == nil {
		return store.ErrStale
	}
	var calls []*call
	for i := range st.Subjects {
		sub := &st.Subjects[i]
		what, amount := byte(correctRefund), st.Charged-min(st.Actual, st.Charged)
		switch {
		case l.set.Rules()[sub.Outcome.Rule].Algorithm == ratelimit.InFlight:
			amount = st.Charged // it is over
		case st.Actual > st.Charged:
			what, amount = correctCharge, st.Actual-st.Charged
		}
		if !sub.Outcome.Charged || amount == 0 && st.ID == "" {
			continue
		}
		at, resets := unmark(sub.Mark)
		if allowed := sub.Mark == 0; allowed { // without a time that Redis knows
			if what == correctRefund && s.takeBack(&l.rules[sub.Outcome.Rule], sub.Key, amount) {
				continue
			}
			if resets = anyResets; what == correctRefund {
				what = correctOldest
			}
		}
		c := s.correction(l, what, amount, at, resets, sub.Outcome.Rule, sub.Key)
		if st.ID != "" {
			c.once(st)
		}
		calls = append(calls, &c)
	}
	s.exchange(ctx, l, calls)
	var errs []error
	st.Again = st.ID != "" && len(calls) > 0
	for _, c := range calls {
		if c.err == nil && c.data == doneBefore {
			continue
		}
		st.Again = false
		_, _, err := c.corrected()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

const (
	// doneBefore is what the script correct answers if the settlement of that ID was done.
	doneBefore = "done"

	// clockSkew is by how much the clocks of nodes may differ: for so long after its end an ID is remembered.
	clockSkew = time.Minute
)

// once has c done once for the ID of st: it is remembered in a key beside the record.
func (c *call) once(st *settlement) {
	c.keys = append(c.keys, c.keys[0]+"~"+st.ID)
	lives := max(time.Until(st.Ends), 0) + clockSkew
	c.args = append(c.args, strconv.FormatInt(lives.Milliseconds(), 10))
}

// Adjust implements the store of a Limiter.
func (s *Store) Adjust(ctx context.Context, a *adjustment) error {
	l := s.of(a.Set)
	switch {
	case l == nil:
		return store.ErrStale
	case len(a.Key) > maxKey:
		return ratelimit.ErrKeyTooLong
	}
	what := [...]byte{store.Charge: correctCharge, store.Refund: correctOldest, store.Reset: correctReset}[a.Change]
	c := s.correction(l, what, a.N, 0, anyResets, a.Rule, a.Key)
	if a.Change == store.Reset {
		s.changePending(&l.rules[a.Rule], a.Key, func(pending *uint64) { *pending = 0 })
	}
	now, taken, err := s.correct(ctx, l, &c)
	if err == nil {
		a.Now, a.Taken = now*1000, taken
	}
	return err
}
