package keytable

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// The head of a record is its first word:
//
//	| hash, the lower 60 bits | mark | locked | flag | live |
//
// A group fixes 4 upper bits of the hash or more, so that the head and the group
// together name all 64. The head 0 is that of an empty place.
//
// A head is read and written by atomic operations only. The words after it belong
// to the goroutine that set locked, by a compare-and-swap, until it clears the
// bit: the clearing synchronizes before the next setting.
const (
	live   = 1 << 0
	flag   = 1 << 1
	locked = 1 << 2
	mark   = 1 << 3

	headBits = 4
	status   = 1<<headBits - 1 - live
)

// ownWords is how many words of a record are the table's: its head and its key.
const ownWords = 1 + keyWords

func tagOf(hash uint64) uint64 { return hash<<headBits | live }

// A Record is a locked record of a [Table]. Only the goroutine that locked it may
// use it, and not after Unlock.
type Record struct {
	g    group
	head *atomic.Uint64
}

// Words returns the words of r that belong to the table's user.
func (r Record) Words() []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(r.head), 8*ownWords)), r.g.t.stride-ownWords)
}

// Base returns the bases of the group that r is in; see [Policy].
func (r Record) Base() *[MaxBases]int64 { return &r.g.base }

// Hash returns the lower 60 bits of the hash of r's key.
func (r Record) Hash() uint64 { return r.head.Load() >> headBits }

// Flag returns one of the two bits that a record has besides its words; the other is Marked.
// Both are false in a new record.
func (r Record) Flag() bool { return r.head.Load()&flag != 0 }

// SetFlag sets the flag.
func (r Record) SetFlag() { r.head.Store(r.head.Load() | flag) }

// ClearFlag clears the flag.
func (r Record) ClearFlag() { r.head.Store(r.head.Load() &^ flag) }

// Marked returns the other bit.
func (r Record) Marked() bool { return r.head.Load()&mark != 0 }

// SetMark sets the mark.
func (r Record) SetMark() { r.head.Store(r.head.Load() | mark) }

// ClearMark clears the mark.
func (r Record) ClearMark() { r.head.Store(r.head.Load() &^ mark) }

// Unlock unlocks r.
func (r Record) Unlock() { r.head.Store(r.head.Load() &^ locked) }

// lockHead locks the record with that head, which nobody can remove meanwhile.
func lockHead(head *atomic.Uint64) {
	for spins := 0; ; spins++ {
		if h := head.Load(); h&locked == 0 && head.CompareAndSwap(h, h|locked) {
			return
		}
		pause(spins)
	}
}

// pause waits, longer when it has been called often.
func pause(spins int) {
	if spins < 8 {
		for range 16 << (spins / 2) {
			spin()
		}
		return
	}
	runtime.Gosched()
}

//go:noinline
func spin() {}

// Stamp returns the word of a record for the time t, in nanoseconds since 1970: with
// its sign bit turned, so that the zero word of a new record is the earliest time.
func Stamp(t int64) uint64 { return uint64(t) ^ 1<<63 }

// Time returns the time of a word that Stamp made.
func Time(word uint64) int64 { return int64(word ^ 1<<63) }

// Raise makes the time a no earlier than t.
func Raise(a *atomic.Int64, t int64) {
	for was := a.Load(); was < t && !a.CompareAndSwap(was, t); {
		was = a.Load()
	}
}

// Nanos returns t in nanoseconds since 1970, kept four times span away from
// the ends of int64, so that judging a window of span at that time, or a ban as
// long, cannot overflow.
func Nanos(t time.Time, span time.Duration) int64 {
	most := math.MaxInt64 - 4*int64(span)
	sec, mostSec := t.Unix(), most/1e9
	switch {
	case sec >= mostSec:
		return most
	case sec <= -mostSec:
		return -most
	}
	return sec*1e9 + int64(t.Nanosecond())
}
