package latelyredis

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/window"
)

// A node that starts, or has missed entries, gets the counts of another one: that writes its state
// into Redis when it is asked to, in parts, up to an entry of the log. Meanwhile it defers incoming
// adds, so the state contains exactly the entries up to that number, and its own entries by number.
// The first part is countsForm and the newest entry of each node that is counted; the others are
// the name of a counter, or a chunk of its table. Each has a checksum, except the last: the number of the entry.

// The types of parts.
const (
	partCounter = 't'
	partCounts  = 'c'
)

// writeState writes the state.
func (c *Counters) writeState(ctx context.Context) error {
	c.enter(true)
	defer c.enter(false)
	send := func(what, data string) error {
		if what != "end" {
			data = string(snapshot.Seal([]byte(data)))
		}
		answer, err := c.run(ctx, c.scripts.write, c.keys("state", "wanted"), c.node, what, data)
		if err == nil && answer != "1" {
			err = errOver
		}
		return err
	}
	seqs := binary.AppendUvarint(snapshot.AppendBytes([]byte{countsForm}, c.node), c.entries.last)
	for node, s := range c.seqs {
		if node != c.node {
			seqs = binary.AppendUvarint(snapshot.AppendBytes(seqs, node), s.seq)
		}
	}
	if err := send("first", string(seqs)); err != nil {
		return err
	}
	for _, x := range c.list() {
		if err := send("part", string(partCounter)+x.name); err != nil {
			return err
		}
		table, now := x.Counts()
		for chunk := range table.ExportAt(now) {
			if err := send("part", string(partCounts)+string(chunk)); err != nil {
				return err
			}
		}
	}
	return send("end", c.have)
}

// A countState is a state that is read.
type countState struct {
	seqs   map[string]read // nil before the first part
	tables map[*Counter]*window.Table
	last   *window.Table // nil if this process does not have the counter
	end    string
}

// readState reads the state, and makes it that of this node.
func (c *Counters) readState(ctx context.Context) error {
	s := &countState{tables: make(map[*Counter]*window.Table)}
	for after := noEntry; s.end == ""; {
		data, err := c.run(ctx, c.scripts.page, c.keys("state"), after)
		if err != nil {
			return err
		}
		if len(data) <= 16 {
			return errAnswer // it has expired
		}
		after = entryID(data)
		all, err := parts(data[16:])
		if err != nil {
			return err
		}
		for _, part := range all {
			if err := c.readPart(s, part); err != nil {
				return err
			}
		}
	}
	c.use(s)
	return nil
}

// readPart reads a part of a state.
func (c *Counters) readPart(s *countState, part string) error {
	if len(part) < 2 || (part[0] == 'f') == (s.seqs != nil) {
		return errOver // and not the rest of the one that was begun
	}
	what, data := part[0], []byte(part[1:])
	switch sealed, ok := snapshot.Unseal(data); {
	case what == 'e':
		if s.end = part[1:]; !isEntryID(s.end) {
			return errAnswer
		}
	case what == 'f' && data[0] != countsForm:
		return errCountsForm
	case !ok || len(sealed) == 0:
		return errAnswer
	case what == 'f':
		s.seqs = make(map[string]read)
		for r := snapshot.NewReader(sealed[1:]); r.Len() > 0; {
			node, seq := string(r.Bytes(len(data))), r.Uvarint()
			s.seqs[node] = read{seq, uint64(c.heard)}
		}
	case sealed[0] == partCounter:
		s.last = nil
		if x := c.named(string(sealed[1:])); x != nil {
			var err error
			if s.last, err = x.newTable(); err != nil {
				return err
			}
			s.tables[x] = s.last
		}
	case s.last != nil:
		_, err := s.last.ImportAt(time.Unix(0, c.now()), sealed[1:])
		return err
	}
	return nil
}

// use makes the state s that of this node, with what it has counted and the state does not have.
func (c *Counters) use(s *countState) {
	c.collect()
	for _, x := range c.list() {
		if s.tables[x] == nil {
			s.tables[x], _ = x.newTable() // as it was made before
		}
	}
	known := 0
	for known < len(c.entries.list) && c.entries.list[known].seq <= s.seqs[c.node].seq {
		known++
	}
	c.entries.drop(known)
	c.ownFrom = c.entries.last + 1
	for i, e := range c.entries.list {
		if i == 0 {
			c.ownFrom = e.seq
		}
		r, _ := entryReader(e.text)
		r.Bytes(len(e.text))
		r.Uvarint()
		readEntry(r, func(name string) *window.Table { return s.tables[c.named(name)] })
	}
	for x, table := range s.tables {
		x.replace(table)
	}
	c.seqs, c.have = s.seqs, s.end
	c.complete.Store(true)
}
