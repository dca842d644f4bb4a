package respapi

import (
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
)

// A command is one that clients can send. Dispatch, roles, COMMAND and its help come
// from one table of commands.
type command struct {
	name    string // in lower case
	usage   string // of its arguments
	summary string
	group   string // for COMMAND DOCS

	role     access.Role // that it needs; access.None for commands that anyone may send
	argsRole access.Role // that it needs with arguments, if that is more

	least, most     int  // arguments, the name included; most 0: any number
	key             int  // index of its key among them, 0 for none
	write           bool // for COMMAND INFO
	whileSubscribed bool // allowed in version 2 while the connection subscribes
	notQueued       bool // an error in a transaction
	immediate       bool // executed at once in a transaction
	decides         bool // handle queues a decision, and conn.decide answers
	handle          func(c *conn, args [][]byte) error
}

// arity returns the number of arguments as Redis writes it: negative for a minimum.
func (c *command) arity() int {
	if c.least == c.most {
		return c.least
	}
	return -c.least
}

// runsNow reports whether c is executed at once in a transaction: commands that end
// it, and RESET without arguments, which is another command than RESET rule key.
func (c *command) runsNow(args [][]byte) bool {
	return c.immediate && (len(args) == 1 || c.argsRole == access.None)
}

// line returns how it is used.
func (c *command) line() string { return strings.TrimSpace(strings.ToUpper(c.name) + " " + c.usage) }

// A commandTable finds commands by name.
type commandTable struct {
	all    []command
	byName map[string]*command
}

func newCommandTable(all []command) commandTable {
	t := commandTable{all, make(map[string]*command, len(all))}
	for i := range all {
		t.byName[all[i].name] = &all[i]
	}
	return t
}

// maxName is longer than the name of any command.
const maxName = 16

// named returns the command of that name in any case, or nil.
func (t *commandTable) named(name []byte) *command {
	var lower [maxName]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return t.byName[string(lower[:len(name)])]
}

// find returns the command of args, or an error. For an unknown command it begins with the words
// of Redis, by which clients detect older servers.
func (t *commandTable) find(args [][]byte) (*command, error) {
	c := t.named(args[0])
	if c == nil {
		return nil, apierror.New(api.Failed, "unknown command '%.64s'; %s", args[0], instead(keys.View(args[0])))
	}
	if len(args) < c.least || len(args) > c.most && c.most > 0 {
		return nil, badArg("wrong number of arguments for '%s': %s", c.name, c.line())
	}
	return c, nil
}

// instead returns what to use in place of a command of Redis that this server does not have.
func instead(name string) string {
	switch strings.ToUpper(name) {
	case "INCR", "INCRBY", "DECR", "DECRBY", "EXPIRE", "PEXPIRE", "TTL", "PTTL", "ZADD", "ZCARD", "ZREMRANGEBYSCORE":
		return "a limit is TAKE rule key, or CL.THROTTLE key max_burst count period; a count is ADD counter key and SUM counter key"
	case "WATCH":
		return "keys cannot be watched for changes; each decision is atomic by itself"
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO", "FUNCTION", "SCRIPT":
		return "there are no scripts: a script that limits is TAKE rule key, or CL.THROTTLE key max_burst count period"
	case "SET", "SETEX", "SETNX", "PSETEX", "GET", "GETDEL", "GETEX", "GETSET", "MSET", "MGET", "APPEND", "EXISTS", "TYPE", "KEYS", "SCAN",
		"HSET", "HGET", "HGETALL", "HINCRBY", "LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "SMEMBERS", "XADD", "PFADD", "UNLINK", "FLUSHALL", "FLUSHDB", "PUBLISH":
		return "this is not a key-value store: it has limits, counters, bans and hot keys; COMMAND DOCS lists its commands"
	}
	return "COMMAND DOCS lists the commands"
}

// isWord reports whether b is word, which is ASCII, in any case.
func isWord(b []byte, word string) bool {
	return len(b) == len(word) && strings.EqualFold(keys.View(b), word)
}

// optional returns the value of an option after two arguments of a command, or nil.
func optional(args [][]byte, word, usage string) ([]byte, error) {
	switch {
	case len(args) == 3:
		return nil, nil
	case len(args) == 5 && isWord(args[3], word):
		return args[4], nil
	}
	return nil, badArg("'%.32s': must be %s", args[3], usage)
}

// options passes the value of each pair of a word and a value to the function of the word.
func options(args [][]byte, usage string, set map[string]func(value []byte) error) error {
	for ; len(args) > 0; args = args[2:] {
		option := set[strings.ToLower(string(args[0]))]
		if option == nil || len(args) == 1 {
			return badArg("'%.32s': must be %s", args[0], usage)
		}
		if err := option(args[1]); err != nil {
			return err
		}
	}
	return nil
}

// readInt reads an integer from least to most.
func readInt(what string, b []byte, least, most int64) (int64, error) {
	n, ok := resp.ParseInt(b)
	if !ok || n < least || n > most {
		return 0, badArg("%s: '%.32s': must be %d to %d", what, b, least, most)
	}
	return n, nil
}

// readDuration reads a duration of the form that rules files have.
func readDuration(what string, b []byte) (d time.Duration, err error) {
	if d, err = rulevalue.ParseDuration(keys.View(b)); err != nil {
		return 0, badArg("%s: '%.32s': must be a duration of 1ms to 3650d, such as 500ms, 10m, 1h30m or 7d", what, b)
	}
	return d, nil
}

// copies returns args as strings, which may be kept.
func copies(args [][]byte) (texts []string) {
	for _, arg := range args {
		texts = append(texts, string(arg))
	}
	return texts
}

func badArg(format string, args ...any) error { return apierror.New(api.BadArg, format, args...) }
