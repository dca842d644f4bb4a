package latelyredis

import (
	"encoding/binary"
	"iter"
	"slices"
)

// bundleKeys is about how many keys are in a command at most: Redis does nothing else meanwhile.
const bundleKeys = 16

// repair is what a script answers instead of a decision that the script repair has to make.
const repair = "repair"

// A bundle is the calls of a command: one, or several decisions under the same rules. What Redis
// and the client do for each command is most of what a decision costs.
type bundle []*call

// bundled puts calls into bundles, each alone if slotted. Calls about one record stay in their order, which is that of the commands of a
// client.
func bundled(calls []*call, slotted bool) []bundle {
	all := make([]bundle, 0, len(calls))
calls:
	for _, c := range calls {
		for i := len(all) - 1; i >= 0 && !slotted && c.script.each; i-- {
			if all[i].takes(c) {
				all[i] = append(all[i], c)
				continue calls
			}
			if all[i].shares(c) {
				break
			}
		}
		all = append(all, bundle{c})
	}
	return all
}

// shares reports whether a call of b is about a record that c is about, too.
func (b bundle) shares(c *call) bool {
	return slices.ContainsFunc(b, func(other *call) bool {
		return slices.ContainsFunc(other.keys, func(key string) bool { return slices.Contains(c.keys, key) })
	})
}

// slotted reports whether the keys of a command must be in one slot.
func (s *Store) slotted() bool { return s.crossed.Load() || s.conn.Clustered() }

// takes reports whether c may be added to b: its rules are told in the same words, and nothing
// else is.
func (b bundle) takes(c *call) bool {
	first := b[0]
	return c.script.each && first.script == c.script && first.full == c.full && len(b)*len(c.keys) < bundleKeys &&
		len(c.args) == 1+len(c.keys) && slices.Equal(first.args[1:], c.args[1:])
}

// sent returns the command of b.
func (b bundle) sent() Command {
	first := b[0]
	if len(b) == 1 {
		return first.sent()
	}
	keys, heads := make([]string, 0, len(b)*len(first.keys)), make([]byte, 0, len(b)*len(first.args[0]))
	for _, c := range b {
		keys, heads = append(keys, c.keys...), append(heads, c.args[0]...)
	}
	together := command{first.script, first.full, keys, append([]string{string(heads)}, first.args[1:]...)}
	return together.sent()
}

// replies yields the calls of b, each with its part of the reply.
func (b bundle) replies(r Reply) iter.Seq2[*call, Reply] {
	return func(yield func(*call, Reply) bool) {
		for _, c := range b {
			part := r
			if c.script.each && r.Err == nil {
				part.Data, r.Data, part.Err = cutPart(r.Data)
			}
			if !yield(c, part) {
				return
			}
		}
	}
}

// cutPart cuts the first part off an answer that consists of parts, each behind its length in 4 bytes.
func cutPart(data string) (part, rest string, err error) {
	const lengthBytes = 4
	if len(data) < lengthBytes {
		return "", "", errAnswer
	}
	n := int(binary.BigEndian.Uint32([]byte(data[:lengthBytes])))
	if data = data[lengthBytes:]; n > len(data) {
		return "", "", errAnswer
	}
	return data[:n], data[n:], nil
}

// parts returns all parts of an answer.
func parts(data string) (all []string, err error) {
	for part := ""; len(data) > 0; all = append(all, part) {
		if part, data, err = cutPart(data); err != nil {
			return nil, err
		}
	}
	return all, nil
}
