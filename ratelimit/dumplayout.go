package ratelimit

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/lately-go/lately/internal/snapshot"
)

// appendLayout appends a layout and the resolution of times. Layouts that are
// equal, and no others, are the same bytes.
func appendLayout(dst []byte, l *layout, resolution time.Duration) []byte {
	dst = binary.AppendUvarint(dst, uint64(resolution))
	dst = append(dst, byte(l.algorithm))
	dst = appendZone(dst, l.zone)
	dst = binary.AppendUvarint(dst, uint64(l.own()))
	for i, limit := range l.limits[:l.own()] {
		dst = binary.AppendUvarint(dst, limit.N)
		dst = binary.AppendUvarint(dst, uint64(limit.Span))
		dst = binary.AppendUvarint(dst, limit.Burst)
		dst = append(dst, byte(limit.Per))
		dst = binary.AppendUvarint(dst, l.keep[i])
	}
	dst = binary.AppendUvarint(dst, l.most)
	if !l.bans {
		return append(dst, 0)
	}
	dst = append(dst, 1, byte(l.of))
	dst = binary.AppendUvarint(dst, l.after)
	return binary.AppendUvarint(dst, uint64(l.span))
}

// appendZone appends a zone's name, and its offsets as sameZone looks at them.
func appendZone(dst []byte, zone *time.Location) []byte {
	if zone == nil {
		return append(dst, 0)
	}
	dst = snapshot.AppendBytes(append(dst, 1), zone.String())
	for month := time.January; month <= time.December; month++ {
		dst = binary.AppendVarint(dst, int64(offset(time.Date(2025, month, 1, 0, 0, 0, 0, time.UTC), zone)))
	}
	return dst
}

// readLayout reads what appendLayout has appended. Its error is that of a layout
// that no rule can have.
func readLayout(b []byte) (l layout, resolution time.Duration, err error) {
	r := snapshot.NewReader(b)
	resolution = time.Duration(r.UpTo(uint64(MaxSpan)))
	if l.algorithm = Algorithm(r.Byte()); l.algorithm >= numAlgorithms {
		r.Fail()
	}
	l.zone = readZone(r)
	for range r.UpTo(uint64(r.Len())) {
		limit := Limit{N: r.Uvarint(), Span: time.Duration(r.UpTo(uint64(MaxSpan))), Burst: r.Uvarint(), Per: Period(r.Byte())}
		keep := r.UpTo(maxN(l.algorithm))
		if r.Failed() || limit.Validate(l.algorithm) != nil || keep < limit.N {
			return l, 0, errBadLayout
		}
		l.limits, l.keep = append(l.limits, limit), append(l.keep, keep)
	}
	l.most = r.UpTo(maxN(l.algorithm))
	if l.bans = r.Byte() == 1; l.bans {
		l.of = Cause(min(r.Byte(), byte(Refusals)+1))
		l.after = r.UpTo(MaxExact)
		l.span = time.Duration(r.UpTo(uint64(MaxSpan)))
		if l.of > Refusals || validateSpan("span", l.span) != nil {
			r.Fail()
		}
	}
	if r.Failed() || r.Len() > 0 || len(l.limits) == 0 && !l.bans {
		return l, 0, errBadLayout
	}
	return l, resolution, nil
}

var errBadLayout = errors.New("its limits are none that a rule can have")

// readZone reads what appendZone has appended. A zone that is not known here any
// more is taken to have the offset of its January: only the end of a window that
// began after a time to which the clock was set back depends on it.
func readZone(r *snapshot.Reader) *time.Location {
	if r.UpTo(1) == 0 {
		return nil
	}
	name := string(r.Bytes(256))
	january := 0
	for month := range 12 {
		seconds := r.Varint()
		if seconds < -26*3600 || seconds > 26*3600 {
			r.Fail()
		}
		if month == 0 {
			january = int(seconds)
		}
	}
	if zone, err := time.LoadLocation(name); err == nil && name != "" && !r.Failed() {
		return zone
	}
	return time.FixedZone(name, january)
}
