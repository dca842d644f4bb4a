package engine_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/internal/test/must"
)

const budgetRules = `version: 1
limits:
  - {name: tokens, key: user, limit: 1000 per 1h}
  - {name: fleet, key: path, limit: 5000 per 1h}
  - {name: places, key: user, limit: 2 at once for 1h, algorithm: in-flight}
`

// reserve reserves for a key, and returns the id, "" if it was refused.
func reserve(t testing.TB, c *engine.Session, rule string, cost uint64, hold time.Duration, key string) string {
	t.Helper()
	must.Do(t, c.QueueTake(rule, cost, engine.Terms{Hold: hold}, key))
	return decided(t, c)
}

// decided makes the one queued decision, and returns the id of its reservation.
func decided(t testing.TB, c *engine.Session) (text string) {
	t.Helper()
	for d, err := range c.Decide() {
		id, asked := c.ID()
		if err != nil || !asked || d.Allowed != (len(id) > 0) {
			t.Fatalf("%+v, %v; id %q, %v", d, err, id, asked)
		}
		text = string(id)
	}
	return text
}

// used returns how much of a limit of n a key has used.
func used(t testing.TB, c *engine.Session, rule, key string) uint64 {
	t.Helper()
	must.Do(t, c.QueueTake(rule, 1, engine.Terms{Peek: true}, key))
	for d, err := range c.Decide() {
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			return d.Limit - d.Remaining - 1 // without the event that only looks
		}
		return d.Limit - d.Remaining
	}
	panic("no decision")
}

func wantUsed(t testing.TB, c *engine.Session, rule, key string, want uint64, when string) {
	t.Helper()
	if got := used(t, c, rule, key); got != want {
		t.Errorf("%s: %d of %s are used, want %d", when, got, rule, want)
	}
}

func settle(t testing.TB, c *engine.Session, id string, cost uint64, want bool) {
	t.Helper()
	if settled, err := c.Settle(id, cost); settled != want || err != nil {
		t.Errorf("Settle(%d) returns %v, %v, want %v", cost, settled, err, want)
	}
}

func TestReserveAndSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, budgetRules)
		c := e.Session()
		id := reserve(t, c, "tokens", 600, time.Minute, "ada")
		wantUsed(t, c, "tokens", "ada", 600, "reserved")
		if refused := reserve(t, c, "tokens", 600, time.Minute, "ada"); refused != "" {
			t.Error("a second reservation beyond the limit")
		}
		settle(t, c, id, 731, true)
		wantUsed(t, c, "tokens", "ada", 731, "settled for more than was reserved")
		for _, again := range []uint64{0, 731, 10000} {
			settle(t, c, id, again, false)
		}
		wantUsed(t, c, "tokens", "ada", 731, "settled again")

		id = reserve(t, c, "tokens", 200, time.Minute, "ada")
		settle(t, c, id, 0, true)
		wantUsed(t, c, "tokens", "ada", 731, "settled for nothing")
		id = reserve(t, c, "tokens", 100, time.Minute, "ada")
		settle(t, c, id, 100000, true)
		if d, _ := c.Take("tokens", 1, "ada"); d.Allowed || d.Remaining != 0 {
			t.Errorf("after a settlement beyond the limit: %+v", d)
		}

		late := reserve(t, c, "tokens", 300, time.Second, "bob")
		time.Sleep(time.Second)
		intime := reserve(t, c, "tokens", 50, time.Minute, "bob")
		time.Sleep(time.Nanosecond)
		_, err := c.Settle(late, 1)
		wantCode(t, err, api.Expired, "its time was over")
		wantUsed(t, c, "tokens", "bob", 350, "settled late")
		settle(t, c, intime, 1, true)
		wantUsed(t, c, "tokens", "bob", 301, "the other one is settled")

		id = reserve(t, c, "tokens", 1000, 2*time.Hour, "eve")
		time.Sleep(90 * time.Minute)
		c.Take("tokens", 700, "eve")
		settle(t, c, id, 0, true)
		wantUsed(t, c, "tokens", "eve", 700, "the reservation has left the window: what others have used since stays")
	})
}

