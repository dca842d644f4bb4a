package resp

import (
	"errors"
	"io"
)

const (
	maxDepth   = 32       // aggregates within each other, attributes included
	keepReply  = 64 * kib // read buffer of a client that pipelines
	keepValues = 1024     // elements that are read without asking the budget for each
)

// A ReplyReader reads the replies of a server, of both protocol versions:
// every type but the streamed ones. Attributes are read and dropped.
//
// The replies and the error a stream yields depend on its bytes only, not on
// the reads they came in. Each byte is looked at once for its end and once for
// its value; nothing is allocated once the buffers have their size.
//
// The zero value is not usable, call [NewReplyReader]. A ReplyReader is for
// one goroutine at a time.
type ReplyReader struct {
	in     buffer
	limits ReplyLimits
	pos    int              // where looking for the end goes on; in.start for a new reply
	depth  int              // aggregates that are open at pos
	open   [maxDepth]opened // those
	values int              // values seen and announced in the reply so far
	whole  bool             // a reply ends at pos
	elems  []Value          // elements of the reply that was handed out
	err    error            // a ProtocolError, for good
}

// opened is an aggregate that has not ended.
type opened struct {
	rest      int64 // values still to come
	attribute bool  // it is none itself, the value behind it is
}

// NewReplyReader returns a ReplyReader of the replies that src holds, or an
// error that names the limit that is out of range. It reads nothing yet.
func NewReplyReader(src io.Reader, limits ReplyLimits) (*ReplyReader, error) {
	if src == nil {
		return nil, errors.New("resp: NewReplyReader needs a source; src is nil")
	}
	l, err := limits.withDefaults()
	if err != nil {
		return nil, err
	}
	in := buffer{src: src, small: l.Buffer, keep: max(keepReply, l.Buffer), most: max(l.Reply, l.Buffer)}
	return &ReplyReader{in: in, limits: l}, nil
}

// Next returns the next reply, or push: a [Value] of KindPush answers nothing,
// and may come between any two replies of version 3. It reads from the source
// only when no whole reply is buffered.
//
// The value is a view, valid until the next call of Next or Ready.
//
// An error that the server has answered is a value, see [Value.Err]. Errors of
// Next are a [ProtocolError], which stays; io.EOF between two replies and
// io.ErrUnexpectedEOF within one; or what the source returned. After an error
// of the source that passes, such as a timeout, Next can be called again and
// goes on where it was.
func (r *ReplyReader) Next() (Value, error) {
	for !r.Ready() {
		if err := r.fill(); err != nil {
			return Value{}, err
		}
	}
	if r.err != nil {
		return Value{}, r.err
	}
	r.whole = false
	r.elems = r.elems[:0]
	if n := r.values - 1; cap(r.elems) < n {
		r.elems = make([]Value, 0, n)
	}
	var v Value
	r.in.start = r.build(&v, r.in.start)
	return v, nil
}

// Ready reports whether Next would return without reading: a whole reply is
// buffered, or a ProtocolError.
func (r *ReplyReader) Ready() bool { return r.whole || r.err != nil || r.scan() }

// Partial reports whether a reply has begun to come in and is not whole. It is
// exact when Next is reading, and after a call of Ready that returned false.
func (r *ReplyReader) Partial() bool { return !r.whole && r.err == nil && r.in.start < r.in.end }

// fill reads more of an unfinished reply.
func (r *ReplyReader) fill() error {
	if cap(r.elems) > keepValues {
		r.elems = nil
	}
	start, size := r.in.start, len(r.in.buf)
	moved, err := r.in.fill()
	if moved {
		r.pos -= start
	}
	if len(r.in.buf) != size {
		clear(r.elems[:cap(r.elems)]) // these views would keep the former buffer
	}
	if err == io.EOF && r.Partial() {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// fail ends the stream: there is no way to find the next reply.
func (r *ReplyReader) fail(reason string) bool {
	r.err = ProtocolError{reason}
	return true
}

// window returns the buffer up to where the reply must have ended.
func (r *ReplyReader) window() []byte {
	return r.in.buf[:min(r.in.end, r.in.start+r.limits.Reply)]
}

// scan looks for the end of the reply, from where it stopped the last time. It
// returns true when the reply is whole, or when r.err is set. It counts the
// values, and sees to it that [ReplyReader.build] need not check anything.
func (r *ReplyReader) scan() bool {
	b := r.window()
	if r.pos == r.in.start {
		r.depth, r.values = 0, 1
	}
	var h head
	for {
		fault := h.read(b, r.pos, r.limits.Line)
		switch {
		case fault != "":
			return r.fail(fault)
		case h.next == lineCut:
			if len(b)-r.in.start == r.limits.Reply || h.to+len("\r\n")-r.in.start > r.limits.Reply {
				return r.fail(faultReplySize)
			}
			return false
		case h.kind == KindPush && r.depth > 0:
			return r.fail(faultReplyPush)
		}
		r.pos = h.next
		if h.elems > 0 || h.kind == kindAttribute {
			if fault = r.enter(&h); fault != "" {
				return r.fail(fault)
			}
			continue
		}
		if r.leave() {
			r.whole = true
			return true
		}
	}
}

// enter opens an aggregate that has elements, or an attribute.
func (r *ReplyReader) enter(h *head) (fault string) {
	if int64(r.limits.Elements-r.values) < h.elems {
		return faultReplyElements
	}
	if h.elems == 0 {
		return ""
	}
	if r.depth == maxDepth {
		return faultReplyDepth
	}
	r.values += int(h.elems)
	r.open[r.depth] = opened{rest: h.elems, attribute: h.kind == kindAttribute}
	r.depth++
	return ""
}

// leave counts a value that has ended, and the aggregates that end with it. It
// reports whether the reply has ended.
func (r *ReplyReader) leave() bool {
	for r.depth > 0 {
		o := &r.open[r.depth-1]
		o.rest--
		if o.rest > 0 {
			return false
		}
		r.depth--
		if o.attribute {
			return false
		}
	}
	return true
}

// build makes dst the value at i of a whole reply and returns the index behind
// it. The elements of an aggregate are side by side in r.elems, those of
// attributes too, where nobody looks at them.
func (r *ReplyReader) build(dst *Value, i int) (next int) {
	b := r.in.buf[:r.in.end]
	var h head
	h.read(b, i, r.limits.Line)
	for h.kind == kindAttribute {
		_, i = r.buildElems(&h)
		h.read(b, i, r.limits.Line)
	}
	*dst = Value{Kind: h.kind, Int: h.n}
	switch h.kind {
	case KindArray, KindMap, KindSet, KindPush:
		dst.Elems, h.next = r.buildElems(&h)
	case KindSimple, KindError, KindBulk, KindBulkError, KindBig, KindVerbatim:
		dst.Text = b[h.from:h.to:h.to]
	}
	return h.next
}

func (r *ReplyReader) buildElems(h *head) (elems []Value, next int) {
	n, next := len(r.elems), h.next
	behind := n + int(h.elems)
	r.elems = r.elems[:behind]
	elems = r.elems[n:behind:behind]
	for i := range elems {
		next = r.build(&elems[i], next)
	}
	return elems, next
}
