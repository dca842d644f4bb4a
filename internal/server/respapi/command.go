package respapi

import (
	"fmt"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
)

// A command is one that clients can send. All that is known of it is here:
// dispatch, rights, COMMAND and its help come from one table, see commands.
type command struct {
	name    string // in lower case
	usage   string // of its arguments
	summary string
	group   string // for COMMAND DOCS

	// need is the role that it needs, needArgs the one that it needs with
	// arguments if that is more. access.None is for those that anyone may
	// send, tokens or not; said says that this is meant.
	need, needArgs access.Role
	said           bool

	least, most int // arguments, the name included; most 0: any number
	key         int // place of its key among them, 0 for none
	write       bool
	inFeed      bool // allowed in version 2 while it subscribes
	alone       bool // not allowed in a transaction
	control     bool // executed at once in a transaction
	handle      func(c *conn, args [][]byte) error

	next *command // with the same letter and length
}

// arity is Redis' way to say how many arguments there are.
func (c *command) arity() int {
	if c.least == c.most {
		return c.least
	}
	return -c.least
}

// atOnce reports whether c is executed at once in a transaction, and not queued: what
// ends it, and RESET without arguments, which is another command than RESET rule key.
func (c *command) atOnce(args [][]byte) bool {
	return c.control && (len(args) == 1 || c.needArgs == access.None)
}

// line returns how it is used.
func (c *command) line() string { return strings.TrimSpace(strings.ToUpper(c.name) + " " + c.usage) }

// An index finds commands by name without looking at more than a few.
type index struct {
	all     []*command
	buckets [1 << (letterBits + lengthBits)]*command
}

const (
	letterBits = 5 // of the first letter, without its case
	lengthBits = 4
	maxName    = 1<<lengthBits - 1
)

func bucket[T string | []byte](name T) int {
	return int(name[0])&(1<<letterBits-1)<<lengthBits | len(name)&maxName
}

// init makes x the index of a table. A command that does not say who may send it,
// that has no help or is there twice, is an error.
func (x *index) init(table []command) error {
	for i := range table {
		c := &table[i]
		switch {
		case c.name == "" || len(c.name) > maxName || c.name != strings.ToLower(c.name):
			return fmt.Errorf("command %q: allowed are names of 1 to %d lower-case letters", c.name, maxName)
		case c.need == access.None && !c.said:
			return fmt.Errorf("command %s does not say who may send it", c.name)
		case c.handle == nil || c.summary == "" || c.group == "" || c.least < 1:
			return fmt.Errorf("command %s has no handler, summary, group or number of arguments; every command has them", c.name)
		}
		if x.named([]byte(c.name)) != nil {
			return fmt.Errorf("command %s is there twice", c.name)
		}
		at := &x.buckets[bucket(c.name)]
		for *at != nil {
			at = &(*at).next
		}
		*at = c
		x.all = append(x.all, c)
	}
	return nil
}

// named returns the command of that name in any case, or nil.
func (x *index) named(name []byte) *command {
	if len(name) == 0 {
		return nil
	}
	c := x.buckets[bucket(name)]
	for c != nil && !isWord(name, c.name) {
		c = c.next
	}
	return c
}

// find returns the command that args are, or why they are none.
func (x *index) find(args [][]byte) (*command, error) {
	c := x.named(args[0])
	if c == nil {
		return nil, unknown(args[0])
	}
	if len(args) < c.least || len(args) > c.most && c.most > 0 {
		return nil, badArg("wrong number of arguments for '%s': %s", c.name, c.line())
	}
	return c, nil
}

// unknown is worded as Redis does it: clients look for these words to learn that a
// server is older than they hoped.
func unknown(name []byte) error {
	return &engine.Error{Code: api.Failed, Message: fmt.Sprintf("unknown command '%.64s'; COMMAND DOCS has those that there are", name)}
}

// isWord reports whether b is word in any case. word has no upper-case letter.
func isWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range len(word) {
		if c := b[i]; c != word[i] && (c|0x20 != word[i] || c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

func badArg(format string, args ...any) error {
	return &engine.Error{Code: api.BadArg, Message: fmt.Sprintf(format, args...)}
}
