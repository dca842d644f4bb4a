package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// reserve reserves over RESP, and returns the id.
func (n *node) reserve(line string) string {
	n.t.Helper()
	answer := strings.Split(n.resp(line), "\r\n")
	if answer[0] != "*9" || answer[1] != ":1" {
		n.t.Fatalf("%s answers %q", line, answer)
	}
	return answer[len(answer)-3] // before +OK to QUIT and the end
}

// wantLeft takes nothing, and expects that so much is left of the limit of 4.
func (n *node) wantLeft(key string, want int, when string) {
	n.t.Helper()
	peek := n.resp(fmt.Sprintf("PEEK shared %s COST %d", key, want+1))
	if want > 0 {
		n.wantAnswer(fmt.Sprintf("PEEK shared %s COST %d", key, want), "*7\r\n:1\r\n", when)
	}
	if !strings.HasPrefix(peek, "*7\r\n:0\r\n") {
		n.t.Errorf("%s: more than %d are left: %q", when, want, peek)
	}
}

func (n *node) wantAnswer(line, want, when string) {
	n.t.Helper()
	if got := n.resp(line); !strings.HasPrefix(got, want) {
		n.t.Errorf("%s: %s answers %q, want %q", when, line, got, want)
	}
}

// TestSettleAtAnotherServer settles, at one server of a store, what another has reserved: once, also when it is sent to both.
// With Batched it is the same.
func TestSettleAtAnotherServer(t *testing.T) {
	t.Parallel()
	for _, batched := range []bool{false, true} {
		redis := redistest.Own(t)
		change := func(c *Config) { c.StoreBatched = batched }
		a, b := newNode(t, storeOf(redis), change), newNode(t, storeOf(redis), change)
		a.wantReady(200)
		b.wantReady(200)
		id := a.reserve("RESERVE shared 192.0.2.1 COST 3 FOR 60000")
		b.wantLeft("192.0.2.1", 1, "reserved")
		b.wantAnswer("SETTLE "+id+" COST 1", ":1\r\n", "at the other server")
		a.wantAnswer("SETTLE "+id+" COST 0", ":0\r\n", "again")
		b.wantAnswer("SETTLE "+id+" COST 4", ":0\r\n", "again")
		a.wantLeft("192.0.2.1", 3, "settled")
		id = b.reserve("CHECK client 192.0.2.1 user ada COST 2 RESERVE 60000") // two rules of two subjects
		a.wantLeft("192.0.2.1", 1, "reserved")
		a.wantAnswer("SETTLE "+id+" COST 0", ":1\r\n", "under two rules")
		a.wantLeft("192.0.2.1", 3, "settled")
		a.wantAnswer("PEEK closed ada COST 4", "*7\r\n:1\r\n", "settled under the other rule")

		same := a.reserve("RESERVE shared 192.0.2.2 COST 2")
		a.wantAnswer("SETTLE "+same+" COST 2", ":1\r\n", "for what was reserved")
		b.wantAnswer("SETTLE "+same+" COST 0", ":0\r\n", "again, for less")
		b.wantLeft("192.0.2.2", 2, "settled for what was reserved")

		more := a.reserve("RESERVE shared 192.0.2.3")
		b.wantAnswer("SETTLE "+more+" COST 40", ":1\r\n", "for more")
		a.wantLeft("192.0.2.3", 0, "beyond the limit")

		reset := a.reserve("RESERVE shared 192.0.2.4 COST 4")
		a.wantAnswer("RESET shared 192.0.2.4", "+OK", "reset")
		b.wantAnswer("TAKE shared 192.0.2.4", "*7\r\n:1\r\n", "reset")
		b.wantAnswer("SETTLE "+reset+" COST 0", ":1\r\n", "after a reset")
		b.wantLeft("192.0.2.4", 3, "after a reset")

		a.wantAnswer("CHARGE shared 192.0.2.5 COST 9", "+OK", "charge")
		b.wantLeft("192.0.2.5", 0, "charged")

		short := a.reserve("RESERVE shared 192.0.2.6 FOR 1")
		time.Sleep(2 * time.Millisecond)
		b.wantAnswer("SETTLE "+short+" COST 0", "-EXPIRED id: its time was over at ", "late")
		keys := redis.Do(t, "KEYS", "lately:{client=192.0.2.1}:*")
		if got := strings.Count(keys, "~"); got < 2 {
			t.Errorf("the keys of a client whose reservations were settled are %q", keys)
		}
		for _, id := range strings.Fields(keys) {
			if ttl := redis.Do(t, "PTTL", strings.Trim(id, "[]")); strings.HasPrefix(ttl, "-1") {
				t.Errorf("%s does not expire", id)
			}
		}
	}
}

// TestReserveWhileStoreIsAway reserves by local memory: the reservation is not settled in the store later.
func TestReserveWhileStoreIsAway(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	n := newNode(t, storeOf(redis))
	n.wantReady(200)
	held := n.reserve("RESERVE shared 192.0.2.1 COST 2")
	redis.Kill()
	eventually(t, "the store is away", func() bool { return !n.state().Up })
	local := n.reserve("RESERVE shared 192.0.2.1 COST 2")
	n.wantAnswer("SETTLE "+held+" COST 0", "-OVERLOAD the store of limits failed", "without a store")
	must.Do(t, redis.Run())
	n.wantReady(200)
	n.wantAnswer("TAKE shared 192.0.2.1", "*7\r\n:1\r\n", "of the empty store")
	n.wantAnswer("SETTLE "+local+" COST 0", ":1\r\n", "of local memory")
	n.wantAnswer("SETTLE "+local+" COST 0", ":0\r\n", "of local memory, again")
	n.wantAnswer("SETTLE "+held+" COST 0", ":1\r\n", "of a store that has lost it")
	n.wantLeft("192.0.2.1", 3, "nothing was given back that others have used")
}
