package ratelimit

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/lately-go/lately/internal/snapshot"
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
// a restart, by N for each key without a record. The limits that a rule had before an
// Update changed its algorithm are not exported either, see Import.
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
	return snapshot.AppendBytes(dst, r.Key.AppendShape(nil))
}

// adapts exports what the rules with an Adapt have measured. The head of a chunk is a rule
// and its Adapt. The only entry is when it is measured next and was measured last, N, the
// limit of the row that holds, the smoothed average, and the slots of the traffic: how
// long before the chunk was written each begins, and its count.
func (x *exporter) adapts() bool {
	for _, mr := range x.m.rules.Load().rules {
		if mr.adapt == nil {
			continue
		}
		x.Begin(snapshot.Adapt, x.now)
		x.Buf = appendRule(x.Buf, mr.Rule)
		x.Buf = snapshot.AppendBytes(x.Buf, fmt.Append(nil, mr.adapt.config))
		x.EndHead()
		x.Buf = mr.adapt.append(x.Buf, x.now)
		if !x.Flush() {
			return false
		}
	}
	return true
}

// append appends the entry of ad, unless nothing has been judged.
func (ad *adapter) append(dst []byte, now int64) []byte {
	ad.mu.Lock()
	defer ad.mu.Unlock()
	next := ad.next.Load()
	if next == math.MinInt64 {
		return dst
	}
	dst = binary.AppendVarint(dst, next-now)
	dst = binary.AppendVarint(dst, ad.last-now)
	dst = binary.AppendUvarint(dst, ad.n.Load())
	dst = binary.AppendUvarint(dst, ad.config.limit(ad.row))
	dst = binary.AppendUvarint(dst, math.Float64bits(ad.smooth))
	for t, count := range ad.traffic.SlotsAt(time.Unix(0, now)) {
		if count > 0 {
			dst = binary.AppendVarint(dst, now-t.UnixNano())
			dst = binary.AppendUvarint(dst, count)
		}
	}
	return dst
}
