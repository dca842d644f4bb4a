package ratelimit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/keyvalue"
	"github.com/lately-go/lately/internal/snapshot"
	"github.com/lately-go/lately/window"
)

// Export yields all that l knows, in chunks, for a snapshot; see [Limiter.Import]. That
// is, for each key under each rule, the newest time it was judged at and what its limits
// and the counter of its ban hold; all bans, past ones that are remembered included; and
// what a rule with an Adapt has measured. now is the current time of the caller, as
// [Limiter.Now] has it. What is in no window any more then is left out, unless l has
// NoBudget.
//
// Each chunk has a checksum. Most have 64 KiB, none more than a mebibyte. A chunk is
// valid until the loop goes on. Protect chunks like what they hold: keys, and the secret
// of the digests of keys of more than a kibibyte.
//
// Decisions continue during the export. A new key waits while those of its page, some
// hundreds, are listed; any other waits while its own record is written. The state of a
// key under a rule is of one moment; that of different keys or rules is not. Bans come
// first: a ban that begins during the export may be missing, and the events that led to
// it are then in the counters. Rules may be updated; what was exported before the update
// may come again, and counts once.
//
// Statistics are not exported, and neither are the sketches of keys without memory, which
// do not know their keys: after a restart these begin at 0, as any key that was evicted.
// So a flood that fills the budget with protected keys is undercounted for one span after
// a restart, by N for each key without a record.
//
// If the store is not memory, nothing is yielded. The complexity is O(k) where k is the
// number of keys under all rules: a million keys take about a tenth of a second.
func (l *Limiter) Export(now time.Time) iter.Seq[[]byte] {
	if l.memory == nil {
		return func(func([]byte) bool) {}
	}
	return l.memory.Export(now)
}

func (m *memory) Export(now time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		x := &exporter{Writer: snapshot.NewWriter(snapshot.Secret, nanos(now), yield), m: m, now: nanos(now)}
		x.Buf = append(x.Buf, m.secret.Load()[:]...) // of long keys
		_ = x.Flush() && x.bans() && x.adapts() && x.counts()
	}
}

// An exporter exports what a memory knows. A rule is identified by its name and by the
// shape of its key, so that counters are not taken for those of other keys.
type exporter struct {
	*snapshot.Writer

	m   *memory
	now int64
}

// appendRule appends what identifies a rule.
func appendRule(dst []byte, r *Rule) []byte {
	dst = snapshot.AppendBytes(dst, r.Name)
	return snapshot.AppendBytes(dst, keyvalue.AppendShape(nil, r.Key))
}

// Import restores a chunk of [Limiter.Export], of this or another process. Use it on a
// Limiter that has decided nothing. On any other it does no harm: what l knows already
// stays, and a key that was judged since keeps what it has counted since. Importing a
// chunk twice changes nothing. now is the current time of the caller, as [Limiter.Now]
// has it.
//
// Import the first chunk first. The others may be imported in any order, and by several
// goroutines at the same time, which is faster: each core restores more than a million
// keys a second.
//
// If a rule counts as it did, later decisions are those that would have been made without
// a restart. If its limits, algorithm or ban have changed, its counts are carried as by
// [Limiter.Update]. A rule is identified by its name and its key; the counts of any other
// are left out. Counts beyond the present limits, which an Update keeps for the time when
// these are raised, are not known after a restart.
//
// If the clock was set back since the export, nothing is held for longer: what was
// counted after now counts at now, and a ban has as long left as it had at the export. A
// ban that a rule began is no longer than that rule's longest from now on.
//
// The numbers say what became of what the chunk held. When the budget is spent, keys are
// evicted as usual, the unprotected that came first; keys without memory share a sketch.
//
// The error says that the chunk is damaged. If its checksum is wrong, nothing was
// restored, else what came before the damage. Memory is bounded by the length of the
// chunk and the budget, whatever its bytes. Update waits meanwhile, decisions do not.
func (l *Limiter) Import(now time.Time, chunk []byte) (window.Imported, error) {
	if l.memory == nil {
		return window.Imported{}, errors.New("ratelimit: import: the limits are in a shared store: must be in memory")
	}
	return l.memory.Import(now, chunk)
}

