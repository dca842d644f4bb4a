package latelyredis

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/rueidis"
)

// A Conn sends scripts to Redis for a [Store] and [Counters] by a client library, see [NewConn]. Its methods
// are safe for concurrent use.
type Conn interface {
	// Run sends commands and returns their replies in order, no later than ctx ends.
	// Commands to one node are sent together. It follows MOVED and ASK, and otherwise
	// sends no command twice: if a connection fails, the command may have run.
	Run(ctx context.Context, commands []Command) []Reply

	// Nodes returns a Conn to each node of a cluster by its address, or to the single
	// server.
	Nodes(ctx context.Context) (map[string]Conn, error)

	// Clustered reports whether the client is for a cluster: then all keys of a command must be
	// in one slot.
	Clustered() bool
}

// A Command runs a script:
//
//	Name Script numkeys Keys... Args...
type Command struct {
	Name   string // EVALSHA, or EVAL for a script that the server does not have
	Script string // its digest or its text
	Keys   []string
	Args   []string
}

// A Reply is the reply to a [Command]: a string or an error. An error from the server is a
// [ServerError].
type Reply struct {
	Data string
	Err  error
}

// A command is a Command as a Store has it.
type command struct {
	script *script
	full   bool // send the script, and not its name
	keys   []string
	args   []string
}

func (c *command) sent() Command {
	if c.full {
		return Command{"EVAL", c.script.text, c.keys, c.args}
	}
	return Command{"EVALSHA", c.script.sha, c.keys, c.args}
}

// run sends the commands of calls, and returns when ctx ends at the latest. A client may not: while one call of
// rueidis connects, others wait for that, however long it takes. So unless there were answers a
// moment ago, another goroutine waits.
func (s *Store) run(ctx context.Context, calls []*call, commands []Command) []Reply {
	if s.breakers.answering(calls) {
		return s.conn.Run(ctx, commands)
	}
	replied := make(chan []Reply, 1)
	go func() { replied <- s.conn.Run(ctx, commands) }()
	select {
	case replies := <-replied:
		return replies
	case <-ctx.Done():
		return slices.Repeat([]Reply{{Err: ctx.Err()}}, len(commands))
	}
}

// NewConn returns a Conn over a client of [rueidis.NewClient], for a single server, Sentinel or a
// cluster.
func NewConn(client rueidis.Client) Conn { return rueidisConn{client} }

// rueidisConn sends by a client of rueidis, which also puts together the commands of
// goroutines that call it at the same time.
type rueidisConn struct{ client rueidis.Client }

// Run implements Conn.
func (c rueidisConn) Run(ctx context.Context, commands []Command) []Reply {
	if len(commands) == 1 {
		return []Reply{rueidisReply(c.client.Do(ctx, c.build(&commands[0])))}
	}
	built := make([]rueidis.Completed, len(commands))
	for i := range commands {
		built[i] = c.build(&commands[i])
	}
	replies := make([]Reply, len(commands))
	for i, r := range c.client.DoMulti(ctx, built...) {
		replies[i] = rueidisReply(r)
	}
	return replies
}

func (c rueidisConn) build(cmd *Command) rueidis.Completed {
	n := int64(len(cmd.Keys))
	if cmd.Name == "EVAL" {
		return c.client.B().Eval().Script(cmd.Script).Numkeys(n).Key(cmd.Keys...).Arg(cmd.Args...).Build()
	}
	return c.client.B().Evalsha().Sha1(cmd.Script).Numkeys(n).Key(cmd.Keys...).Arg(cmd.Args...).Build()
}

func rueidisReply(r rueidis.RedisResult) Reply {
	data, err := r.ToString()
	if answer, ok := errors.AsType[*rueidis.RedisError](err); ok {
		err = NewServerError(answer)
	}
	return Reply{data, err}
}

// Clustered implements Conn.
func (c rueidisConn) Clustered() bool { return c.client.Mode() == rueidis.ClientModeCluster }

// Nodes implements Conn.
func (c rueidisConn) Nodes(context.Context) (map[string]Conn, error) {
	nodes := make(map[string]Conn)
	for address, client := range c.client.Nodes() {
		nodes[address] = rueidisConn{client}
	}
	return nodes, nil
}
