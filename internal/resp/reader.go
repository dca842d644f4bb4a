package resp

import (
	"cmp"
	"io"
	"unsafe"
)

const (
	kib = 1 << 10
	mib = 1 << 20

	keepRead = 16 * kib // read buffer of a peer that pipelines
	keepArgs = 128      // a slice for so many arguments is kept after the command that needed it
)

// Limits bounds the commands that a [Reader] accepts. A field that is 0 has its default.
// All limits apply: a Command of 1000 bytes has no argument of 2000, whatever Bulk is.
type Limits struct {
	Bulk   int // bytes of one argument: 64 KiB by default
	Args   int // arguments of one command, its name included: 1024 by default
	Inline int // bytes of an inline command, without its line end: 64 KiB by default

	// Command is the bytes of one command as sent, with lengths and line ends: 1 MiB by
	// default. A Reader buffers no more than the larger of this and Inline.
	Command int

	// Buffer is the first size of the read buffer in bytes, to which it shrinks again: 16
	// or more, 4 KiB by default.
	Buffer int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Bulk:    cmp.Or(l.Bulk, 64*kib),
		Args:    cmp.Or(l.Args, 1024),
		Inline:  cmp.Or(l.Inline, 64*kib),
		Command: cmp.Or(l.Command, mib),
		Buffer:  cmp.Or(l.Buffer, 4*kib),
	}
}

// largest returns the size of a buffer that holds any command within l.
func (l Limits) largest() int { return max(l.Command, l.Inline+len("\r\n"), l.Buffer) }

// A Reader reads the commands of a client: arrays of bulk strings
// ("*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n") and inline commands ("PING hi\r\n"), mixed and
// pipelined. Empty commands ("*0", "*-1", an empty line) are skipped, as in Redis. Make one
// with [NewReader]. A Reader is for one goroutine at a time.
//
// The commands and the error of a stream depend on its bytes only, not on the reads in which
// they arrived. A command is neither copied nor allocated, and the bytes of arguments are
// not read.
type Reader struct {
	in     buffer
	limits Limits
	args   [][]byte // of the command that is being parsed or was returned
	pos    int      // where parsing continues in in.buf; not before in.start
	left   int      // arguments to come of a command whose count is read
	whole  bool     // args are those of a command that Next has not returned
	err    error    // a ProtocolError or ErrBudget, for good
	paid   account  // for args
}

// NewReader returns a Reader of the commands of src.
func NewReader(src io.Reader, limits Limits) *Reader {
	r := &Reader{in: buffer{src: src}}
	r.SetLimits(limits)
	return r
}

// SetLimits changes the limits, for instance when a client has authenticated. Arguments that
// are parsed are not checked again.
func (r *Reader) SetLimits(limits Limits) {
	l := limits.withDefaults()
	r.limits = l
	r.in.small, r.in.keep, r.in.most = l.Buffer, max(keepRead, l.Buffer), max(l.largest(), len(r.in.buf))
}

// SetBudget makes r take memory from b if its buffers grow beyond their first sizes. Call it
// before the first command is read, and Release in the end.
func (r *Reader) SetBudget(b Budget) { r.in.paid.budget, r.paid.budget = b, b }

// Release drops the buffers of r and gives their memory back to the Budget.
func (r *Reader) Release() {
	r.in.buf, r.in.start, r.in.end, r.args = nil, 0, 0, nil
	r.in.paid.pay(0)
	r.paid.pay(0)
}

