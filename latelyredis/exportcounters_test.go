package latelyredis

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// countsClock replaces clock.lua in the script of counters: the time is taken from the end of its arguments. Keys stay for
// a day, since the time of the server is another.
const countsClock = `
local now, call = tonumber(table.remove(ARGV)), redis.call
local redis = {call = function(command, ...)
  local a = {...}
  if command == 'PEXPIRE' or command == 'SET' then a[#a] = 86400000 end
  return call(command, unpack(a))
end}
`

// NewCountersAt returns Counters that run nothing in the background: the test calls Pass. The clock of the server is now,
// and that of the node is node, in microseconds.
func NewCountersAt(client rueidis.Client, config CountersConfig, now, node *atomic.Int64) (*Counters, error) {
	c, err := newCounters(config, countsClock)
	if err == nil {
		c.clock.now = node.Load
		c.conn = newNumberedConn(&unreliable{Conn: timed{rueidisConn{client}, now}})
	}
	return c, err
}

// unreliable loses the next answers.
type unreliable struct {
	Conn
	loses int
}

func (u *unreliable) Run(ctx context.Context, commands []Command) []Reply {
	replies := u.Conn.Run(ctx, commands)
	if u.loses > 0 {
		u.loses--
		return []Reply{{Err: context.DeadlineExceeded}}
	}
	return replies
}

// Pass is what a goroutine does every 100 ms. The answers of the first of its calls are lost.
func (c *Counters) Pass(ctx context.Context, loses int) (bool, error) {
	c.conn.(numberedConn).Conn.(*unreliable).loses = loses
	return c.pass(ctx)
}

// PassBy talks to Redis once by conn.
func (c *Counters) PassBy(ctx context.Context, conn Conn) error {
	c.conn = newNumberedConn(conn)
	_, err := c.pass(ctx)
	return err
}

// MaxOpen is how many keys are noted until entries are made.
const MaxOpen = maxOpen

// ForgetSeqs makes c lose which entries it has counted.
func (c *Counters) ForgetSeqs() { clear(c.seqs) }

// ForgetOwn has c count its own entries that it reads.
func (c *Counters) ForgetOwn() { c.ownFrom = 1 << 62 }

// At returns the time of Redis in c.
func (c *Counters) At() time.Time { return time.Unix(0, c.now()) }
