package ratelimit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/snapshot"
)

// A chunk of counts has one rule, the layout of its records, and entries: key,
// how long before the chunk was written the key was judged last, and what each
// meter holds. What is read goes into a record of that layout first, and from
// there into the table: as it is if layouts are the same, else by the rules of
// an Update. A key whose entry would be too large has several, each with the
// state of one meter, and zeros for the others.

// counts exports the counts of all rules. It sees each table that is in use when
// it comes to it; when an Update has replaced one, it exports the new one, from
// the beginning.
func (x *dumper) counts() bool {
	done := make(map[*records]bool)
	for {
		mr := x.next(done)
		if mr == nil {
			return true
		}
		if done[mr.records] = true; !x.countsOf(mr) {
			return false
		}
	}
}

// next returns a rule whose records have not been exported.
func (x *dumper) next(done map[*records]bool) *memoryRule {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	for _, mr := range x.m.rules.Load().rules {
		if !done[mr.records] {
			return mr
		}
	}
	return nil
}

func (x *dumper) countsOf(mr *memoryRule) bool {
	x.Begin(snapshot.Counts, x.now)
	x.Buf = appendRule(x.Buf, mr.Rule)
	x.Buf = snapshot.AppendBytes(x.Buf, appendLayout(nil, &mr.records.layout, x.m.config.Resolution))
	x.EndHead()
	for group := range mr.records.table.Groups() {
		more, ok := x.group(mr.records, group)
		if !ok {
			return false
		}
		if !more {
			break
		}
	}
	return x.flush()
}

// group exports the records of a group of the table. more is false if they have
// been replaced.
//
// The keys are listed under the group's lock, and each record is locked for itself.
// No Update is under way meanwhile, so that no record moves to another table.
func (x *dumper) group(rs *records, group iter.Seq2[[]byte, keytable.Record]) (more, ok bool) {
	x.keys = x.keys[:0]
	for at, listed := 0, false; ; {
		// The lock is not kept while a full chunk is yielded.
		x.m.mu.Lock()
		if !x.m.rules.Load().has(rs) {
			x.m.mu.Unlock()
			return false, true
		}
		if !listed {
			for key := range group {
				x.keys = snapshot.AppendBytes(x.keys, key)
			}
			listed = true
		}
		at = x.entries(rs, at)
		x.m.mu.Unlock()
		if (at < len(x.keys) || x.Full() || len(x.large) > 0) && !x.flush() {
			return false, false
		}
		if at == len(x.keys) {
			return true, true
		}
	}
}

// entries appends the entries of the keys that are listed from at on, until the
// chunk is full, and returns where it ended.
func (x *dumper) entries(rs *records, at int) int {
	for at < len(x.keys) && !x.Full() && len(x.large) == 0 {
		n, w := binary.Uvarint(x.keys[at:])
		key := x.keys[at+w : at+w+int(n)]
		text := unsafe.String(unsafe.SliceData(key), len(key)) // only read
		at += w + int(n)
		if r, state := rs.table.Lock(rs.table.Hash(text), text); state == keytable.Found {
			x.entry(rs, key, r)
			r.Unlock()
		}
	}
	return at
}

// entry appends an entry of key, whose record that is, unless there is nothing to
// say.
func (x *dumper) entry(rs *records, key []byte, r keytable.Record) {
	w := r.Words()
	newest := keytable.Time(w[wordNewest])
	if !snapshot.ValidTime(newest, int64(MaxSpan)) || rs.over(w, newest, x.now) {
		return
	}
	start := len(x.Buf)
	x.key(key, newest, r.Flag())
	for i := range rs.own {
		m := &rs.own[i]
		x.Buf = m.AppendState(x.Buf, w[m.at:], m.blocks, newest)
	}
	if len(x.Buf)-start > largeEntry && len(rs.own) > 1 {
		x.Buf = x.Buf[:start]
		x.cut(rs, key, r, newest)
	}
}

// cut makes an entry for each meter of a key, in a chunk of its own.
func (x *dumper) cut(rs *records, key []byte, r keytable.Record, newest int64) {
	w := r.Words()
	for i := range rs.own {
		m := &rs.own[i]
		if m.Used(w[m.at:], m.blocks, newest) == 0 {
			continue
		}
		part := dumper{Writer: &snapshot.Writer{Buf: bytes.Clone(x.Head())}, now: x.now}
		part.key(key, newest, r.Flag())
		part.Buf = append(part.Buf, make([]byte, i)...)
		part.Buf = m.AppendState(part.Buf, w[m.at:], m.blocks, newest)
		part.Buf = append(part.Buf, make([]byte, len(rs.own)-1-i)...)
		x.large = append(x.large, part.Buf)
	}
}

// key appends how an entry begins: with the key, the time it was judged at last, and
// whether a bucket of it was cut.
func (x *dumper) key(key []byte, newest int64, cut bool) {
	x.Buf = snapshot.AppendBytes(x.Buf, key)
	x.Buf = binary.AppendVarint(x.Buf, x.now-newest)
	if cut {
		x.Buf = append(x.Buf, 1)
	} else {
		x.Buf = append(x.Buf, 0)
	}
}

