package resp

import (
	"bytes"
	"io"
)

const (
	maxReplyLine = 2 * maxText // bytes of a simple string, an error or a number

	faultReply  = "not a reply"
	faultLine   = "too long line in a reply"
	faultValues = "too many values in a reply"
	faultBig    = "too big reply"
)

// A ReplyReader reads the replies of a server, in both versions of the protocol. Make one
// with [NewReplyReader]. A ReplyReader is for one goroutine at a time.
//
// The replies and the error of a stream depend on its bytes only, not on the reads in which
// they arrived. Replies are neither copied nor allocated once the buffers have grown. Nested
// values are a list, so their depth has no limit of its own. Attributes and streamed values,
// which servers send only if asked for, are errors.
type ReplyReader struct {
	in     buffer
	limits Limits
	spans  []span // of the reply that is being read
	values []Value
	left   int // values to come of that reply
	pos    int // where parsing continues, from in.start
	err    error
}

// A span is a Value before its bytes have their final place: Text lies at these offsets
// from the start of the reply.
type span struct {
	kind     byte
	n        int64
	from, to int
}

// NewReplyReader returns a ReplyReader of the replies of src. The limit Bulk bounds one
// string, Args the values of a reply, and Command its bytes.
func NewReplyReader(src io.Reader, limits Limits) *ReplyReader {
	l := limits.withDefaults()
	return &ReplyReader{
		in:     buffer{src: src, small: l.Buffer, keep: max(keepRead, l.Buffer), most: max(l.Command, l.Buffer)},
		limits: l, left: 1,
	}
}

// Next returns the next reply: its values in the order in which they are on the wire, an
// aggregate before its elements. It reads from the source only if no whole reply is
// buffered. The values and their texts are valid until the next call of Next or Ready.
//
// Errors: a [ProtocolError], which stays; io.EOF at the end of the stream,
// io.ErrUnexpectedEOF within a reply; or that of the source. After a temporary one, such as
// a timeout, call Next again.
func (r *ReplyReader) Next() ([]Value, error) {
	for !r.Ready() {
		if _, err := r.in.fill(); err != nil {
			if err == io.EOF && r.in.start < r.in.end {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	r.values = r.values[:0]
	for _, s := range r.spans {
		r.values = append(r.values, Value{s.kind, s.n, r.in.buf[r.in.start+s.from : r.in.start+s.to : r.in.start+s.to]})
	}
	r.in.start += r.pos
	r.spans, r.pos, r.left = r.spans[:0], 0, 1
	return r.values, nil
}

// Ready reports whether Next would return without reading: a whole reply is buffered, or
// there is an error.
func (r *ReplyReader) Ready() bool {
	for r.left > 0 && r.err == nil {
		if !r.value() {
			return r.err != nil
		}
	}
	return true
}

// value reads one value at pos. It returns false if bytes are missing or r.err is set.
func (r *ReplyReader) value() bool {
	b := r.in.buf[r.in.start:min(r.in.end, r.in.start+r.limits.Command)]
	if r.pos == len(b) {
		return r.cut(b)
	}
	s := span{kind: b[r.pos]}
	next := lineBad
	switch s.kind {
	case KindSimple, KindError, KindDouble, KindBig:
		s.from, s.to, next = textLine(b, r.pos+1)
	case KindInt:
		if s.from, s.to, next = textLine(b, r.pos+1); next > 0 {
			var ok bool
			if s.n, ok = ParseInt(b[s.from:s.to]); !ok {
				next = lineBad
			}
			s.from, s.to = 0, 0
		}
	case KindBool, KindNull:
		s, next = word(b, r.pos)
	case KindBulk, KindVerbatim, KindArray, KindMap, KindSet, KindPush:
		s, next = r.counted(b)
	}
	switch {
	case r.err != nil:
		return false
	case next == lineCut:
		return r.cut(b)
	case next == lineBad:
		return r.fail(faultReply)
	case len(r.spans) == r.limits.Args:
		return r.fail(faultValues)
	}
	if r.left--; isAggregate(s.kind) {
		r.left += int(s.n)
	}
	r.spans, r.pos = append(r.spans, s), next
	return true
}

// cut returns false: the value at pos is incomplete in b, or the reply is too big.
func (r *ReplyReader) cut(b []byte) bool {
	switch {
	case len(b) == r.limits.Command:
		return r.fail(faultBig)
	case len(b)-r.pos > maxReplyLine+2 && b[r.pos] != KindBulk && b[r.pos] != KindVerbatim:
		return r.fail(faultLine)
	}
	return false
}

// fail ends the stream with a ProtocolError.
func (r *ReplyReader) fail(reason string) bool {
	r.err = ProtocolError{reason}
	return false
}

// counted reads a value that begins with a length, at pos.
func (r *ReplyReader) counted(b []byte) (s span, next int) {
	s.kind = b[r.pos]
	n, next := lengthLine(b, r.pos+1)
	switch {
	case next <= 0:
		return s, next
	case n < 0: // the nulls of version 2
		if s.kind != KindBulk && s.kind != KindArray {
			return s, lineBad
		}
		return span{kind: KindNull}, next
	case isAggregate(s.kind):
		if s.n = n; s.kind == KindMap && n <= int64(r.limits.Args) {
			s.n = 2 * n
		}
		if s.n+int64(len(r.spans)+r.left) > int64(r.limits.Args) {
			r.fail(faultValues)
		}
		return s, next
	case n > int64(r.limits.Bulk):
		r.fail(faultLength)
		return s, next
	}
	s.from, s.to = next, next+int(n)
	switch end := s.to + len("\r\n"); {
	case end > r.limits.Command:
		r.fail(faultBig)
		return s, next
	case s.to < len(b) && b[s.to] != '\r':
		return s, lineBad
	case end > len(b):
		return s, lineCut
	case b[end-1] != '\n':
		return s, lineBad
	default:
		return s, end
	}
}

// textLine returns the text at b[i:] up to CR LF, and the index after it, lineCut or
// lineBad.
func textLine(b []byte, i int) (from, to, next int) {
	n := bytes.IndexAny(b[i:min(len(b), i+maxReplyLine)], "\r\n")
	switch {
	case n < 0:
		return 0, 0, lineCut
	case b[i+n] == '\n':
		return 0, 0, lineBad
	case i+n+1 == len(b):
		return 0, 0, lineCut
	case b[i+n+1] != '\n':
		return 0, 0, lineBad
	}
	return i, i + n, i + n + 2
}

// word reads one of the values without a length or a number: "_", "#t" and "#f".
func word(b []byte, i int) (s span, next int) {
	for _, w := range []struct {
		text string
		span span
	}{
		{"_\r\n", span{kind: KindNull}},
		{"#t\r\n", span{kind: KindBool, n: 1}},
		{"#f\r\n", span{kind: KindBool}},
	} {
		seen := min(len(b)-i, len(w.text))
		if string(b[i:i+seen]) != w.text[:seen] {
			continue
		}
		if seen < len(w.text) {
			return s, lineCut
		}
		return w.span, i + seen
	}
	return s, lineBad
}
