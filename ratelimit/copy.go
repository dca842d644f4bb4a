package ratelimit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/window"
)

const (
	// copyBatch is how many keys or bans are copied together, and copyWords of how many times and
	// slots: fewer, if they have many. A part of a table, some hundred keys, is not divided.
	copyBatch = 1000
	copyWords = 1 << 17

	// copyTimeout is how long a batch may take.
	copyTimeout = 10 * time.Second
)

// CopyTo adds what l has counted in memory, and its bans, to the shared store of another
// limiter, so that a program which moves to that store opens no free window. Use it before
// other decides, on a Limiter that [Limiter.Import] has filled and that decides nothing any more.
//
// Counts are added to what the store has: several processes that each counted a part of the events
// copy all of them. Of two bans of a key, the one that ends later holds. A rule is identified
// by its name and its key; if its limits have changed, its counts are carried.
//
// id names this copy. Each key is added once under one id, so if CopyTo has failed, or the program has
// ended before it was done, call it again with the same id and the same counts: none is counted
// twice. Another id adds all of them again.
//
// It yields, after every thousand keys, the numbers of all so far: Kept were added before under
// this id, Unknown have no rule in other or are bans of networks, which it does not look up, Long have more than a kibibyte. An error ends it. Of a long key,
// l has only a digest with a secret of its own, and the store another: so they are left out, and begin with nothing counted.
// Of a rule with one field, a digest cannot be told from a key; it is added, and is the key of nothing.
func (l *Limiter) CopyTo(ctx context.Context, other *Limiter, id string) iter.Seq2[window.Imported, error] {
	return func(yield func(window.Imported, error) bool) {
		to, ok := other.store.(store.Importing[*Set])
		if l.memory == nil || !ok {
			yield(window.Imported{}, errors.New("ratelimit: copy: must be from memory to a shared store"))
			return
		}
		c := &copier{to: to, set: other.Set(), id: id, m: l.memory, from: l.memory.rules.Load(), now: l.now(), ctx: ctx, yield: yield}
		_ = c.bans() && c.counts() && c.send()
	}
}

// A copier is one CopyTo. Its methods report whether it goes on.
type copier struct {
	ctx   context.Context
	to    store.Importing[*Set]
	set   *Set // of the store
	id    string
	m     *memory
	from  *memoryRules
	now   int64
	batch []store.Entry[*Set]
	words int // of the batch
	done  window.Imported
	yield func(window.Imported, error) bool
}

// entry returns an entry of a key under a rule of l. ok is false if the store has no such rule.
func (c *copier) entry(rule int, key []byte) (e store.Entry[*Set], ok bool) {
	r := c.from.rules[rule]
	i, ok := c.set.names[r.Name]
	if !ok || !bytes.Equal(c.set.Rule(i).Key.AppendShape(nil), r.Key.AppendShape(nil)) {
		c.done.Unknown++
		return e, false
	}
	if isDigest(r.Key, key) {
		c.done.Long++
		return e, false
	}
	return store.Entry[*Set]{Set: c.set, Rule: i, Key: bytes.Clone(key), Was: c.from.set, WasRule: rule}, true
}

// bans copies all bans, those that are remembered included.
func (c *copier) bans() bool {
	rules := make(map[uint32]int)
	for i, r := range c.from.rules {
		rules[r.id] = i
	}
	for b := range c.m.bans.Saved() {
		rule, ok := rules[b.Rule]
		if b.Rule&ofNetworks != 0 {
			c.done.Unknown++ // a shared store looks up no networks
			continue
		}
		if !ok {
			continue // it was removed with its rule
		}
		if over := c.now - b.Until; over > int64(b.Memory) {
			c.done.Expired++
			continue
		}
		if e, ok := c.entry(rule, b.Key); ok {
			e.Ban = &b
			c.batch = append(c.batch, e)
		}
		if len(c.batch) >= copyBatch && !c.send() {
			return false
		}
	}
	return true
}

// counts copies what the limits, and the counters of bans, have counted.
func (c *copier) counts() bool {
	for i, r := range c.from.rules {
		for group := range r.records.table.Groups() {
			for key, record := range group {
				c.record(i, key, record)
			}
			if (len(c.batch) >= copyBatch || c.words >= copyWords) && !c.send() {
				return false
			}
		}
	}
	return true
}

// record adds the entry of one key to the batch, unless nothing is in a window.
func (c *copier) record(rule int, key []byte, r keytable.Record) {
	rs, w := c.from.rules[rule].records, r.Words()
	at, ends := keytable.Time(w[wordNewest]), int64(0)
	states := make([]limit.State, len(rs.meters))
	for i := range rs.meters {
		m := &rs.meters[i]
		var used bool
		if states[i], used = m.State(w[m.at:], m.blocks, at); used {
			c.words += len(states[i].Times) + len(states[i].Counts)
			ends = max(ends, at+int64(m.Reset(w[m.at:], m.blocks, at)))
		}
	}
	if ends <= c.now {
		c.done.Expired++
		return
	}
	if e, ok := c.entry(rule, key); ok {
		e.States, e.At, e.Ends, e.Cut = states, at, ends, r.Flag()
		c.batch = append(c.batch, e)
	}
}

// send copies the batch.
func (c *copier) send() bool {
	ctx, cancel := context.WithTimeout(c.ctx, copyTimeout)
	defer cancel()
	if err := c.to.Import(ctx, c.id, c.batch); err != nil {
		c.yield(c.done, fmt.Errorf("ratelimit: copy: %w", err))
		return false
	}
	for i := range c.batch {
		switch e := &c.batch[i]; {
		case e.Known:
			c.done.Kept++
		case e.Expired:
			c.done.Expired++
		case e.Ban != nil:
			c.done.Bans++
		default:
			c.done.Keys++
		}
	}
	c.batch, c.words = c.batch[:0], 0
	return c.yield(c.done, nil)
}
