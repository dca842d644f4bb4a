package ratelimit

import (
	"cmp"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/sketch"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/limit"
)

// memory is the store of this process: a keyed table for each rule of a Set, and a
// table of bans.
//
// A request is judged and charged with the records of all its keys locked, one for
// each rule, always in the same order of tables: requests never wait for each other
// in a circle, and no partial charge is ever visible. Keys of up to 15 bytes are
// compared in full, longer ones by 128 bits of seeded hashes. The garbage collector
// sees a few large blocks without pointers.
type memory struct {
	config Config
	seed   maphash.Seed
	secret atomic.Pointer[[32]byte] // of long keys' digests
	budget *keytable.Budget
	bans   *ban.Table
	rules  atomic.Pointer[memoryRules]
	nodes  atomic.Int64 // that share each limit

	// networks is nil until a network is banned by hand. A length stays when its last
	// ban has ended; it then costs one lookup.
	networks atomic.Pointer[networkLengths]

	mu     sync.RWMutex      // one Update at a time, and no Import meanwhile
	ids    map[string]uint32 // of rule names, for the ban table; never reused
	tables uint64            // tables made so far, which orders them
}

// newMemory returns an empty Memory for the rules of s, which has the share of one of so
// many nodes in each limit.
func newMemory(s *Set, c Config, nodes int64) (*memory, error) {
	if c.Resolution < 0 || c.Resolution > limit.MaxSpan {
		return nil, fmt.Errorf("resolution: %v: must be 0 (nanoseconds) to %v", c.Resolution, limit.MaxSpan)
	}
	if c.Bans < 0 || c.Bans > ban.MaxMost {
		return nil, fmt.Errorf("bans: %d: must be 0 (%d) to %d", c.Bans, ban.DefaultMost, ban.MaxMost)
	}
	if c.Budget = cmp.Or(c.Budget, defaultBudget); c.Budget < 0 {
		c.Budget = unbounded
	}
	repeatable := c.JitterSeed != 0
	if !repeatable {
		c.JitterSeed = rand.Uint64()
	}
	m := &memory{config: c, seed: maphash.MakeSeed(), budget: keytable.NewBudget(c.Budget), ids: make(map[string]uint32)}
	if repeatable { // a long key's ban too: its jitter is that of the digest
		secret := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("lately: jitter of long keys "), c.JitterSeed))
		m.secret.Store(&secret)
	} else {
		m.secret.Store(new([32]byte))
		cryptorand.Read(m.secret.Load()[:]) // never fails
	}
	bans := ban.Config{Budget: m.budget, Most: c.Bans, Keep: c.Budget == unbounded}
	if bans.Keep && bans.Most == 0 {
		bans.Most = ban.MaxMost
	}
	m.bans = ban.NewTable(bans)
	m.nodes.Store(nodes)
	rules, err := m.build(s, nil, nodes)
	if err != nil {
		return nil, err
	}
	m.rules.Store(rules)
	return m, nil
}

// unbounded is the budget without a limit.
const unbounded = 1 << 62

// memoryRules is a Set as Memory judges it.
type memoryRules struct {
	set   *Set
	rules []*memoryRule

	numbers []uint32 // of the rules, in the ban table

	// moving says that counts of the rules before are being carried over.
	moving atomic.Bool
}

// A memoryRule is one rule as Memory judges it.
type memoryRule struct {
	*Rule
	id        uint32 // of its name, in the ban table
	records   *records
	adapt     *adapter
	decisions *decisionCounts
	fast      bool // see decideFast
	plain     bool // see judgePlain
	byClient  bool // networks can be banned
	varying   int  // which limit has AtMost, or -1
	setsN     bool // its bucket drains by the N of what was charged last
}

