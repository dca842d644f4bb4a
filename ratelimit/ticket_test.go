package ratelimit_test

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// TestTicketOfShortWay compares the tickets of the fast path, under single rules of all kinds, with what Reserve, which has
// no fast path, has charged; and settles both.
func TestTicketOfShortWay(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 200
	if testing.Short() {
		rounds = 60
	}
	charged, refused := 0, 0
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			r := bannedRule(t, rnd)
			if rnd.IntN(8) == 0 {
				r.Limits, r.Algorithm, r.Zone, r.CountRefused, r.Shadow = nil, 0, nil, false, false
				r.Ban = &ratelimit.Ban{After: 3, Of: ratelimit.Hits, Span: time.Second, For: 2 * time.Second}
			}
			c := ratelimit.Config{JitterSeed: 1}
			short, long := mustLimiter(t, mustSet(t, r), c), mustLimiter(t, mustSet(t, r), c)
			a, b := mustRule(short, "r"), mustRule(long, "r")
			for range 60 {
				time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
				key, cost := string(rune('a'+rnd.IntN(3))), rnd.Uint64N(4)
				if rnd.IntN(10) == 0 {
					if a.Reset(key) != nil || b.Reset(key) != nil {
						t.Fatal("not reset")
					}
				}
				if rnd.IntN(10) == 0 { // later events are judged at its time
					ahead := time.Now().Add(time.Second)
					a.TakeAt(ahead, 1, key)
					b.TakeAt(ahead, 1, key)
				}
				var ticket batch.Ticket
				d := short.Internal().TakeAll([]batch.Query{{Rule: "r", Key: []string{key}, Cost: cost, Ticket: &ticket}}, nil)[0]
				res := b.Reserve(cost, key)
				want := res.Ticket()
				for _, one := range []*batch.Ticket{&ticket, &want} {
					for i := range one.Charges {
						one.Charges[i].Mark &= 1<<32 - 1 // above it is the number of the table
					}
				}
				if !reflect.DeepEqual(d, res.Decision) || ticket.At != want.At || ticket.Cost != want.Cost || !reflect.DeepEqual(ticket.Charges, want.Charges) {
					t.Fatalf("%+v\n%+v\nhas the ticket\n%+v; Reserve:\n%+v\n%+v", r, d, ticket, res.Decision, want)
				}
				switch {
				case len(want.Charges) > 0:
					charged++
				case !d.Allowed:
					refused++
				}
				if rnd.IntN(2) == 0 {
					actual := rnd.Uint64N(cost + 1)
					ticket.Charges = withMarks(ticket.Charges)
					must.Get(short.Internal().SettleTicket(&ticket, actual))(t)
					must.Do(t, res.Settle(actual))
				}
			}
		})
	}
	if charged < 100 || refused < 100 {
		t.Errorf("%d charged and %d refused: the test has no teeth", charged, refused)
	}
}

// withMarks returns charges that are settled without a look at their marks.
func withMarks(charges []batch.Charge) []batch.Charge {
	for i := range charges {
		charges[i].Mark = batch.AnyMark
	}
	return charges
}
