package latelyredis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// A damagedAnswers is a Conn whose server returns something else than the scripts: half of the answers are well-formed
// replies, but damaged within.
type damagedAnswers struct {
	latelyredis.Conn
	rng *rand.Rand
	on  bool
}

func (c *damagedAnswers) Run(ctx context.Context, commands []latelyredis.Command) []latelyredis.Reply {
	replies := c.Conn.Run(ctx, commands)
	for i := range replies {
		if c.on && c.rng.IntN(2) == 0 {
			replies[i] = c.damage(replies[i])
		}
	}
	return replies
}

// damage damages an answer behind its number, since a wrong number would be found otherwise.
func (c *damagedAnswers) damage(r latelyredis.Reply) latelyredis.Reply {
	const number = 4
	if len(r.Data) < number {
		return r
	}
	damaged := c.damageText(r.Data[number:])
	return latelyredis.Reply{Data: r.Data[:number] + damaged}
}

func (c *damagedAnswers) damageText(text string) string {
	b := []byte(text)
	at := c.rng.IntN(len(b) + 1)
	switch c.rng.IntN(7) {
	case 0:
		return string(b[:at])
	case 1:
		return string(b[:at]) + strings.Repeat("\xff", c.rng.IntN(40)) + string(b[at:])
	case 2:
		return []string{"", "repair", "begins", "period1234567", "0"}[c.rng.IntN(5)]
	case 3:
		return text + text
	case 4:
		return string(b[:min(len(b), 7*c.rng.IntN(8))]) // numbers have 7 bytes
	}
	for range 1 + c.rng.IntN(2) { // the end of a ban is there three times
		if len(b) > 0 {
			b[c.rng.IntN(len(b))] ^= byte(1 + c.rng.IntN(255))
		}
	}
	return string(b)
}

// TestDamagedAnswers damages the answers of scripts to all calls of a Store and Counters: nothing panics, and afterwards
// all is as before.
func TestDamagedAnswers(t *testing.T) {
	const limit = 20
	ctx, path, host := context.Background(), match.MustKey("path"), match.MustKey("host")
	rules := set(t, limited("sliding", path, ratelimit.Sliding, limit), limited("exact", path, ratelimit.Exact, limit),
		limited("bucket", host, ratelimit.GCRA, limit), limited("calendar", host, ratelimit.Calendar, limit), banning("flood", path, 5),
		ratelimit.Rule{
			Name: "both", Key: host, Limits: []ratelimit.Limit{{N: 9, Span: time.Second}, {N: limit, Span: time.Minute}},
			Ban: &ratelimit.Ban{After: 1, Span: time.Minute, For: time.Second},
		})
	rounds := 1500
	if longForm() {
		rounds = 100_000
	}
	rng := randtest.New(t)
	conn := &damagedAnswers{Conn: latelyredis.NewConn(redis(t).client(t)), rng: rng}
	for _, batched := range []bool{false, true} {
		config := prefixed()
		config.Batched = batched
		store := must.Get(latelyredis.NewQuietWith(conn, rules, config))(t)
		store.NeverAway()
		l := limiterOf(t, rules, store)
		c := must.Get(latelyredis.NewCounters(latelyredis.CountersConfig{Prefix: config.Prefix}))(t)
		counter := must.Get(c.Counter("pages", window.TableConfig{}, countedWindows...))(t)
		conn.on = true
		for range rounds {
			var e match.Event
			e.SetString(match.Path, fmt.Sprint(rng.IntN(5)))
			e.SetString(match.Host, fmt.Sprint(rng.IntN(5)))
			key := fmt.Sprint(rng.IntN(5))
			switch rng.IntN(10) {
			case 0:
				r := l.Reserve(&e, uint64(rng.IntN(4)))
				r.Settle(uint64(rng.IntN(5)))
			case 1:
				l.Bans().Add(ratelimit.BanRecord{Rule: "flood", Key: []string{key}, Until: time.Now().Add(time.Minute)})
			case 2:
				l.Bans().Remove("flood", key)
			case 3:
				store.Sync(ctx)
			case 4:
				store.Merge(ctx)
			case 5:
				r, _ := l.Rule("sliding")
				r.Charge(uint64(rng.IntN(3)), key)
				r.Refund(uint64(rng.IntN(3)), key)
				r.Reset(key)
			case 6:
				counter.Add(key, 1)
				c.PassBy(ctx, conn)
			default:
				l.Take(&e)
			}
		}
		conn.on = false
		if err := store.Sync(ctx); err != nil {
			t.Errorf("batched %v: the list of bans: %v", batched, err)
		}
		copied := store.Bans()
		for b := range copied.Table.All(copied.Now) {
			if left := time.Duration(b.Until - copied.Now); left > 500*time.Hour || len(b.Key) != 1 {
				t.Errorf("batched %v: %q is banned for %v, want five keys, for hours", batched, b.Key, left)
			}
		}
		var e match.Event
		e.SetString(match.Path, "again")
		for i := range limit + 1 {
			if d := l.Take(&e); d.Err != nil || d.Allowed && i == limit {
				t.Errorf("batched %v: %v %v: want the %d decisions of the server", batched, d.Allowed, d.Err, limit)
				break
			}
		}
	}
}

// TestDamagedTime changes what Redis keeps of the time of counters: that of the nodes goes on.
func TestDamagedTime(t *testing.T) {
	ctx, rng, client, config := t.Context(), randtest.New(t), redis(t).client(t), latelyredis.CountersConfig{Prefix: prefixed().Prefix}
	conn, c := latelyredis.NewConn(client), must.Get(latelyredis.NewCounters(config))(t)
	must.Do(t, c.PassBy(ctx, conn))
	key := config.Prefix + "{counters}:time"
	value := do(t, client, "GET", key)
	for what, damaged := range damages(rng, value) {
		do(t, client, "SET", key, damaged)
		for range 3 {
			c.PassBy(ctx, conn)
		}
		if late := time.Since(c.At()).Abs(); late > time.Minute {
			t.Fatalf("%s: %q instead of %q: the time is %v from that of Redis", what, damaged, value, late)
		}
	}
}

// TestDamagedCounts damages what the script of counters returns to two nodes: afterwards, both count what either adds, at the
// time of Redis.
func TestDamagedCounts(t *testing.T) {
	ctx, rng := context.Background(), randtest.New(t)
	conn := &damagedAnswers{Conn: latelyredis.NewConn(redis(t).client(t)), rng: rng}
	for range 30 {
		config := latelyredis.CountersConfig{Prefix: prefixed().Prefix}
		var nodes []*latelyredis.Counters
		var counters []*latelyredis.Counter
		for range 2 {
			c := must.Get(latelyredis.NewCounters(config))(t)
			nodes, counters = append(nodes, c), append(counters, must.Get(c.Counter("pages", window.TableConfig{}, countedWindows...))(t))
		}
		pass := func(times int) {
			for range times {
				for i, c := range nodes {
					counters[i].Add(fmt.Sprint(rng.IntN(5)), 1)
					c.PassBy(ctx, conn)
				}
			}
		}
		pass(40) // both have all counts
		conn.on = true
		pass(20)
		conn.on = false
		pass(40)
		for i := range nodes {
			counters[i].Add("again", 2)
		}
		pass(3)
		for i, c := range nodes {
			table, now := counters[i].Counts()
			if sum := table.SumAt(now, "again"); sum != 4 || time.Since(now).Abs() > time.Minute || !c.Complete() {
				t.Errorf("node %d: %d at %v, complete %v: want 4 now", i, sum, now, c.Complete())
			}
		}
	}
}