func TestCharge(t *testing.T) {
	e := newEngine(t, budgetRules)
	c := e.Session()
	for range 3 {
		must.Do(t, c.Charge("tokens", 400, "ada"))
	}
	if d, _ := c.Take("tokens", 1, "ada"); d.Allowed || d.Remaining != 0 {
		t.Errorf("after charges beyond the limit: %+v", d)
	}
	wantCode(t, c.Charge("token", 1, "ada"), api.NoRule, "token")
	wantCode(t, c.Charge("tokens", 1, "ada", "too many"), api.BadArg, "")
}

// TestReserveUnderAllRules settles one id under each rule that matches an event.
func TestReserveUnderAllRules(t *testing.T) {
	e := newEngine(t, budgetRules)
	c := e.Session()
	must.Do(t, c.QueueCheck(event(c, "user", "ada", "path", "/chat"), 2, engine.Terms{Hold: time.Minute}))
	id := decided(t, c)
	for rule, key := range map[string]string{"tokens": "ada", "fleet": "/chat", "places": "ada"} {
		wantUsed(t, c, rule, key, 2, "reserved")
	}
	settle(t, c, id, 1, true)
	for rule, key := range map[string]string{"tokens": "ada", "fleet": "/chat"} {
		wantUsed(t, c, rule, key, 1, "settled")
	}
	wantUsed(t, c, "places", "ada", 0, "settled")
	must.Do(t, c.QueueCheck(event(c, "method", "GET"), 2, engine.Terms{Hold: time.Minute}))
	settle(t, c, decided(t, c), 5, true) // of no rule
}

// TestMadeUpIDs changes ids in many ways: each is rejected, and nothing changes.
func TestMadeUpIDs(t *testing.T) {
	e := newEngine(t, budgetRules)
	c := e.Session()
	id := reserve(t, c, "tokens", 600, time.Minute, "ada")
	if strings.Contains(id, "ada") || strings.Contains(id, base64.RawURLEncoding.EncodeToString([]byte("ada"))) || strings.Contains(id, base64.RawURLEncoding.EncodeToString([]byte("okens"))) {
		t.Errorf("the id %s shows the key", id)
	}
	wrong := []string{"", "ada", id[1:], id[:len(id)-1], id + "A", id + "=", id + "\n", " " + id, id + id, strings.ToUpper(id), strings.Repeat("A", 3<<20)}
	for i := range id {
		other := byte('A')
		if id[i] == 'A' {
			other = 'B'
		}
		wrong = append(wrong, id[:i]+string(other)+id[i+1:])
	}
	for _, text := range wrong {
		if text == id {
			continue
		}
		settled, err := c.Settle(text, 0)
		if wantCode(t, err, api.BadID, "id: not one that"); settled {
			t.Errorf("%.200q is an id", text)
		}
	}
	stranger := newEngine(t, budgetRules)
	_, err := stranger.Session().Settle(id, 0)
	wantCode(t, err, api.BadID, "id: not one that")
	wantUsed(t, c, "tokens", "ada", 600, "after made-up ids")
	settle(t, c, id, 1, true)
	e.Secret().Set(stranger.Secret().Value())
	_, err = c.Settle(id, 0)
	wantCode(t, err, api.BadID, "id: not one that")
}

// TestSettleAfterChanges settles ids whose key was reset and whose rule was changed or removed meanwhile.
func TestSettleAfterChanges(t *testing.T) {
	e := newEngine(t, budgetRules)
	c := e.Session()
	id := reserve(t, c, "tokens", 600, time.Minute, "ada")
	must.Do(t, c.Reset("tokens", "ada"))
	c.Take("tokens", 100, "ada")
	settle(t, c, id, 0, true)
	wantUsed(t, c, "tokens", "ada", 100, "reset")

	replace := func(old, now string) {
		t.Helper()
		must.Get(e.Replace(parse(t, strings.Replace(budgetRules, old, now, 1)), false))(t)
	}
	id = reserve(t, c, "tokens", 500, time.Minute, "ada")
	replace("1000 per 1h", "2000 per 1h")
	settle(t, c, id, 1, true)
	wantUsed(t, c, "tokens", "ada", 600, "other limits")
	id = reserve(t, c, "tokens", 500, time.Minute, "ada")
	replace("name: tokens", "name: other")
	settle(t, c, id, 1, true)
	replace("name: tokens, key: user", "name: tokens, key: path")
	wantUsed(t, c, "tokens", "ada", 0, "another key")
	settle(t, c, reserve(t, c, "places", 1, time.Minute, "ada"), 0, true)
	place := reserve(t, c, "places", 2, time.Minute, "ada")
	replace("2 at once", "3 at once")
	settle(t, c, place, 0, true)
	wantUsed(t, c, "places", "ada", 0, "an event in flight is over")
}

