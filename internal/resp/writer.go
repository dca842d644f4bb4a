package resp

import (
	"io"
	"strconv"
	"unicode/utf8"
)

const (
	firstWrite = 512      // bytes of a new write buffer
	fullWrite  = 16 * kib // bytes from which a Writer is full
	freeWrite  = 4 * kib  // bytes of a write buffer that are not taken from the Budget
	keepWrite  = 32 * kib // bytes: a larger buffer is released when it is flushed
	maxText    = 1024     // bytes of the text of an error or a simple string
	headRoom   = 1 + 20 + 2
)

// A Writer writes the replies of a server. Its methods append to a buffer and neither fail
// nor block; only [Writer.Flush] writes. Types of version 3 become their counterparts of
// version 2, unless [Writer.SetVersion] was called.
//
// Array, Map, Set and Push append a head only: the caller appends that many elements, or
// pairs of a Map. Make one with [NewWriter]. A Writer is for one goroutine at a time.
type Writer struct {
	dst   io.Writer
	buf   []byte
	three bool // the connection speaks version 3
	calm  int  // flushes in a row that a small buffer would have held
	err   error
	paid  account
}

// NewWriter returns a Writer in protocol version 2 that flushes to dst.
func NewWriter(dst io.Writer) *Writer { return &Writer{dst: dst} }

// SetBudget makes w take memory from b if its buffer grows beyond its first size. A reply for
// which none is left is lost, and Flush returns [ErrBudget]; [Writer.Reserve] prevents that.
// Call Release in the end.
func (w *Writer) SetBudget(b Budget) { w.paid.budget = b }

// Release drops the buffer of w and gives its memory back to the Budget.
func (w *Writer) Release() {
	w.buf = nil
	w.paid.pay(0)
}

// Reserve makes space for a reply of n bytes. It returns false if the Budget has less left.
func (w *Writer) Reserve(n int) bool {
	size := len(w.buf) + n
	return size <= cap(w.buf) || w.resize(size)
}

// resize moves the buffered bytes to a buffer of that size. It returns false if the Budget
// has less left.
func (w *Writer) resize(size int) bool {
	if !w.paid.pay(max(size-freeWrite, 0)) {
		return false
	}
	b := make([]byte, len(w.buf), size)
	copy(b, w.buf)
	w.buf = b
	return true
}

// Version returns the protocol version, 2 or 3.
func (w *Writer) Version() int {
	if w.three {
		return 3
	}
	return 2
}

// SetVersion changes the protocol version, 2 or 3, of the replies that follow.
func (w *Writer) SetVersion(version int) { w.three = version == 3 }

// Flush writes all appended replies, in one Write. Errors stay: a part of a reply may be lost,
// so the connection must be closed.
func (w *Writer) Flush() error {
	switch {
	case w.err != nil:
		w.buf = nil
		return w.err
	case len(w.buf) == 0:
		return nil
	}
	n, err := w.dst.Write(w.buf)
	if err == nil && n != len(w.buf) {
		err = io.ErrShortWrite
	}
	w.err = err
	w.empty()
	return err
}

// empty empties the buffer, and releases one that was larger than necessary for some time.
func (w *Writer) empty() {
	w.calm++
	if len(w.buf) > firstWrite {
		w.calm = 0
	}
	if cap(w.buf) > keepWrite || w.calm >= calmReads && cap(w.buf) > firstWrite {
		w.buf, w.calm = nil, 0
		w.paid.pay(0)
	}
	w.buf = w.buf[:0]
}

// Full reports whether the buffer should be flushed although more commands are waiting: from
// 16 KiB, or from 4 KiB if the Budget is scarce.
func (w *Writer) Full() bool {
	return len(w.buf) >= freeWrite && (len(w.buf) >= fullWrite || w.paid.scarce())
}

// space returns the buffer with space for n more bytes.
func (w *Writer) space(n int) []byte {
	if cap(w.buf)-len(w.buf) < n {
		w.grow(n)
	}
	return w.buf
}

func (w *Writer) grow(n int) {
	least := len(w.buf) + n
	if w.resize(max(firstWrite, 2*cap(w.buf), least)) || w.resize(least) {
		return
	}
	w.err = ErrBudget
	w.buf = make([]byte, 0, n)
	w.paid.pay(0)
}

// head appends a type byte, a number and CR LF.
func (w *Writer) head(kind byte, n int64) {
	w.buf = appendHead(w.space(headRoom), kind, n)
}

// appendHead appends the line with which a value begins: its kind and a number.
func appendHead(b []byte, kind byte, n int64) []byte {
	if 0 <= n && n < 10 { // most are
		return append(b, kind, '0'+byte(n), '\r', '\n')
	}
	return append(strconv.AppendInt(append(b, kind), n, 10), '\r', '\n')
}

// OK appends the simple string OK.
func (w *Writer) OK() { w.buf = append(w.space(5), "+OK\r\n"...) }

