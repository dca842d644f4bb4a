package latelyredis

import (
	"iter"
	"strings"
)

// bundleCalls is how many calls are in a command at most: Redis does nothing else meanwhile.
const bundleCalls = 16

// repair is what a script answers instead of a decision that the script repair has to make.
const repair = "repair"

// A bundle is the calls of a command: one, or several that a fast script decides under the same
// rule. What Redis and the client do for each command is most of what such a decision costs.
type bundle []*call

// bundled puts calls into bundles, each alone if slotted and all that no fast script decides.
func bundled(calls []*call, slotted bool) []bundle {
	all := make([]bundle, 0, len(calls))
calls:
	for _, c := range calls {
		for i, b := range all {
			if !slotted && b.takes(c) {
				all[i] = append(b, c)
				continue calls
			}
		}
		all = append(all, bundle{c})
	}
	return all
}

// slotted reports whether the keys of a command must be in one slot.
func (s *Store) slotted() bool { return s.crossed.Load() || s.conn.Clustered() }

// takes reports whether c may be added to b.
func (b bundle) takes(c *call) bool {
	first := b[0]
	return c.script.fast && first.script == c.script && first.rules[0] == c.rules[0] && first.full == c.full && len(b) < bundleCalls
}

// sent returns the command of b. A call has a key, its cost with flags, and the rule.
func (b bundle) sent() Command {
	first := b[0]
	if !first.script.fast {
		return first.sent()
	}
	keys, costs := make([]string, len(b)), make([]byte, 0, len(b)*uint56)
	for i, c := range b {
		keys[i], costs = c.keys[0], append(costs, c.args[0][:uint56]...)
	}
	together := command{first.script, first.full, keys, []string{first.args[1], string(costs)}}
	return together.sent()
}

// replies yields the calls of b, each with its part of the reply.
func (b bundle) replies(r Reply) iter.Seq2[*call, Reply] {
	return func(yield func(*call, Reply) bool) {
		rest := r.Data
		for i, c := range b {
			length := len(rest)
			switch {
			case i == len(b)-1:
			case strings.HasPrefix(rest, repair): // which no time begins with
				length = len(repair)
			default:
				length = min(length, uint56+answerBytes)
			}
			if !yield(c, Reply{rest[:length], r.Err}) {
				return
			}
			rest = rest[length:]
		}
	}
}
