package ban

import (
	"encoding/binary"
	"math"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/counting/snapshot"
)

// A Ban is one ban of a Table.
type Ban struct {
	Rule         uint32
	Key          []byte
	Since, Until int64  // in nanoseconds since 1970
	Count        uint64 // bans so far
	Reason       string
	Source       string        // SourceRule if a rule began it
	Memory       time.Duration // how long after its end it is remembered

	counted origin // what the rule counted; 0 if Reason and Source say it
}

func (b *Ban) byRule() bool { return b.Source == SourceRule }

// storedSource returns the source, or "" for the two that have a bit instead.
func (b *Ban) storedSource() string {
	if b.Source == SourceRule || b.Source == SourceManual {
		return ""
	}
	return b.Source
}

// Append appends b, without its rule, as it is written at now: the key, how long after now
// it ends, how long it is, the count, the memory in milliseconds, and what a rule counted;
// or 0 or 1 for a ban that is not, or is, by a rule, reason and source.
func (b *Ban) Append(dst []byte, now int64) []byte {
	dst = snapshot.AppendBytes(dst, b.Key)
	dst = binary.AppendVarint(dst, b.Until-now)
	dst = binary.AppendUvarint(dst, uint64(b.Until-b.Since))
	dst = binary.AppendUvarint(dst, b.Count)
	dst = binary.AppendUvarint(dst, uint64(b.Memory/time.Millisecond))
	if b.counted != 0 {
		return binary.AppendUvarint(dst, uint64(b.counted))
	}
	if b.byRule() {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	return snapshot.AppendBytes(snapshot.AppendBytes(dst, b.Reason), b.storedSource())
}

// Read reads what Append has written at the time written, as of now, and reports whether
// it is a ban. If the clock was set back since, the times of b are set back with it.
func (b *Ban) Read(r *snapshot.Reader, written, now int64) bool {
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
func (b *Ban) readOrigin(r *snapshot.Reader) bool {
	o := origin(r.Uvarint())
	if p, ok := o.counted(); ok {
		b.counted, b.Source = o, SourceRule
		return o>>62 == originCount>>62 && p.Of <= Distinct && p.After <= MaxAfter && p.Span <= MaxSpan
	}
	b.Reason, b.Source = string(r.Bytes(MaxReason)), string(r.Bytes(MaxSource))
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
