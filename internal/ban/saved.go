package ban

import (
	"encoding/binary"
	"iter"
	"math"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/snapshot"
)

// A Saved is a ban in a snapshot, with all that a Table has of it. Its rule is not in the
// snapshot.
type Saved struct {
	Ban
	Memory  time.Duration // how long it is remembered
	counted origin        // what the rule counted; 0 if Reason and Source say it
}

// Saved yields all bans, those that are remembered included, in no order. It locks one
// shard while it reads a ban, and none while the loop's body runs. A ban that begins
// meanwhile may be left out.
func (t *Table) Saved() iter.Seq[Saved] {
	return func(yield func(Saved) bool) {
		for number, e := range t.scan() {
			s, e, ok := t.lock(ref{ident: e.ident(), number: number})
			if !ok {
				continue
			}
			b := Saved{Ban: t.ban(e), Memory: e.memory()}
			if o := e.origin(); o&originCount != 0 {
				b.counted = o
			}
			s.mu.Unlock()
			if !yield(b) {
				return
			}
		}
	}
}

// Append appends b as it is written at now: the key, how long after now it ends, how long
// it is, the count, the memory in milliseconds, and what a rule counted; or 0 or 1 for a
// ban that is not, or is, by a rule, reason and source.
func (b *Saved) Append(dst []byte, now int64) []byte {
	dst = snapshot.AppendBytes(dst, b.Key)
	dst = binary.AppendVarint(dst, b.Until-now)
	dst = binary.AppendUvarint(dst, uint64(b.Until-b.Since))
	dst = binary.AppendUvarint(dst, b.Count)
	dst = binary.AppendUvarint(dst, uint64(b.Memory/time.Millisecond))
	source := b.Source
	switch {
	case b.counted != 0:
		return binary.AppendUvarint(dst, uint64(b.counted))
	case b.byRule():
		dst, source = append(dst, 1), ""
	case source == SourceManual:
		dst, source = append(dst, 0), ""
	default:
		dst = append(dst, 0)
	}
	return snapshot.AppendBytes(snapshot.AppendBytes(dst, b.Reason), source)
}

// Read reads what Append has written at the time written, as of now, and reports whether
// it is a ban. If the clock was set back since, the times of b are set back with it.
func (b *Saved) Read(r *snapshot.Reader, written, now int64) bool {
	b.Key = r.Bytes(MaxKey)
	b.Until = written + r.Varint()
	b.Since = b.Until - int64(r.Uvarint())
	b.Count = r.UpTo(maxCount)
	b.Memory = time.Duration(r.UpTo(1<<memoryBits-1)) * time.Millisecond
	const span = int64(MaxSpan / 2)
	if b.Memory > MaxSpan || b.Since > b.Until || !snapshot.ValidTime(b.Until, span) || !snapshot.ValidTime(b.Since, span) {
		r.Fail()
	}
	if !b.readOrigin(r) {
		r.Fail()
	}
	if now < written {
		b.Since, b.Until = before(b.Since, written-now), before(b.Until, written-now)
	}
	return !r.Failed()
}

// readOrigin reads what the rule counted, or reason and source.
func (b *Saved) readOrigin(r *snapshot.Reader) bool {
	o := origin(r.Uvarint())
	if p, ok := o.counted(); ok {
		b.counted, b.Source = o, SourceRule
		return o>>61 == originCount>>61 && p.After <= MaxAfter && p.Span <= MaxSpan
	}
	b.Reason, b.Source = string(r.Bytes(maxReason)), string(r.Bytes(maxSource))
	if o > 1 || !utf8.ValidString(b.Reason) || !utf8.ValidString(b.Source) {
		return false
	}
	switch {
	case o == 1:
		ok := b.Source == ""
		b.Source = SourceRule
		return ok
	case b.Source == "":
		b.Source = SourceManual
		return true
	}
	return b.Source != SourceRule && b.Source != SourceManual
}

// before returns the time that is so much before t, or the earliest there is.
func before(t, by int64) int64 {
	if by < 0 || t < math.MinInt64+by {
		return math.MinInt64
	}
	return t - by
}
