package resp

import (
	"bufio"
	"bytes"
	"io"
	"strings"
)

// A Value is a reply of a server, or an element of one. See [ReplyReader.Next].
type Value struct {
	// Kind is the byte with which the value begins on the wire, and '_' for every null.
	Kind byte

	// N is the number of an integer, 1 for true, and of an aggregate the number of its
	// elements: for a map, of keys and values together.
	N int64

	// Text is what strings, errors, doubles and big numbers have.
	Text []byte
}

// The kinds of values.
const (
	KindSimple   = '+'
	KindError    = '-'
	KindInt      = ':'
	KindBulk     = '$'
	KindArray    = '*'
	KindNull     = '_'
	KindBool     = '#'
	KindDouble   = ','
	KindBig      = '('
	KindVerbatim = '=' // its Text begins with the format: "txt:"
	KindMap      = '%'
	KindSet      = '~'
	KindPush     = '>'

	kinds = "+-:$*_#,(=%~>"
)

const maxReplyLine = 2*maxText + len("\r\n") // bytes of a simple string, an error or a number

// The reasons of a [ProtocolError] of a ReplyReader.
const (
	faultReply  = "not a reply"
	faultLine   = "too long line in a reply"
	faultValues = "too many values in a reply"
	faultBig    = "too big reply"
)

// A ReplyReader reads the replies of a server, in both versions of the protocol. Make one
// with [NewReplyReader]. A ReplyReader is for one goroutine at a time.
//
// The replies and the error of a stream depend on its bytes only, not on the reads in which
// they arrived. Replies do not allocate once the buffers have grown. Nested values are a
// list, so their depth has no limit of its own. Attributes and streamed values, which servers
// send only if asked for, are errors.
type ReplyReader struct {
	src    *bufio.Reader
	limits Limits
	values []Value
	text   []byte // of the values
	left   int    // values to come of the reply
	size   int    // bytes of the reply so far
	err    error
}

// NewReplyReader returns a ReplyReader of the replies of src. The limit Bulk bounds one
// string, Args the values of a reply, and Command its bytes; Buffer is what one read can get.
func NewReplyReader(src io.Reader, limits Limits) *ReplyReader {
	l := limits.withDefaults()
	return &ReplyReader{src: bufio.NewReaderSize(src, max(l.Buffer, maxReplyLine+1)), limits: l}
}

// Next returns the next reply: its values in the order in which they are on the wire, an
// aggregate before its elements. The values and their texts are valid until the next call.
//
// Errors, which stay: a [ProtocolError]; io.EOF at the end of the stream,
// io.ErrUnexpectedEOF within a reply; or that of the source.
func (r *ReplyReader) Next() ([]Value, error) {
	if r.values, r.text, r.size = r.values[:0], r.text[:0], 0; cap(r.text) > keepRead {
		r.text = nil
	}
	for r.left = 1; r.left > 0 && r.err == nil; r.left-- {
		r.err = r.value()
	}
	if r.err == io.EOF && r.size > 0 {
		r.err = io.ErrUnexpectedEOF
	}
	return r.values, r.err
}

// value reads one value, without its elements.
func (r *ReplyReader) value() error {
	line, err := r.line()
	if err != nil {
		return err
	}
	r.values = append(r.values, Value{})
	v := &r.values[len(r.values)-1]
	if !v.parse(line) {
		return ProtocolError{faultReply}
	}
	switch v.Kind {
	case KindBulk, KindVerbatim:
		n := v.N
		v.N = 0
		return r.bulk(v, n)
	case KindArray, KindMap, KindSet, KindPush:
		return r.elements(v.N)
	case KindSimple, KindError, KindDouble, KindBig:
		from := len(r.text)
		r.text = append(r.text, v.Text...)
		v.Text = r.text[from:len(r.text):len(r.text)]
	}
	return nil
}

// elements expects n values more.
func (r *ReplyReader) elements(n int64) error {
	if n > int64(r.limits.Args-r.left-len(r.values)+1) {
		return ProtocolError{faultValues}
	}
	r.left += int(n)
	return nil
}

// line reads a line, and returns it without its end. It is valid until the source is read.
func (r *ReplyReader) line() ([]byte, error) {
	line, err := r.src.ReadSlice('\n')
	r.size += len(line)
	end := len(line) - len("\r\n")
	switch {
	case len(line) > 0 && strings.IndexByte(kinds, line[0]) < 0:
		return nil, ProtocolError{faultReply}
	case r.size > r.limits.Command:
		return nil, ProtocolError{faultBig}
	case len(line) > maxReplyLine:
		return nil, ProtocolError{faultLine}
	case err != nil:
		return nil, err
	case bytes.IndexByte(line, '\r') != end:
		return nil, ProtocolError{faultReply}
	}
	return line[:end], nil
}

// bulk reads a string of n bytes, and its end.
func (r *ReplyReader) bulk(v *Value, n int64) error {
	if n > int64(r.limits.Bulk) {
		return ProtocolError{faultLength}
	}
	from, left := len(r.text), int(n)+len("\r\n")
	if r.size += left; r.size > r.limits.Command {
		return ProtocolError{faultBig}
	}
	for left > 0 { // what has arrived, whatever the length says
		part, err := r.src.Peek(min(left, r.src.Size()))
		if err != nil {
			return err
		}
		r.text = append(r.text, part...)
		left -= len(part)
		_, _ = r.src.Discard(len(part)) // it is buffered
	}
	text, ok := bytes.CutSuffix(r.text[from:], []byte("\r\n"))
	if !ok {
		return ProtocolError{faultReply}
	}
	v.Text = text[:n:n]
	return nil
}
