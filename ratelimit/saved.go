package ratelimit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/window"
)

// ExportAt returns an iterator over the state of l in chunks, for a snapshot; see [Limiter.ImportAt].
// The state is, for each key under each rule, the time of its newest decision, its limits and the
// counter of its ban; all bans, including past bans that are remembered; and the measured traffic
// of rules with an [Adapt]. t is the current time, see [Limiter.Now]. Counts that are
// in no window at t are omitted, unless l has no budget.
//
// Each chunk has a checksum. Most chunks have 64 KiB, none more than 1 MiB. A chunk is valid until
// the next iteration. Protect chunks: they contain the keys, and the secret for digests of keys
// above 1 KiB.
//
// Decisions continue during the export. A new key waits while the some hundred keys of its page
// are listed; any other key waits while its own record is written. Each key under a rule is
// exported atomically; different keys and rules are not. Bans come first: a ban that begins during
// the export may be missing, and the counters then contain the events that led to it. After an
// Update during the export, state may be exported twice; it is imported once.
//
// Statistics are not exported, nor are the sketches for keys that do not fit: after a restart
// these keys begin at 0, like evicted keys. A flood that fills the budget with protected keys is
// therefore undercounted for one span after a restart, by at most N for each key without a
// record.
//
// With a shared store, ExportAt yields nothing. A million keys take about a tenth of a second.
func (l *Limiter) ExportAt(t time.Time) iter.Seq[[]byte] {
	if l.memory == nil {
		return func(func([]byte) bool) {}
	}
	return l.memory.ExportAt(t)
}

func (m *memory) ExportAt(t time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		x := &exporter{Writer: snapshot.NewWriter(snapshot.Secret, nanos(t), yield), m: m, now: nanos(t)}
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

// ImportAt restores a chunk of [Limiter.ExportAt], from this or another process. Use it on a Limiter
// that has decided nothing. On any other, existing bans and counts stay, and importing a chunk
// twice changes nothing. t is the current time, see [Limiter.Now].
//
// Import the first chunk first. The others may be imported in any order and concurrently: each
// core restores more than a million keys a second.
//
// If a rule is unchanged, later decisions are the same as without a restart. If its limits,
// algorithm or ban have changed, its counts are carried as by [Limiter.Update]. A rule is
// identified by its name and its key; counts of unknown rules are skipped. Counts above the
// current limits are lost; an Update keeps them, in case the limits are raised again.
//
// If the clock was set back since the export, nothing lasts longer: events after t count at
// t, and a ban has the same time left as at the export. A ban that a rule began is cut to the
// longest ban of that rule.
//
// [window.Imported] has the number of keys that were restored and skipped. When the budget is
// spent, keys are evicted as usual, the unprotected keys that came first; keys without memory
// share a sketch.
//
// An error means that the chunk is damaged. If its checksum is wrong, nothing was restored,
// otherwise everything before the damage. Memory is limited by the length of the chunk and the
// budget, for any bytes. Update waits during an import; decisions do not.
func (l *Limiter) ImportAt(t time.Time, chunk []byte) (window.Imported, error) {
	if l.memory == nil {
		return window.Imported{}, errors.New("ratelimit: import: the limits are in a shared store: must be in memory")
	}
	return l.memory.ImportAt(t, chunk)
}

func (m *memory) ImportAt(t time.Time, chunk []byte) (window.Imported, error) {
	kind, r, written, err := openChunk(chunk, snapshot.Counts, snapshot.Bans, snapshot.Adapt, snapshot.Secret)
	if err != nil {
		return window.Imported{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	in := &chunkImport{m: m, rules: m.rules.Load(), r: r, now: nanos(t), written: written, at: r.Offset()}
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
	if err == nil && !snapshot.ValidTime(written, int64(limit.MaxSpan)) {
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
	for range in.r.UpTo(maxRules) {
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
		most := int64(limit.MaxSpan)
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
	result := in.m.bans.Add(hash, b, in.now)
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
