package latelyredis

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/snapshot"
)

// The list of bans in Redis says who is banned and until when, so that every node has a copy:
// a sorted set of ends and a hash of details, each in parts, and a stream of the changes. Its
// keys have one hash tag, so that a change is one step. What decides is the record of a key.

// listParts is in how many parts the list is: a script reads one of them at a time.
const listParts = 16

// listKeys returns the names of the Redis keys of a part, and that of the changes.
func (s *Store) listKeys(part uint32) []string {
	tag, n := s.prefix+"{bans}:", strconv.Itoa(int(part))
	return []string{tag + "ends:" + n, tag + "details:" + n, tag + "changes"}
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
// has no end. Its times are those of the server.
func (s *Store) listing(l *layout, rl *rule, b *ban.Ban) *call {
	of, detail := rl.listed+string(b.Key), ""
	if b.Until > 0 {
		detail = string(b.Append(nil, 0))
	}
	return &call{command: command{
		script: l.scripts.list,
		keys:   s.listKeys(crc32.ChecksumIEEE([]byte(of)) % listParts),
		args:   []string{of, strconv.FormatInt(b.Until/1000, 10), detail},
	}}
}

// load reads the whole list.
func (s *Store) load(ctx context.Context, l *layout) error {
	calls := make([]*call, listParts)
	for i := range calls {
		calls[i] = &call{command: command{script: l.scripts.page, keys: s.listKeys(uint32(i))[:2]}}
	}
	s.exchange(ctx, l, calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
		if err := s.mirror.addPage(c.data); err != nil {
			return err
		}
	}
	return nil
}

// A mirror is the copy of the list that a node holds. Its times are those of the
// node, in nanoseconds, so that a step of the server's clock changes no ban.
type mirror struct {
	table *ban.Table
	seed  maphash.Seed
	now   func() int64 // the time of the node, in microseconds

	// ahead is by how much the server is ahead of that, in microseconds, to 100 ms: it
	// changes only when a clock was set, so a ban that is told of twice is the same.
	ahead atomic.Int64

	mu  sync.Mutex
	ids map[string]uint32 // what stands for a rule in the table, by listedRule
}

// newMirror returns an empty copy.
func newMirror() *mirror {
	start := time.Now()
	return &mirror{
		table: ban.NewTable(ban.Config{}), seed: maphash.MakeSeed(), ids: make(map[string]uint32),
		now: func() int64 { return start.Add(time.Since(start)).UnixMicro() },
	}
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

// at notes the time of the server, in microseconds.
func (m *mirror) at(server int64) {
	const exact = 100_000
	if ahead := server - m.now(); max(ahead-m.ahead.Load(), m.ahead.Load()-ahead) > exact {
		m.ahead.Store(ahead)
	}
}

// add adds b, whose times are those of the server, where it is now server, and reports
// whether it was not known, or is longer than was known.
func (m *mirror) add(b *ban.Ban, server int64) bool {
	m.at(server)
	ahead, own := m.ahead.Load()*1000, *b
	own.Since, own.Until, own.Memory = own.Since-ahead, own.Until-ahead, 0
	hash, now := maphash.Bytes(m.seed, b.Key), m.now()*1000
	if until, ok := m.table.Until(b.Rule, hash, b.Key, now); ok && until >= own.Until {
		return false
	}
	return m.table.Add(hash, &own, now) == ban.Added
}

// remove removes the ban of a key.
func (m *mirror) remove(b *ban.Ban) {
	m.table.Remove(b.Rule, maphash.Bytes(m.seed, b.Key), b.Key, m.now()*1000)
}

// addPage adds the bans of a part of the list.
func (m *mirror) addPage(page string) error {
	for len(page) > 0 {
		var of, detail string
		if len(page) < 8 {
			return errAnswer
		}
		a, b := int(binary.BigEndian.Uint32([]byte(page))), int(binary.BigEndian.Uint32([]byte(page[4:])))
		if page = page[8:]; a+b > len(page) {
			return errAnswer
		}
		of, detail, page = page[:a], page[a:a+b], page[a+b:]
		if err := m.addListed(of, detail); err != nil {
			return err
		}
	}
	return nil
}

// addListed adds a ban as it is listed.
func (m *mirror) addListed(of, detail string) error {
	r := snapshot.NewReader([]byte(of))
	r.Bytes(len(of)) // the name
	r.Bytes(len(of)) // the fields
	if r.Failed() {
		return errAnswer
	}
	b := ban.Ban{}
	if !b.Read(snapshot.NewReader([]byte(detail)), 0, 0) {
		return errAnswer
	}
	b.Rule = m.id(of[:len(of)-r.Len()])
	m.add(&b, m.now()+m.ahead.Load())
	return nil
}