func (m *memory) Import(now time.Time, chunk []byte) (window.Imported, error) {
	kind, r, written, err := openChunk(chunk, snapshot.Counts, snapshot.Bans, snapshot.Adapt, snapshot.Secret)
	if err != nil {
		return window.Imported{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	in := &chunkImport{m: m, rules: m.rules.Load(), r: r, now: nanos(now), written: written, at: r.Offset()}
	switch kind {
	case snapshot.Counts:
		err = in.counts()
	case snapshot.Bans:
		err = in.bans()
	case snapshot.Adapt:
		err = in.adapt()
	case snapshot.Secret:
		err = in.secret()
	}
	if err != nil {
		err = fmt.Errorf("ratelimit: chunk is damaged after %d of %d bytes: %w", in.at, len(chunk), err)
	}
	return in.done, err
}

// openChunk is snapshot.Open for the chunks of this package.
func openChunk(chunk []byte, kinds ...snapshot.Kind) (snapshot.Kind, *snapshot.Reader, int64, error) {
	kind, r, written, err := snapshot.Open(chunk, kinds...)
	if err == nil && !snapshot.ValidTime(written, int64(MaxSpan)) {
		err = errors.New("chunk is damaged in its header")
	}
	if err != nil {
		return 0, nil, 0, fmt.Errorf("ratelimit: %w", err)
	}
	return kind, r, written, nil
}

var (
	errHead  = errors.New("invalid head")
	errEntry = errors.New("invalid entry")
)

// A chunkImport is the import of one chunk.
type chunkImport struct {
	m       *memory
	rules   *memoryRules
	r       *snapshot.Reader
	now     int64
	written int64
	at      int // offset of the entry that is read
	done    window.Imported
}

// secret makes the secret that of long keys, if no key is known yet.
func (in *chunkImport) secret() error {
	secret := in.r.Next(32)
	if in.r.Failed() || in.r.Len() > 0 {
		return errEntry
	}
	for _, mr := range in.rules.rules {
		if mr.records.table.Len() > 0 {
			return nil
		}
	}
	if in.m.bans.Len() == 0 {
		in.m.secret.Store((*[32]byte)(append([]byte(nil), secret...)))
	}
	return nil
}

// rule reads what appendRule has appended. It is nil if there is no such rule.
func (in *chunkImport) rule() *memoryRule {
	name, shape := in.r.Bytes(in.r.Len()), in.r.Bytes(in.r.Len())
	mr := in.rules.named(string(name))
	if mr == nil || string(keyvalue.AppendShape(nil, mr.Key)) != string(shape) {
		return nil
	}
	return mr
}

// A chunk of bans has the rules of all of them, and then the bans: the place of the rule
// among these, and what [ban.Ban.Append] writes.

// bans exports all bans, those that are remembered included, with the rules of this
// moment.
func (x *exporter) bans() bool {
	rs := x.m.rules.Load()
	x.Begin(snapshot.Bans, x.now)
	x.Buf = binary.AppendUvarint(x.Buf, uint64(len(rs.rules)))
	places := make(map[uint32]uint64)
	for i, mr := range rs.rules {
		places[mr.id], places[mr.id|ofNetworks] = uint64(i), uint64(i)
		x.Buf = appendRule(x.Buf, mr.Rule)
	}
	x.EndHead()
	for b := range x.m.bans.Saved() {
		place, ok := places[b.Rule]
		if !ok {
			continue
		}
		x.Buf = b.Append(binary.AppendUvarint(x.Buf, place), x.now)
		if x.Full() && !x.Flush() {
			return false
		}
	}
	return x.Flush()
}

// bans restores bans.
func (in *chunkImport) bans() error {
	var rules []*memoryRule
	for range in.r.UpTo(MaxRules) {
		rules = append(rules, in.rule())
		if in.r.Failed() {
			break
		}
	}
	for in.r.Len() > 0 {
		in.at = in.r.Offset()
		place := in.r.Uvarint()
		var b ban.Ban
		if !b.Read(in.r, in.written, in.now) || place >= uint64(len(rules)) {
			return errEntry
		}
		if mr := rules[place]; mr != nil {
			in.ban(mr, &b)
		} else {
			in.done.Unknown++
		}
	}
	if in.r.Failed() {
		return errEntry
	}
	return nil
}

// ban restores a ban under a rule. One that the rule began is cut at its longest.
func (in *chunkImport) ban(mr *memoryRule, b *ban.Ban) {
	if in.now < b.Until {
		most := int64(MaxSpan)
		if mr.Ban != nil && b.Source == ban.SourceRule {
			most = int64(mr.Ban.policy().Longest())
		}
		b.Until = min(b.Until, in.now+most)
		b.Since = min(b.Since, in.now)
	} else if over := uint64(in.now) - uint64(b.Until); over > uint64(b.Memory) {
		in.done.Expired++
		return
	}
	b.Rule = in.m.banID(mr, b.Key, b.Source)
	hash := mr.records.table.Hash(string(b.Key))
	result := in.m.bans.Restore(hash, b, in.now)
	in.m.mark(mr.Name, hash, b.Key)
	switch result {
	case ban.Full:
		in.done.Refused++
	case ban.Kept:
		in.done.Kept++
	default:
		in.done.Bans++
	}
}
