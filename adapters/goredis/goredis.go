// Package latelygoredis makes a [latelyredis.Store] talk to Redis or Valkey by a client of
// go-redis that the program has already.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
//	...
//	conn, err := latelygoredis.NewConn(client)
//	...
//	store, err := latelyredis.New(conn, set, latelyredis.Config{})
//	...
//	defer store.Close()
//	limiter, err := ratelimit.NewLimiter(set, ratelimit.Config{Store: store})
//
// A damaged reply may make go-redis panic. To prevent it, set in Options.Dialer one that returns each connection as
// latelyredis.CheckedConn does.
//
// The guarantees are those of latelyredis. Scripts are sent once, whatever MaxRetries and
// MaxRedirects say; of a cluster, MOVED and ASK are followed MaxRedirects times. What goroutines
// ask at the same time goes together, by few connections of the pool.
package latelygoredis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lately-go/lately/latelyredis"
)

// NewConn returns a conn for latelyredis.New and latelyredis.Counters.Connect by client: a *redis.Client, also one of
// redis.NewFailoverClient, or a *redis.ClusterClient. The caller closes the store and the counters, and then the client.
//
// The error says that the client is of another type, or that it does not have ContextTimeoutEnabled: it would ignore the
// deadlines of calls.
func NewConn(client redis.UniversalClient) (latelyredis.Conn, error) {
	enabled := false
	switch client := client.(type) {
	case *redis.Client:
		enabled = client.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		enabled = client.Options().ContextTimeoutEnabled
	default:
		return nil, fmt.Errorf("latelygoredis: client: %T: must be a *redis.Client or a *redis.ClusterClient", client)
	}
	if !enabled {
		return nil, errors.New("latelygoredis: client: ContextTimeoutEnabled: false: must be true, or the client ignores the deadlines of calls")
	}
	return conn{client}, nil
}

// conn sends scripts by a client of go-redis.
type conn struct{ client redis.UniversalClient }

// once is a command that the client sends once: it would repeat others when a connection
// fails, and count twice what they charge.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// Run implements latelyredis.Conn by a pipeline, which go-redis splits by node. It does not wait
// before it follows MOVED and ASK of a single command, as it does with a pipeline.
func (c conn) Run(ctx context.Context, commands []latelyredis.Command) []latelyredis.Reply {
	sent := make([]once, len(commands))
	for i := range commands {
		sent[i] = newOnce(ctx, &commands[i])
	}
	if len(sent) == 1 {
		c.client.Process(ctx, sent[0])
	} else {
		c.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, cmd := range sent {
				p.Process(ctx, cmd)
			}
			return nil
		})
	}
	replies := make([]latelyredis.Reply, len(commands))
	for i, cmd := range sent {
		r := &replies[i]
		if r.Data, r.Err = cmd.Text(); r.Err == nil {
			continue
		}
		if answer, ok := errors.AsType[redis.Error](r.Err); ok {
			r.Err = latelyredis.NewServerError(answer)
		}
	}
	return replies
}

func newOnce(ctx context.Context, c *latelyredis.Command) once {
	args := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	args = append(args, c.Name, c.Script, len(c.Keys))
	for _, k := range c.Keys {
		args = append(args, k)
	}
	for _, a := range c.Args {
		args = append(args, a)
	}
	cmd := once{redis.NewCmd(ctx, args...)}
	if len(c.Keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	return cmd
}

// Clustered implements latelyredis.Conn.
func (c conn) Clustered() bool {
	_, ok := c.client.(*redis.ClusterClient)
	return ok
}

// Nodes implements latelyredis.Conn.
func (c conn) Nodes(ctx context.Context) (map[string]latelyredis.Conn, error) {
	nodes := make(map[string]latelyredis.Conn)
	cluster, ok := c.client.(*redis.ClusterClient)
	if !ok {
		nodes[""] = c
		return nodes, nil
	}
	var mu sync.Mutex
	err := cluster.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes[node.Options().Addr] = conn{node}
		return nil
	})
	return nodes, err
}
