package latelyredis_test

import (
	"context"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A misplacedAnswers is a Conn that returns to each command the answers to the previous one, as after a lost reply.
type misplacedAnswers struct {
	latelyredis.Conn
	before []latelyredis.Reply
	on     bool
}

func (c *misplacedAnswers) Run(ctx context.Context, commands []latelyredis.Command) []latelyredis.Reply {
	replies := c.Conn.Run(ctx, commands)
	if c.on && len(c.before) == len(replies) {
		c.before, replies = replies, c.before
	} else {
		c.before = replies
	}
	return replies
}

// TestMisplacedAnswers takes of a full key and of an empty one in turn, while each gets the answer to the other: nothing is
// decided by it.
func TestMisplacedAnswers(t *testing.T) {
	rule := limited("r", match.MustKey("path"), ratelimit.Exact, 1)
	rule.OnStoreFailure = ratelimit.FailClosed
	rules := set(t, rule)
	conn := &misplacedAnswers{Conn: latelyredis.NewConn(redis(t).client(t))}
	store := must.Get(latelyredis.NewQuietWith(conn, rules, prefixed()))(t)
	store.NeverAway()
	l := limiterOf(t, rules, store)
	take := func(path string) ratelimit.Decision {
		var e match.Event
		e.SetString(match.Path, path)
		return l.Take(&e)
	}
	take("full")
	for range 20 {
		for _, path := range []string{"full", "empty"} {
			if d := take(path); d.Allowed && path == "full" || conn.on && d.Err == nil {
				t.Fatalf("answers misplaced %v: %s: allowed %v, %v", conn.on, path, d.Allowed, d.Err)
			}
			conn.on = true
		}
	}
	conn.on = false
	take("full")
	if d := take("full"); d.Allowed || d.Err != nil {
		t.Errorf("answers in order again: allowed %v, %v; want refused", d.Allowed, d.Err)
	}
}
