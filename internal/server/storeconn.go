package server

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/latelyredis"
)

// errNotReached is the error of calls before Redis was reached.
var errNotReached = errors.New("it was not reached since the start")

// A storeConn sends scripts by a client of rueidis, which can be made only when Redis is reached. Until then, its calls fail.
type storeConn struct{ connected atomic.Pointer[connected] }

type connected struct {
	client rueidis.Client
	conn   latelyredis.Conn
}

// client returns the client, or nil.
func (c *storeConn) client() rueidis.Client {
	if now := c.connected.Load(); now != nil {
		return now.client
	}
	return nil
}

// Run implements latelyredis.Conn.
func (c *storeConn) Run(ctx context.Context, commands []latelyredis.Command) []latelyredis.Reply {
	if now := c.connected.Load(); now != nil {
		return now.conn.Run(ctx, commands)
	}
	return slices.Repeat([]latelyredis.Reply{{Err: errNotReached}}, len(commands))
}

// Nodes implements latelyredis.Conn.
func (c *storeConn) Nodes(ctx context.Context) (map[string]latelyredis.Conn, error) {
	if now := c.connected.Load(); now != nil {
		return now.conn.Nodes(ctx)
	}
	return nil, errNotReached
}

// Clustered implements latelyredis.Conn.
func (c *storeConn) Clustered() bool {
	now := c.connected.Load()
	return now != nil && now.conn.Clustered()
}