// Next returns the next command: its name and its arguments. It reads from the source only
// if no whole command is buffered. The slices are views of the read buffer without spare
// capacity, and may be written to until the next call of Next or Ready. Their bytes stay
// until the source is read: while Ready reports true.
//
// Errors: a [ProtocolError] or [ErrBudget], which stay; io.EOF at the end of the stream,
// io.ErrUnexpectedEOF within a command; or the error of the source. After a temporary one,
// such as a timeout, call Next again.
func (r *Reader) Next() ([][]byte, error) {
	for !r.Ready() {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	r.whole = false
	return r.args, nil
}

// Ready reports whether Next would return without reading: a whole command is buffered, or
// there is an error. Otherwise, flush the replies.
func (r *Reader) Ready() bool {
	return r.whole || r.err != nil || r.parse()
}

// payArgs pays for the memory of more than keepArgs args. It returns false, and sets r.err,
// if the budget is spent.
func (r *Reader) payArgs() bool {
	bytes := 0
	if cap(r.args) > keepArgs {
		bytes = cap(r.args) * int(unsafe.Sizeof(r.args[0]))
	}
	if !r.paid.pay(bytes) {
		r.err = ErrBudget
		return false
	}
	return true
}

// Partial reports whether a part of a command is buffered. Its result is exact in the
// source's Read, which may need a deadline for the rest of the command, and after Ready has
// returned false.
func (r *Reader) Partial() bool { return !r.whole && r.err == nil && r.in.start < r.in.end }

// fill reads more of an unfinished command.
func (r *Reader) fill() error {
	if cap(r.args) > keepArgs && r.left == 0 {
		r.args = nil
		r.payArgs()
	}
	buf := r.in.buf
	moved, err := r.in.fill()
	if moved {
		// Views of a command that is not whole are made again.
		r.pos, r.left = r.in.start, 0
		if len(buf) != len(r.in.buf) {
			clear(r.args[:cap(r.args)]) // they would keep the former buffer in memory
		}
	}
	if err == ErrBudget {
		r.err = err
	}
	if err == io.EOF && r.Partial() {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// parse takes the next command from the buffer. It returns true if a whole one is in r.args,
// or r.err is set.
func (r *Reader) parse() bool {
	for r.left == 0 {
		if r.in.start == r.in.end {
			return false
		}
		if r.in.buf[r.in.start] != '*' {
			if !r.inline() {
				return r.err != nil
			}
			if len(r.args) > 0 {
				r.whole = true
				return true
			}
			continue
		}
		if !r.count() {
			return r.err != nil
		}
	}
	return r.bulks()
}

// fail ends the stream with a ProtocolError.
func (r *Reader) fail(reason string) bool {
	r.err = ProtocolError{reason}
	return true
}

// count reads the number of arguments, "*3\r\n". It returns false if the line is incomplete
// or wrong. An empty command is skipped.
func (r *Reader) count() bool {
	n, next := lengthLine(r.window(), r.in.start+1)
	switch {
	case next == lineCut:
		return false
	case next == lineBad || n > int64(r.limits.Args):
		r.fail(faultCount)
		return false
	}
	r.pos = next
	if n <= 0 {
		r.in.start = next
		return true
	}
	r.left, r.args = int(n), r.args[:0]
	return true
}

// window returns the buffer up to the largest end of the command that is being parsed.
func (r *Reader) window() []byte {
	return r.in.buf[:min(r.in.end, r.in.start+r.limits.Command)]
}

// bulks reads the remaining arguments, "$3\r\nkey\r\n" each. It is the inner loop of the
// package: lengths below 100 are read in place.
func (r *Reader) bulks() bool {
	b, args, i := r.window(), r.args, r.pos
	left := r.left
	for ; left > 0; left-- {
		if i >= len(b) {
			break
		}
		if b[i] != '$' {
			return r.fail(expectedBulk(b[i]))
		}
		var n int64
		var body int
		if s := b[i+1:]; len(s) >= 3 && s[1] == '\r' && s[2] == '\n' && s[0]-'0' <= 9 {
			n, body = int64(s[0]-'0'), i+4
		} else if len(s) >= 4 && s[2] == '\r' && s[3] == '\n' && s[0]-'1' <= 8 && s[1]-'0' <= 9 {
			n, body = int64(s[0]-'0')*10+int64(s[1]-'0'), i+5
		} else if n, body = lengthLine(b, i+1); body == lineCut {
			break
		}
		if body == lineBad || uint64(n) > uint64(r.limits.Bulk) {
			return r.fail(faultLength)
		}
		end := body + int(n)
		if end+2 > len(b) {
			if end+2-r.in.start > r.limits.Command {
				return r.fail(faultCommand)
			}
			if end < len(b) && b[end] != '\r' {
				return r.fail(faultEnd)
			}
			break
		}
		if b[end] != '\r' || b[end+1] != '\n' {
			return r.fail(faultEnd)
		}
		args = append(args, b[body:end:end])
		i = end + 2
	}
	r.args, r.pos, r.left = args, i, left
	if cap(args) > keepArgs && !r.payArgs() {
		return true
	}
	if left > 0 {
		if len(b)-r.in.start == r.limits.Command {
			return r.fail(faultCommand)
		}
		return false
	}
	r.in.start, r.whole = i, true
	return true
}
