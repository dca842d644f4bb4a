package latelyredis

import (
	"crypto/sha256"
	"hash/crc32"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// The list of bans in Redis has the banned keys and when their bans end, so that every node has a copy:
// a sorted set of ends and a hash of details, each in parts, and a stream of the changes. Its
// keys have one hash tag, so that a change is one step. What decides is the record of a key.

// listParts is in how many parts the list is: a script reads one of them at a time.
const listParts = 16

// banEnded is the answer of list.lua about a ban that was ended since it was seen.
const banEnded = "2"

// listKeys returns the names of the Redis keys of a part, that of the changes, and that of the part's bans that were ended lately.
func (s *Store) listKeys(part uint32) []string {
	tag, n := s.prefix+"{bans}:", strconv.Itoa(int(part))
	return []string{tag + "ends:" + n, tag + "details:" + n, tag + "changes", tag + "ended:" + n}
}

// listedKey returns what stands for key in the list.
func listedKey(key []byte) []byte {
	if len(key) <= ban.MaxKey {
		return key
	}
	sum := sha256.Sum256(key)
	return sum[:]
}

// listedRule returns what stands for a rule in the list: a rule that counts by other fields
// is another rule.
func listedRule(name string, fields []string) string {
	return string(snapshot.AppendBytes(snapshot.AppendBytes(nil, name), strings.Join(fields, ",")))
}

// listing returns the call that adds b, a ban of rl, to the list, or removes it if it
// has no end. Its times are those of the server. The record had that ban at a time, in microseconds, or has had none that held
// from then on.
func (s *Store) listing(l *layout, rl *rule, b *ban.Ban, at int64, held bool) *call {
	of, detail, was := rl.listed+string(b.Key), "", "0"
	if held {
		was = "1"
	}
	if b.Until > 0 {
		detail = string(snapshot.Seal(b.Append([]byte(of), 0))[len(of):])
	}
	return &call{command: command{
		script: l.scripts.list,
		keys:   s.listKeys(crc32.ChecksumIEEE([]byte(of)) % listParts),
		args:   []string{of, strconv.FormatInt(b.Until/1000, 10), detail, strconv.FormatInt(at, 10), was},
	}}
}

// syncKeys returns the names of the Redis keys of the changes, of the nodes, and of the time at
// which a node has given something back.
func (s *Store) syncKeys() []string {
	tag := s.prefix + "{bans}:"
	return []string{tag + "changes", tag + "nodes", tag + "returns"}
}

// A nodeClock tells the time of the server, as a node knows it from answers.
type nodeClock struct {
	now   func() int64 // the time of the node, in microseconds
	ahead atomic.Int64 // by how much the server is ahead of that
}

func newNodeClock() nodeClock {
	start := time.Now()
	return nodeClock{now: func() int64 { return start.Add(time.Since(start)).UnixMicro() }}
}

// at learns that the server's time was server, in microseconds, at some moment between the node's times
// sent and received. An earlier estimate is kept if it agrees with that.
func (c *nodeClock) at(server, sent, received int64) {
	if ahead := c.ahead.Load(); ahead < server-received || ahead > server-sent {
		c.ahead.Store(server - (sent+received)/2)
	}
}

// server returns what time it is on the server, in microseconds.
func (c *nodeClock) server() int64 { return c.now() + c.ahead.Load() }

// A mirror is the copy of the list that a node holds. Its times are those of the server, in
// nanoseconds: receiving a ban twice has no effect.
type mirror struct {
	nodeClock
	table *ban.Table
	seed  maphash.Seed

	mu  sync.Mutex
	ids map[string]uint32 // what stands for a rule in the table, by listedRule
}

// newMirror returns an empty copy.
func newMirror() *mirror {
	return &mirror{nodeClock: newNodeClock(), table: ban.NewTable(ban.Config{}), seed: maphash.MakeSeed(), ids: make(map[string]uint32)}
}

// id returns the number of a rule in the table.
func (m *mirror) id(listed string) uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.ids[listed]
	if !ok {
		id = uint32(len(m.ids) + 1)
		m.ids[listed] = id
	}
	return id
}

// find returns how a key is stored in the table, and its hash.
func (m *mirror) find(key []byte) (stored []byte, hash uint64) {
	stored = listedKey(key)
	return stored, maphash.Bytes(m.seed, stored)
}

// until returns when the ban of a key under a rule ends that holds now, in nanoseconds.
func (m *mirror) until(rule uint32, key []byte) (until int64, ok bool) {
	stored, hash := m.find(key)
	return m.table.Until(rule, hash, stored, m.server()*1000)
}

// add adds b, and reports whether it was not known, or is longer than was known.
func (m *mirror) add(b *ban.Ban) bool {
	now := m.server() * 1000
	until, known := m.until(b.Rule, b.Key)
	if b.Until <= now || known && until > b.Until {
		return false
	}
	copied := *b
	copied.Memory = 0 // what is over is of no use here
	added := m.table.Add(maphash.Bytes(m.seed, b.Key), &copied, now) == ban.Added
	return added && !(known && until == b.Until)
}

// remove removes the ban of a key, and reports whether it held.
func (m *mirror) remove(b *ban.Ban) bool {
	return m.table.Remove(b.Rule, maphash.Bytes(m.seed, b.Key), b.Key, m.server()*1000)
}

// read reads a ban as it is listed, or only whose it is if there is no detail. ok is false for what a
// newer version has listed in another form: its record has the ban nevertheless.
func (m *mirror) read(of, detail string) (b ban.Ban, ok bool) {
	r := snapshot.NewReader([]byte(of))
	r.Bytes(len(of)) // the name
	r.Bytes(len(of)) // the fields
	if r.Failed() {
		return b, false
	}
	if detail != "" {
		sealed, ok := snapshot.Unseal([]byte(of + detail)) // a damaged end would be in force here for years
		if !ok || len(sealed) < len(of) || !b.Read(snapshot.NewReader(sealed[len(of):]), 0, 0) {
			return b, false
		}
	}
	b.Rule, b.Key = m.id(of[:len(of)-r.Len()]), []byte(of[len(of)-r.Len():])
	return b, true
}
