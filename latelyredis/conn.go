package latelyredis

import (
	"context"
	"errors"

	"github.com/redis/rueidis"
)

// A command runs a script.
type command struct {
	script *script
	full   bool // send the script, and not its name
	keys   []string
	args   []string
}

// A reply is the answer to a command: a string, or an error.
type reply struct {
	data string
	err  error
}

// A conn sends commands. Those of one call go to each node together, and conn returns
// their replies in order, when ctx ends at the latest. It never sends a command twice.
type conn interface {
	run(ctx context.Context, commands []command) []reply
}

// rueidisConn sends by a client of rueidis, which also puts together the commands of
// goroutines that call it at the same time.
type rueidisConn struct{ client rueidis.Client }

func (c rueidisConn) run(ctx context.Context, commands []command) []reply {
	if len(commands) == 1 {
		return []reply{rueidisReply(c.client.Do(ctx, c.build(&commands[0])))}
	}
	built := make([]rueidis.Completed, len(commands))
	for i := range commands {
		built[i] = c.build(&commands[i])
	}
	replies := make([]reply, len(commands))
	for i, r := range c.client.DoMulti(ctx, built...) {
		replies[i] = rueidisReply(r)
	}
	return replies
}

func (c rueidisConn) build(cmd *command) rueidis.Completed {
	if cmd.full {
		return c.client.B().Eval().Script(cmd.script.text).Numkeys(int64(len(cmd.keys))).Key(cmd.keys...).Arg(cmd.args...).Build()
	}
	return c.client.B().Evalsha().Sha1(cmd.script.sha).Numkeys(int64(len(cmd.keys))).Key(cmd.keys...).Arg(cmd.args...).Build()
}

func rueidisReply(r rueidis.RedisResult) reply {
	data, err := r.ToString()
	if answer, ok := errors.AsType[*rueidis.RedisError](err); ok {
		err = &ServerError{Code: codeOf(answer.Error()), Err: err}
	}
	return reply{data, err}
}
