// Package refused keeps which keys rules refused lately, how often, and an example of each, so that
// an operator learns why a client is refused.
package refused

import (
	"bytes"
	"hash/maphash"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// Recent refusals take refusalSets * refusalWays records of a little more than half a KiB:
// 8.6 MiB for 16,384 keys.
const (
	refusalSets = 2048
	refusalWays = 8

	// refusalText is the bytes of a key and of an event in one record. A longer key is not
	// kept; an event has what the key leaves.
	refusalText = 384

	// exampleEvery is how often the event of a record is replaced by a newer one.
	exampleEvery = time.Second
)

// A Store counts refusals by rule and key over the last minute and hour, and keeps the keys that
// rules refused lately, each with one of the events. A key that is refused again and again takes
// one record, so that it does not push out others. A new key replaces the key in its set that
// was refused longest ago. It is safe for concurrent use and allocates nothing once it is made.
type Store struct {
	counts *window.Table // by the same keys
	seed   maphash.Seed
	sets   []refusalSet
}

type refusalSet struct {
	mu      sync.Mutex
	evicted int64 // when the newest key that was replaced was last refused; 0 if none was
	records [refusalWays]Record
}

// A Record is one key that a rule refused. Times are in nanoseconds since 1970.
type Record struct {
	hash        uint64
	Count       uint64 // 0: the record is empty
	First, Last int64

	// The event of the record.
	At                int64
	Decision          ratelimit.Decision
	method, host, key uint16
	path              uint16 // lengths, in the order key, method, host, path
	text              [refusalText]byte
}

// New returns an empty Store.
func New() *Store {
	counts, _ := window.NewTable(window.TableConfig{Budget: countsBudget},
		window.Window{Span: time.Minute, Slot: time.Minute / slots}, window.Window{Span: MaxSpan, Slot: MaxSpan / slots})
	return &Store{counts: counts, seed: maphash.MakeSeed(), sets: make([]refusalSet, refusalSets)}
}

const (
	// MaxSpan is the longest span over which refusals are counted.
	MaxSpan = time.Hour

	// countsBudget bounds the memory of the counts, in bytes: some tens of thousands of keys.
	// Then the keys that were refused least are evicted.
	countsBudget = 8 << 20

	slots = 10 // of each window
)

// AppendRule appends the beginning of a key in a Store, before the key of the rule: the name of
// the rule, a NUL byte, and the shape of its key, since a reload may change the shape.
func AppendRule(dst []byte, r *ratelimit.Rule) []byte {
	return keyvalue.AppendShape(append(append(dst, r.Name...), 0), r.Key)
}

// Split splits a key of a Store into its rule and the key of the rule. It reports false if set has
// no such rule, or it has another key.
func Split(set *ratelimit.Set, text []byte) (r *ratelimit.Rule, key []byte, ok bool) {
	name, rest, _ := bytes.Cut(text, []byte{0})
	if r, _ = set.Named(string(name)); r == nil {
		return nil, nil, false
	}
	key, ok = bytes.CutPrefix(rest, keyvalue.AppendShape(nil, r.Key))
	return r, key, ok
}

// Counts returns the table that counts refusals.
func (r *Store) Counts() *window.Table { return r.counts }

// Add counts a refusal of key, which begins as AppendRule says. ev is nil if there is only a key.
func (r *Store) Add(t time.Time, key []byte, d *ratelimit.Decision, ev *match.Event) {
	r.counts.AddAt(t, unsafe.String(unsafe.SliceData(key), len(key)), 1)
	if len(key) > refusalText {
		return
	}
	hash, now := maphash.Bytes(r.seed, key), t.UnixNano()
	set := &r.sets[hash%refusalSets]
	set.mu.Lock()
	defer set.mu.Unlock()
	x := set.find(hash, key)
	if x == nil {
		x = set.oldest()
		if x.Count > 0 {
			set.evicted = max(set.evicted, x.Last)
		}
		x.hash, x.Count, x.First, x.At = hash, 0, now, 0
		x.key = uint16(copy(x.text[:], key))
	}
	x.Count++
	x.Last = now
	if x.Count == 1 || now-x.At >= int64(exampleEvery) {
		x.setExample(now, d, ev)
	}
}

// find returns the record of key, or nil.
//
// REQUIRES: s.mu.
func (s *refusalSet) find(hash uint64, key []byte) *Record {
	for i := range s.records {
		if x := &s.records[i]; x.Count > 0 && x.hash == hash && bytes.Equal(x.text[:x.key], key) {
			return x
		}
	}
	return nil
}

// oldest returns an empty record, or the record of the key that was refused longest
// ago.
//
// REQUIRES: s.mu.
func (s *refusalSet) oldest() *Record {
	old := &s.records[0]
	for i := range s.records {
		x := &s.records[i]
		if x.Count == 0 {
			return x
		}
		if x.Last < old.Last {
			old = x
		}
	}
	return old
}

// setExample replaces the event of the record.
func (x *Record) setExample(now int64, d *ratelimit.Decision, ev *match.Event) {
	x.At, x.Decision = now, *d
	x.method, x.host, x.path = 0, 0, 0
	if ev == nil {
		return
	}
	rest := x.text[x.key:]
	keep := func(v []byte, most int) uint16 {
		n := min(len(v), most, len(rest))
		for n > 0 && n < len(v) && !utf8.RuneStart(v[n]) {
			n--
		}
		copy(rest, v[:n])
		rest = rest[n:]
		return uint16(n)
	}
	x.method = keep(ev.Get(match.Method), 16)
	x.host = keep(ev.Get(match.Host), 64)
	x.path = keep(ev.Get(match.Path), refusalText)
}

// Key returns the key of the record, for Split.
func (x *Record) Key() []byte { return x.text[:x.key] }

// Texts returns the method, host and path of the record's event.
func (x *Record) Texts() (method, host, path string) {
	rest := x.text[x.key:]
	next := func(n uint16) string {
		text := string(rest[:n])
		rest = rest[n:]
		return text
	}
	return next(x.method), next(x.host), next(x.path)
}

// Each calls f with a copy of each record that is in use, and returns when the newest key
// that was replaced was last refused: 0 if none was.
func (r *Store) Each(f func(*Record)) (evicted int64) {
	for i := range r.sets {
		set := &r.sets[i]
		set.mu.Lock()
		records := set.records
		evicted = max(evicted, set.evicted)
		set.mu.Unlock()
		for j := range records {
			if records[j].Count > 0 {
				f(&records[j])
			}
		}
	}
	return evicted
}