// over reports whether nothing that the words w have counted is in a window at
// now. Where times may go back nothing is ever over.
func (rs *records) over(w []uint64, newest, now int64) bool {
	if rs.budget.Limit() == unbounded {
		return false
	}
	for i := range rs.meters {
		m := &rs.meters[i]
		if d := m.Reset(w[m.at:], m.blocks, newest); int64(d) > now-newest {
			return false
		}
	}
	return true
}

// counts restores the counts of one rule.
func (u *undumper) counts() error {
	mr := u.rule()
	was := u.r.Bytes(u.r.Len())
	if u.r.Failed() {
		return errNoRule
	}
	resolution := u.m.config.Resolution
	c := countsUndumper{undumper: u}
	var now []byte
	if mr != nil {
		c.to = mr.records
		now = appendLayout(nil, &c.to.layout, resolution)
	}
	l := layout{}
	if c.equal = mr != nil && bytes.Equal(was, now); c.equal {
		l = c.to.layout
	} else {
		var err error
		if l, resolution, err = readLayout(was); err != nil {
			return err
		}
	}
	var err error
	if c.from, err = looseRecords(l, resolution); err != nil {
		return err
	}
	c.w = make([]uint64, c.from.words)
	if c.to != nil {
		c.to.added(u.now)
	}
	for u.r.Len() > 0 {
		u.left = u.r.Len()
		if err := c.entry(); err != nil {
			return err
		}
	}
	return nil
}

var (
	errNoRule  = errors.New("there is no rule")
	errNoState = errors.New("there is no key, or nothing that it can hold")
)

// looseRecords returns records of a layout without a table: for the words of one
// record outside, with memory for all that they can hold.
func looseRecords(l layout, resolution time.Duration) (*records, error) {
	meters, err := l.meters(resolution)
	if err != nil {
		return nil, err
	}
	rs := &records{layout: l, budget: keytable.NewBudget(unbounded), words: wordNewest + 1}
	for _, mt := range meters {
		rs.meters = append(rs.meters, recordMeter{Counter: mt, at: rs.words, blocks: mt.Blocks(rs.budget)})
		rs.words += mt.Words()
	}
	rs.split()
	return rs, nil
}

// A countsUndumper restores the counts of one rule.
type countsUndumper struct {
	*undumper
	from  *records // of the layout that the chunk has
	w     []uint64 // a record of these
	to    *records // nil if there is no such rule any more
	equal bool     // both have one layout
	cut   bool     // whether a bucket of the entry was
}

// entry reads an entry, and restores it.
func (c *countsUndumper) entry() error {
	key := c.r.Bytes(maxStored)
	newest := c.written - c.r.Varint()
	c.cut = c.r.UpTo(1) == 1
	if c.r.Failed() || !snapshot.ValidTime(newest, int64(MaxSpan)) {
		return errNoState
	}
	c.from.clear(c.w)
	clear(c.w)
	for i := range c.from.meters {
		m := &c.from.meters[i]
		m.ReadState(c.r, c.w[m.at:], m.blocks, newest, c.now)
	}
	if c.r.Failed() {
		return errNoState
	}
	newest = min(newest, c.now)
	c.w[wordNewest] = keytable.Stamp(newest)
	switch {
	case c.to == nil:
		c.done.Unknown++
	case c.to.budget.Limit() != unbounded && c.from.over(c.w, newest, c.now):
		c.done.Expired++
	default:
		c.restore(unsafe.String(unsafe.SliceData(key), len(key)))
	}
	return nil
}

// restore puts what is in c.w into the table.
func (c *countsUndumper) restore(key string) {
	hash := c.to.table.Hash(key)
	r, state := c.to.table.LockOrAdd(hash, key)
	switch state {
	case keytable.NoMemory:
		c.to.toSketch(hash, c.from, c.w)
		c.done.Refused++
		return
	case keytable.Added:
		r.Words()[wordNewest] = keytable.Stamp(c.to.expired.Load())
	}
	w := r.Words()
	if c.into(w) || state == keytable.Added {
		if c.cut {
			r.SetFlag()
		}
		c.done.Keys++
	} else {
		c.done.Kept++
	}
	w[wordNewest] = max(w[wordNewest], c.w[wordNewest])
	c.to.cut(r)
	r.Unlock()
}

// into restores each meter of w that has nothing counted, and reports whether
// there was one.
func (c *countsUndumper) into(w []uint64) (any bool) {
	t, at := keytable.Time(c.w[wordNewest]), keytable.Time(w[wordNewest])
	for i := range c.to.meters {
		m, o := &c.to.meters[i], c.to.heir(i, c.from)
		if o == nil || o.Used(c.w[o.at:], o.blocks, t) == 0 || m.Used(w[m.at:], m.blocks, at) != 0 {
			continue
		}
		any = true
		m.Clear(w[m.at:], m.blocks)
		m.carry(w, o, c.w)
	}
	return any
}