// build returns the rules of s, for one of so many nodes, with what they can take over from
// old.
//
// REQUIRES: m.mu, or that nobody else knows m.
func (m *memory) build(s *Set, old *memoryRules, nodes int64) (*memoryRules, error) {
	rs := &memoryRules{set: s}
	for i := range s.rules {
		mr, err := m.buildRule(shareOfRule(s.rules[i], uint64(nodes)), len(s.rules), old)
		if err != nil {
			for _, made := range rs.rules {
				if old == nil || !old.has(made.records) {
					made.records.release()
				}
			}
			return nil, fmt.Errorf("rule %d (%q): %w", i+1, s.rules[i].Name, err)
		}
		rs.rules, rs.numbers = append(rs.rules, mr), append(rs.numbers, mr.id)
	}
	for _, mr := range rs.rules {
		mr.records.adapt.Store(mr.adapt)
	}
	return rs, nil
}

func (m *memory) buildRule(r *Rule, rules int, old *memoryRules) (*memoryRule, error) {
	mr := &memoryRule{Rule: r, byClient: byClient(r.Key), varying: r.varying()}
	mr.setsN = mr.varying >= 0 && r.Algorithm.Bursts()
	mr.fast = mr.hasFastPath()
	before := old.named(r.Name)
	if before != nil && keyvalue.Equal(before.Key, r.Key) {
		mr.decisions = before.decisions
		mr.id = before.id
		if before.adapt != nil && reflect.DeepEqual(r.Adapt, &before.adapt.config) {
			mr.adapt = before.adapt
		}
	} else {
		mr.decisions = new(decisionCounts)
		mr.id = m.nextID(r.Name, before != nil)
		before = nil
	}
	if r.Adapt != nil && mr.adapt == nil {
		mr.adapt = newAdapter(*r.Adapt, r.Limits[0].N)
	}
	l := newLayout(r, before)
	mr.plain = mr.isPlain()
	if before != nil && before.records.layout.equal(&l) {
		mr.records = before.records
		return mr, nil
	}
	m.tables++
	var err error
	if mr.records, err = newRecords(m, mr.id, l, rules); err != nil {
		return nil, err
	}
	if before != nil {
		mr.records.inherit(before.records)
	}
	return mr, nil
}

// nextID returns the number of a rule's name, or a fresh one if its keys are
// not those that the name was known with.
func (m *memory) nextID(name string, fresh bool) uint32 {
	if id, ok := m.ids[name]; ok && !fresh {
		return id
	}
	id := uint32(m.ids[""]) + 1 // rules have names, so "" counts
	m.ids[""], m.ids[name] = id, id
	return id
}

// named returns the rule of that name, or nil.
func (rs *memoryRules) named(name string) *memoryRule {
	if rs == nil {
		return nil
	}
	if i, ok := rs.set.names[name]; ok {
		return rs.rules[i]
	}
	return nil
}

// has reports whether a rule of rs uses these records.
func (rs *memoryRules) has(r *records) bool {
	return slices.ContainsFunc(rs.rules, func(mr *memoryRule) bool { return mr.records == r })
}

// Memory keeps keys of up to a kibibyte as they are. Of a longer one, which is
// rare and would cost a client nothing to send, it keeps an HMAC-SHA-256 with a
// secret of its own: nobody can build a key that is taken for it.

const (
	// maxKey is the longest key that Memory takes, in bytes.
	maxKey = 1<<20 - 1

	// maxStored is the longest that it keeps as it is.
	maxStored = keytable.MaxKey
)

// stored returns what stands for key in the tables of m.
func (m *memory) stored(key []byte) []byte {
	if len(key) <= maxStored {
		return key
	}
	return keytable.LongKey(m.secret.Load(), key)
}

// hashValue returns the hash by which a distinct value is known, in this process and in
// others with the same secret.
func (m *memory) hashValue(v []byte) uint64 {
	var b [128]byte
	sum := sha256.Sum256(append(append(b[:0], m.secret.Load()[:]...), v...))
	return binary.LittleEndian.Uint64(sum[:])
}

// scratchMemory is memory that only some requests take: those that look, that are about
// many rules, or about keys without memory. A request keeps it for the next.
type scratchMemory struct {
	words  []uint64
	probes []probe
	held   []sketch.Held
}

// scratchOf returns the scratch memory of r.
func scratchOf(r *request) *scratchMemory {
	if r.Scratch == nil {
		r.Scratch = new(scratchMemory)
	}
	return r.Scratch.(*scratchMemory)
}
