package resp

import (
	"errors"
	"io"
)

const (
	maxEmptyReads = 100 // reads of nothing in a row before io.ErrNoProgress, as in bufio
	calmReads     = 8   // reads in a row that a small buffer would have held before it is small again
	cheapMove     = 512 // bytes: so few are moved to the front to make space, though there is some
)

// A buffer is the buffer between a source and a parser. What has been read
// and not been parsed is buf[start:end].
//
// It doubles when it is full, up to most: memory is bounded by what a peer has
// sent, not by what it announces. A read that fills the buffer shows that the
// peer pipelines, and doubles it too, up to keep. Above keep it is given back
// as soon as the bytes in it fit a small one; below, after some calm reads.
type buffer struct {
	src   io.Reader
	err   error // came along with bytes, to be returned by the next fill
	buf   []byte
	start int
	end   int
	small int // size to begin with and to return to
	keep  int // largest size that outlives the command it was needed for
	most  int // largest size
	calm  int
	full  bool // the last read filled the buffer
	paid  account
}

// fill reads once, at least one byte. It reports whether the bytes are in
// another place than before, so that views of them are not valid any more; they
// may be even on an error.
func (in *buffer) fill() (moved bool, err error) {
	if err := in.err; err != nil {
		in.err = nil
		return false, err
	}
	moved, ok := in.makeSpace()
	if !ok {
		return moved, ErrBudget
	}
	for range maxEmptyReads {
		room := in.buf[in.end:]
		n, err := in.src.Read(room)
		if n < 0 || n > len(room) {
			return moved, errors.New("resp: the source returned an impossible count from Read")
		}
		if n > 0 {
			in.end += n
			in.full = in.end == len(in.buf)
			if in.calm++; in.end-in.start > in.small {
				in.calm = 0
			}
			in.err = err
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
	}
	return moved, io.ErrNoProgress
}

// makeSpace makes the buffer at least a byte longer than what is in it. The
// parser sees to it that a full buffer is not of the largest size: it would
// have refused what is in it. ok is false if the budget is spent.
func (in *buffer) makeSpace() (moved, ok bool) {
	held, size := in.end-in.start, len(in.buf)
	switch {
	case size == 0:
		size = in.small
	case held == size, in.full && size < in.keep && !in.paid.scarce():
		size = min(2*size, in.most)
	case size > in.small && held <= in.small/2 && (size > in.keep || in.calm >= calmReads):
		size = in.small
	}
	if size != len(in.buf) && !in.paid.pay(max(size-in.small, 0)) {
		if held == len(in.buf) {
			return false, false
		}
		size = len(in.buf) // it would only have been faster
	}
	in.full = false
	switch {
	case size != len(in.buf):
		in.calm = 0
		b := make([]byte, size)
		copy(b, in.buf[in.start:in.end])
		in.buf = b
	case in.start > 0 && (held <= cheapMove || in.end == len(in.buf)):
		copy(in.buf, in.buf[in.start:in.end])
	default:
		return false, true
	}
	in.start, in.end = 0, held
	return true, true
}
