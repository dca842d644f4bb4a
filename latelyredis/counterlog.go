package latelyredis

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/window"
)

// What nodes have counted is in the log as entries: countsForm, the name of the node and the number of the entry,
// and then for each part of the time of a counter its name, when it began, and keys with what was added, and a checksum: a
// damaged time would make all later adds of a reader too old to be counted. The adds
// of an entry are counted by a node if it has not counted one of that number or above: so an entry that
// is in the log twice, since no answer came, counts once.

const (
	// countsForm is the form of entries, and of states.
	countsForm = 1

	// entryBytes is how long an entry becomes, and at most a key more.
	entryBytes = 60 << 10

	// unsentBytes bounds the entries that Redis has not confirmed.
	unsentBytes = 16 << 20

	// maxSeqs is the largest number of nodes whose newest entry is known.
	maxSeqs = 1000
)

// unsent are entries that Redis has not confirmed, oldest first.
type unsent struct {
	list  []logEntry
	bytes int
	last  uint64 // the number of the newest
}

type logEntry struct {
	seq  uint64
	adds uint64 // keys of parts of the time
	text string
}

// drop removes the first n.
func (u *unsent) drop(n int) {
	for _, e := range u.list[:n] {
		u.bytes -= len(e.text)
	}
	u.list = slices.Delete(u.list, 0, n)
}

// collect makes entries of what was noted.
func (c *Counters) collect() { c.enter(false) }

// enter makes entries of what was noted. With deferred, what is noted from now on is
// counted only when enter is called again.
func (c *Counters) enter(deferred bool) {
	w := entryWriter{c: c}
	for _, x := range c.list() {
		for _, s := range x.take(deferred) {
			w.add(x.name, &s)
		}
	}
	w.end()
	c.open.Add(-w.keys)
	for c.entries.bytes > unsentBytes {
		c.unshared.Add(c.entries.list[0].adds)
		c.entries.drop(1)
	}
}

// An entryWriter makes entries.
type entryWriter struct {
	c    *Counters
	buf  []byte
	adds uint64 // of buf
	keys int64  // of all
}

// add adds a slice of a counter.
func (w *entryWriter) add(name string, s *slice) {
	w.begin(name, s.from)
	for key, n := range s.counts {
		if len(w.buf) >= entryBytes {
			w.buf = append(w.buf, 0)
			w.end()
			w.begin(name, s.from)
		}
		w.buf = snapshot.AppendBytes(binary.AppendUvarint(w.buf, *n), key)
		w.adds++
		w.keys++
	}
	w.buf = append(w.buf, 0)
}

func (w *entryWriter) begin(name string, from int64) {
	if len(w.buf) == 0 {
		w.c.entries.last++
		w.buf = binary.AppendUvarint(snapshot.AppendBytes([]byte{countsForm}, w.c.node), w.c.entries.last)
	}
	w.buf = binary.AppendVarint(snapshot.AppendBytes(w.buf, name), from)
}

func (w *entryWriter) end() {
	if u := &w.c.entries; len(w.buf) > 0 {
		text := string(snapshot.Seal(w.buf))
		u.list = append(u.list, logEntry{u.last, w.adds, text})
		u.bytes += len(text)
	}
	w.buf, w.adds = nil, 0
}

// countEntry counts an entry of the log, unless it is counted.
func (c *Counters) countEntry(text string) {
	if text == "" {
		return // see counts.lua
	}
	r, ok := entryReader(text)
	if !ok {
		c.unread.Add(1)
		return
	}
	node, seq := string(r.Bytes(len(text))), r.Uvarint()
	own := node == c.node && seq >= c.ownFrom // was counted as it was added
	if r.Failed() || own || seq <= c.seqs[node].seq {
		return
	}
	c.noteSeq(node, seq)
	readEntry(r, func(name string) *window.Table {
		if x := c.named(name); x != nil {
			return x.table.Load()
		}
		return nil
	})
}

// entryReader returns a reader of what follows the form of an entry. ok is false if that is another, or the entry is damaged.
func entryReader(text string) (r *snapshot.Reader, ok bool) {
	sealed, ok := snapshot.Unseal([]byte(text))
	r = snapshot.NewReader(sealed)
	return r, ok && r.Byte() == countsForm
}

// noteSeq notes the newest entry of a node that is counted. If there are too many nodes, the one whose entry is
// the oldest is removed.
func (c *Counters) noteSeq(node string, seq uint64) {
	if _, known := c.seqs[node]; !known && len(c.seqs) >= maxSeqs {
		oldest := ""
		for name, s := range c.seqs {
			if oldest == "" || s.at < c.seqs[oldest].at {
				oldest = name
			}
		}
		delete(c.seqs, oldest)
	}
	c.seqs[node] = read{seq, uint64(c.heard)}
}

// readEntry counts what follows the number of an entry, in the tables of these names that are not nil.
func readEntry(r *snapshot.Reader, table func(name string) *window.Table) {
	for r.Len() > 0 {
		to, at := table(string(r.Bytes(maxCounterName))), time.Unix(0, r.Varint())
		for n := r.Uvarint(); n > 0; n = r.Uvarint() {
			key := r.Bytes(window.MaxTableKey)
			if to != nil && !r.Failed() {
				to.AddAt(at, string(key), n)
			}
		}
	}
}
