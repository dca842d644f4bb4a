package resp

import (
	"bufio"
	"io"
)

// A ReplyReader reads the replies of a server, in both versions of the protocol. Make one
// with [NewReplyReader]. A ReplyReader is for one goroutine at a time.
//
// The replies and the error of a stream depend on its bytes only, not on the reads in which
// they arrived. Replies do not allocate once the buffers have grown.
type ReplyReader struct {
	src     *bufio.Reader
	scanner Scanner
	list    list
	err     error
}

// A list is a value and all values in it, in the order in which they are on the wire.
type list struct {
	values []Value
	text   []byte // of all
	from   int    // where that of the last value begins
}

// NewReplyReader returns a ReplyReader of the replies of src. The limit Bulk bounds one
// string, Args the values of a reply, and Command its bytes; Buffer is the size of one read.
func NewReplyReader(src io.Reader, limits Limits) *ReplyReader {
	l := limits.withDefaults()
	r := &ReplyReader{src: bufio.NewReaderSize(src, l.Buffer), scanner: Scanner{limits: l}}
	r.scanner.list = &r.list
	return r
}

// Next returns the next reply: its values in the order in which they are on the wire, an
// aggregate before its elements. The values and their texts are valid until the next call.
//
// Errors, which stay: a [ProtocolError]; io.EOF at the end of the stream,
// io.ErrUnexpectedEOF within a reply; or the error of the source.
func (r *ReplyReader) Next() ([]Value, error) {
	if r.list.values, r.list.text = r.list.values[:0], r.list.text[:0]; cap(r.list.text) > keepRead {
		r.list.text = nil
	}
	for r.err == nil {
		if _, r.err = r.src.Peek(1); r.err != nil {
			break
		}
		b, _ := r.src.Peek(r.src.Buffered())
		n, whole, err := r.scanner.Scan(b)
		_, _ = r.src.Discard(n)
		if whole {
			return r.list.values, nil
		}
		r.err = err
	}
	if r.err == io.EOF && r.scanner.Within() {
		r.err = io.ErrUnexpectedEOF
	}
	return nil, r.err
}

// add adds a value, whose text follows.
func (l *list) add(v Value) {
	if l.from = len(l.text); v.Kind == KindBulk || v.Kind == KindVerbatim {
		v.N = 0
	}
	v.Text = nil
	l.values = append(l.values, v)
}

// ended gives the last value its text.
func (l *list) ended() { l.values[len(l.values)-1].Text = l.text[l.from:len(l.text):len(l.text)] }
