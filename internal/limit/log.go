package limit

import (
	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// A log is the window of Exact and InFlight: the times of the last n events in a log
// of the Blocks. A log that dropped a time which still counts gives nothing back.
type log struct {
	n    uint64
	span int64
}

func newLog(c *Config) window { return &log{n: c.N, span: int64(c.Span)} }

func (l *log) words() int { return 1 + min(Inline, int(l.n)) }

func (l *log) advance(w []uint64, b *keytable.Blocks, t int64) uint64 {
	return uint64(b.Expire(w, t-l.span))
}

func (l *log) used(w []uint64, b *keytable.Blocks, _ int64) uint64 { return uint64(b.Len(w)) }

func (l *log) charge(w []uint64, b *keytable.Blocks, t int64, cost uint64) {
	b.Add(w, t, int(min(cost, l.n+1))) // one more than fits shows that a time was dropped
}

func (l *log) refund(w []uint64, b *keytable.Blocks, _, at int64, cost uint64) uint64 {
	if b.Lost(w) {
		return 0
	}
	return uint64(b.Remove(w, at, int(min(cost, l.n))))
}

func (l *log) refundOldest(w []uint64, b *keytable.Blocks, _ int64, cost uint64) uint64 {
	if b.Lost(w) {
		return 0
	}
	return uint64(b.Drop(w, int(min(cost, l.n))))
}

func (l *log) until(w []uint64, b *keytable.Blocks, _ int64, used, most uint64) int64 {
	switch most {
	case 0:
		return b.Newest(w) + l.span
	case used - 1:
		return int64(w[1]) + l.span // the oldest
	}
	return b.At(w, int(used-most)-1) + l.span
}

// each yields equal times together.
func (l *log) each(w []uint64, b *keytable.Blocks, _ int64, yield func(int64, uint64) bool) {
	for i, n := 0, b.Len(w); i < n; {
		at, count := b.At(w, i), 1
		for i+count < n && b.At(w, i+count) == at {
			count++
		}
		if !yield(at, uint64(count)) {
			return
		}
		i += count
	}
}

func (l *log) appendState(dst []byte, w []uint64, b *keytable.Blocks, t int64) []byte {
	return b.AppendLog(dst, w, t)
}

func (l *log) readState(r *snapshot.Reader, w []uint64, b *keytable.Blocks, t, now int64) {
	b.ReadLog(r, w, t, now)
}
