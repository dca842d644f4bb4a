package resp

import (
	"io"
	"unsafe"
)

const (
	keepRead = 16 * kib // read buffer of a peer that pipelines
	keepArgs = 128      // a slice for so many arguments is kept after the command that needed it
)

// A Reader reads the commands of a client: arrays of bulk strings
// ("*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n") and inline commands ("PING hi\r\n"),
// mixed and pipelined at will. Empty commands ("*0", "*-1", an empty line) are
// passed over, as in Redis.
//
// The commands and the error a stream yields depend on its bytes only, not on
// the reads they came in. A command costs nothing but its bytes: no
// allocation, no copy, and no byte of an argument is looked at.
//
// The zero value is not usable, call [NewReader]. A Reader is for one
// goroutine at a time.
type Reader struct {
	in     buffer
	limits Limits
	args   [][]byte // of the command that is being parsed or was handed out
	pos    int      // where parsing goes on in in.buf; not before in.start
	left   int      // arguments still to come of a command whose count is read
	whole  bool     // args are those of a command not handed out yet
	err    error    // a ProtocolError or ErrBudget, for good
	paid   account  // for args
}

// NewReader returns a Reader of the commands that src holds. It reads nothing yet.
func NewReader(src io.Reader, limits Limits) *Reader {
	r := &Reader{in: buffer{src: src}}
	r.SetLimits(limits)
	return r
}

// SetLimits changes the limits from here on, for instance when a client has
// authenticated. Arguments that are already parsed are not checked again.
func (r *Reader) SetLimits(limits Limits) {
	l := limits.withDefaults()
	r.limits = l
	r.in.small, r.in.keep, r.in.most = l.Buffer, max(keepRead, l.Buffer), max(l.largest(), len(r.in.buf))
}

// SetBudget makes r take the memory from b by which its buffers outgrow their first
// sizes. It is called before the first command is read. A Reader that is not used any
// more has to be released.
func (r *Reader) SetBudget(b Budget) { r.in.paid.budget, r.paid.budget = b, b }

// Release drops the buffers of r and gives their memory back to the Budget.
func (r *Reader) Release() {
	r.in.buf, r.in.start, r.in.end, r.args = nil, 0, 0, nil
	r.in.paid.pay(0)
	r.paid.pay(0)
}

// Next returns the arguments of the next command, one at least; the first is
// the command's name. It reads from the source only when no whole command is
// buffered.
//
// The arguments are views of the read buffer, with no capacity behind them, so
// that appending to one copies it. They are valid, and may be written to, until
// the next call of Next or Ready.
//
// Errors: a [ProtocolError] or [ErrBudget], which stay; io.EOF where the stream ends between
// two commands and io.ErrUnexpectedEOF within one; or what the source returned.
// After an error of the source that passes, such as a timeout, Next can be
// called again and goes on where it was.
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

// Ready reports whether Next would return without reading: another whole
// command is buffered, or a ProtocolError. Flush the answers when it is not.
// What it finds it has parsed; Next does not parse it again.
func (r *Reader) Ready() bool {
	return r.whole || r.err != nil || r.parse()
}

// payArgs pays for the memory of args, if it is for many. It returns false, and sets
// r.err, if the budget has not so much left.
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

// Partial reports whether a command has begun to come in and is not whole. It
// is exact when Next is reading, so that the source's Read can ask it to set a
// deadline by which a command that began has to end, and after a call of Ready
// that returned false.
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

// parse takes the next command from the buffer. It returns true when there is
// a whole one in r.args, or when r.err is set.
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

// fail ends the stream: there is no way to find the next command.
func (r *Reader) fail(reason string) bool {
	r.err = ProtocolError{reason}
	return true
}

// count reads the number of arguments, "*3\r\n". It returns false when the
// line is not whole or wrong. An empty command is passed over.
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

// window returns the buffer up to where the command that is being parsed must
// have ended.
func (r *Reader) window() []byte {
	return r.in.buf[:min(r.in.end, r.in.start+r.limits.Command)]
}

// bulks reads the arguments that are left, "$3\r\nkey\r\n" each. It is the
// inner loop of the package: lengths below 100 are read in place.
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
