package keytable

import (
	"encoding/binary"

	"github.com/lately-go/lately/internal/counting/snapshot"
)

// Logs as bytes, and logs made of other logs.

// AppendLog appends the log l, which has no time later than newest, in a form
// that does not depend on where its times lie: the number of times and whether one
// was lost, and from the newest on how much earlier each is than the one after
// it.
func (b *Blocks) AppendLog(dst []byte, l []uint64, newest int64) []byte {
	n := b.Len(l)
	count := uint64(n) << 1
	if b.Lost(l) {
		count |= 1
	}
	dst = binary.AppendUvarint(dst, count)
	times, head := b.places(l)
	for i := n - 1; i >= 0; i-- {
		t := int64(times[wrap(head+i, len(times))])
		dst = binary.AppendUvarint(dst, uint64(newest-t))
		newest = t
	}
	return dst
}

// ReadLog makes l, which is empty, the log that AppendLog has appended for that
// newest. Times after now become now. If it is not one of this bound, or there
// is no memory for it, r has failed, and l is empty.
func (b *Blocks) ReadLog(r *snapshot.Reader, l []uint64, newest, now int64) {
	count := r.Uvarint()
	n := count >> 1
	if count == 0 {
		return
	}
	if n == 0 || n > uint64(min(b.bound, r.Len())) || !b.Reserve(l, int(n)) {
		r.Fail()
		return
	}
	times, _ := b.places(l)
	past := uint64(snapshot.MaxPast)
	for i := int(n) - 1; i >= 0; i-- {
		earlier := r.UpTo(past)
		past -= earlier
		newest -= int64(earlier)
		times[i] = uint64(min(newest, now))
	}
	if l[0] += n; class(l) != 0 {
		l[logOldest], l[logNewest], l[logHead] = times[0], times[n-1], 0
	}
	if count&1 != 0 {
		l[0] |= logLost
	}
	if r.Failed() {
		b.Clear(l)
	}
}

// CopyLog makes l, which is empty, the log fl of from, which has the bound of b. It
// reports false, and l stays empty, if there is no memory for it.
func (b *Blocks) CopyLog(l []uint64, from *Blocks, fl []uint64) bool {
	n := from.Len(fl)
	if !b.Reserve(l, n) {
		return false
	}
	for i := range n {
		b.Push(l, from.At(fl, i))
	}
	l[0] |= fl[0] & logLost
	return true
}
