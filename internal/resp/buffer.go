package resp

import "io"

const (
	calmReads = 8   // reads in a row that fit a small buffer, before the buffer shrinks
	cheapMove = 512 // bytes: up to so many are moved to the front although there is space after them
)

// A buffer is the buffer between a source and a parser. buf[start:end] is read and not
// parsed.
//
// It doubles when it is full, up to most: memory is bounded by the bytes that a peer has
// sent, not by those that it announces. A read that fills the buffer shows that the peer
// pipelines, and doubles it too, up to keep. Above keep it shrinks as soon as its bytes fit
// a small one; below, after some calm reads.
type buffer struct {
	src   io.Reader
	err   error // that came with bytes: for the next fill
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

// fill reads once. It reports whether the bytes have moved, even on an error: views of
// them are then invalid.
func (in *buffer) fill() (moved bool, err error) {
	if err := in.err; err != nil {
		in.err = nil
		return false, err
	}
	moved, ok := in.makeSpace()
	if !ok {
		return moved, ErrBudget
	}
	n, err := in.src.Read(in.buf[in.end:])
	if n == 0 {
		return moved, err
	}
	in.end += n
	in.full = in.end == len(in.buf)
	if in.calm++; in.end-in.start > in.small {
		in.calm = 0
	}
	in.err = err
	return moved, nil
}

// makeSpace makes space for at least one byte. A full buffer never has the largest size,
// since the parser has refused such a command. ok is false if the budget is spent.
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