// Simple appends a simple string such as PONG, with bytes replaced as in [Writer.Error].
func (w *Writer) Simple(s string) {
	b := append(w.space(len(s)+3), '+')
	w.buf = append(appendPrintable(b, s), '\r', '\n')
}

// Error appends an error: a code such as ERR and a message, of up to 1 KiB. Bytes that are
// not printable or not UTF-8 become '?', so that no byte of a message ends the reply.
func (w *Writer) Error(code, message string) {
	b := append(w.space(len(code)+min(len(message), maxText)+8), '-')
	b = append(append(b, code...), ' ')
	w.buf = append(appendPrintable(b, message), '\r', '\n')
}

// appendPrintable appends s, cut at maxText, with '?' for bytes that are not
// printable.
func appendPrintable(b []byte, s string) []byte {
	text := s
	if len(s) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		text = s[:end]
	}
	for _, c := range text {
		if c == utf8.RuneError || !strconv.IsPrint(c) {
			c = '?'
		}
		b = utf8.AppendRune(b, c)
	}
	if len(text) < len(s) {
		b = append(b, "..."...)
	}
	return b
}

// Int appends an integer.
func (w *Writer) Int(n int64) { w.head(':', n) }

// Ints appends several integers. It is faster than several calls of Int.
func (w *Writer) Ints(all ...int64) {
	b := w.space(len(all) * headRoom)
	for _, n := range all {
		b = appendHead(b, ':', n)
	}
	w.buf = b
}

// Bulk appends a bulk string: any bytes, of any length.
func (w *Writer) Bulk(s []byte) { w.buf = AppendBulk(w.space(headRoom+len(s)+2), s) }

// BulkString is Bulk for a string.
func (w *Writer) BulkString(s string) { w.buf = AppendBulk(w.space(headRoom+len(s)+2), s) }

// Array appends the head of an array of n elements.
func (w *Writer) Array(n int) { w.head('*', int64(n)) }

// Null appends a null. In version 2 it is the null bulk string.
func (w *Writer) Null() { w.null("$-1\r\n") }

// NullArray appends a null in place of an array. It differs from Null in version 2 only.
func (w *Writer) NullArray() { w.null("*-1\r\n") }

func (w *Writer) null(text string) {
	if w.three {
		text = "_\r\n"
	}
	w.buf = append(w.space(len(text)), text...)
}

// Map appends the head of a map of n pairs; in version 2, of an array of 2n elements.
func (w *Writer) Map(n int) {
	if w.three {
		w.head('%', int64(n))
	} else {
		w.head('*', 2*int64(n))
	}
}

// Set appends the head of a set of n elements; in version 2, of an array.
func (w *Writer) Set(n int) { w.aggregate('~', n) }

// Push appends the head of a push message of n elements, its kind first; in
// version 2, of an array. A push is sent between replies, never within one.
func (w *Writer) Push(n int) { w.aggregate('>', n) }

func (w *Writer) aggregate(kind byte, n int) {
	if !w.three {
		kind = '*'
	}
	w.head(kind, int64(n))
}

// Double appends a finite floating-point number in the fewest digits that are exact; in
// version 2, as a bulk string.
func (w *Writer) Double(f float64) {
	var text [32]byte
	t := strconv.AppendFloat(text[:0], f, 'g', -1, 64)
	if !w.three {
		w.Bulk(t)
		return
	}
	b := append(w.space(headRoom+len(t)), ',')
	w.buf = append(append(b, t...), '\r', '\n')
}

// Text appends a text of several lines as a verbatim string; in version 2, as a bulk string.
func (w *Writer) Text(text string) {
	if !w.three {
		w.BulkString(text)
		return
	}
	text = "txt:" + text
	w.head('=', int64(len(text)))
	w.buf = append(append(w.space(len(text)+2), text...), '\r', '\n')
}

// AppendCommand appends a command, its name first, to dst as an array of bulk strings, and
// returns the longer slice.
func AppendCommand[T string | []byte](dst []byte, args ...T) []byte {
	dst = AppendArray(dst, len(args))
	for _, arg := range args {
		dst = AppendBulk(dst, arg)
	}
	return dst
}

// AppendArray appends the head of an array of n elements, for a command whose arguments
// follow by [AppendBulk].
func AppendArray(dst []byte, n int) []byte {
	return appendHead(dst, '*', int64(n))
}

// AppendBulk appends a bulk string, such as an argument of a command.
func AppendBulk[T string | []byte](dst []byte, s T) []byte {
	dst = appendHead(dst, '$', int64(len(s)))
	return append(append(dst, s...), '\r', '\n')
}

// AppendBulkInt appends an integer as an argument of a command.
func AppendBulkInt(dst []byte, n int64) []byte {
	var text [20]byte
	return AppendBulk(dst, strconv.AppendInt(text[:0], n, 10))
}
