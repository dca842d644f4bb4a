package latelyredis

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
)

// A numberedConn sends each command a number, which its script returns before the answer, see newScript: after a lost, repeated
// or misplaced reply, an answer to another command is an error and no decision.
type numberedConn struct {
	Conn
	last *atomic.Uint32
}

// newNumberedConn returns a numberedConn over conn. Its numbers begin anywhere, since a Store and Counters may share a connection.
func newNumberedConn(conn Conn) numberedConn {
	c := numberedConn{conn, new(atomic.Uint32)}
	c.last.Store(rand.Uint32())
	return c
}

// Run implements Conn.
func (c numberedConn) Run(ctx context.Context, commands []Command) []Reply {
	numbers := make([]string, len(commands))
	for i := range commands {
		numbers[i] = string(binary.BigEndian.AppendUint32(nil, c.last.Add(1)))
		commands[i].Args = slices.Concat(commands[i].Args, numbers[i:i+1])
	}
	replies := c.Conn.Run(ctx, commands)
	for i := range replies {
		if r := &replies[i]; r.Err == nil {
			var own bool
			if r.Data, own = strings.CutPrefix(r.Data, numbers[i]); !own {
				*r = Reply{Err: errAnswer}
			}
		}
	}
	return replies
}

// Nodes implements Conn.
func (c numberedConn) Nodes(ctx context.Context) (map[string]Conn, error) {
	nodes, err := c.Conn.Nodes(ctx)
	for address, node := range nodes {
		nodes[address] = numberedConn{node, c.last}
	}
	return nodes, err
}