// TestSettleAfterRestart restores a snapshot in another engine: reservations in it can be settled, once, and others are not
// given back.
func TestSettleAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, budgetRules)
		c := e.Session()
		time.Sleep(time.Second)
		c.Take("tokens", 50, "ada")
		kept := reserve(t, c, "tokens", 300, time.Hour, "ada")
		over := reserve(t, c, "tokens", 100, time.Hour, "ada")
		settle(t, c, over, 10, true)
		place := reserve(t, c, "places", 1, time.Hour, "ada")
		reset := reserve(t, c, "tokens", 300, time.Hour, "bob")
		time.Sleep(2 * time.Second)
		records := saved(t, e)
		time.Sleep(2 * time.Second)
		lost := reserve(t, c, "tokens", 400, time.Hour, "ada") // and then the process is killed

		f := restored(t, budgetRules, records)
		f.Secret().Set(e.Secret().Value())
		c = f.Session()
		wantUsed(t, c, "tokens", "ada", 360, "restored")
		settle(t, c, over, 0, false)
		wantUsed(t, c, "tokens", "ada", 360, "settled before the restart")
		settle(t, c, lost, 70, true)
		wantUsed(t, c, "tokens", "ada", 430, "the charge was lost, and the cost is counted")
		settle(t, c, kept, 100, true)
		settle(t, c, kept, 0, false)
		wantUsed(t, c, "tokens", "ada", 230, "settled after the restart")
		settle(t, c, place, 0, true)
		wantUsed(t, c, "places", "ada", 0, "the place is free")
		name := []byte("tokens") // in the buffer of a connection, for the next command
		must.Do(t, c.Reset(unsafe.String(&name[0], len(name)), "bob"))
		copy(name, "others")
		c.Take("tokens", 5, "bob")
		settle(t, c, reset, 0, true)
		wantUsed(t, c, "tokens", "bob", 5, "reset after the restart")

		// A second restart, with an engine that has both reservations.
		time.Sleep(time.Second)
		again := reserve(t, c, "tokens", 100, time.Hour, "ada")
		time.Sleep(2 * time.Second)
		g := restored(t, budgetRules, saved(t, f))
		g.Secret().Set(e.Secret().Value())
		c = g.Session()
		settle(t, c, kept, 0, false)
		settle(t, c, lost, 0, false)
		settle(t, c, again, 1, true)
		wantUsed(t, c, "tokens", "ada", 231, "settled after the second restart")

		// Other limits after the restart: counts are carried, reservations are void.
		h := restored(t, strings.Replace(budgetRules, "1000 per 1h", "900 per 1h", 1), records)
		h.Secret().Set(e.Secret().Value())
		c = h.Session()
		settle(t, c, kept, 0, true)
		wantUsed(t, c, "tokens", "ada", 360, "the rule has other limits since the restart")

		// Without a record of the process, it was killed before its first snapshot.
		i := restored(t, budgetRules, slices.DeleteFunc(records, func(r record) bool { return r.typ == state.Lives }))
		i.Secret().Set(e.Secret().Value())
		c = i.Session()
		settle(t, c, kept, 7, true)
		wantUsed(t, c, "tokens", "ada", 367, "of a process that has written no snapshot")
	})
}

// TestBatchOfReservations queues reservations among other decisions: each has its own id.
func TestBatchOfReservations(t *testing.T) {
	e := newEngine(t, budgetRules)
	c := e.Session()
	for round := range 2 {
		for i := range 100 {
			terms := engine.Terms{}
			if i%2 == 0 {
				terms.Hold = time.Minute
			}
			must.Do(t, c.QueueTake("tokens", 10, terms, fmt.Sprint("u", i)))
		}
		var ids []string
		i := 0
		for _, err := range c.Decide() {
			id, asked := c.ID()
			if err != nil || asked != (i%2 == 0) || asked != (len(id) > 0) {
				t.Fatalf("decision %d: %q, %v, %v", i, id, asked, err)
			}
			if asked {
				ids = append(ids, string(id))
			}
			i++
		}
		for k, id := range ids {
			settle(t, c, id, 1, true)
			wantUsed(t, c, "tokens", fmt.Sprint("u", 2*k), uint64(round+1), "settled")
		}
	}
}
