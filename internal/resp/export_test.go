package resp

// BufferSize returns the bytes that the read buffer has.
func (r *Reader) BufferSize() int { return len(r.in.buf) }

// BufferSize returns the bytes that the write buffer has.
func (w *Writer) BufferSize() int { return cap(w.buf) }

// Bytes returns what was appended and not flushed.
func (w *Writer) Bytes() []byte { return w.buf }

// Discard drops what was appended and not flushed.
func (w *Writer) Discard() { w.empty() }

// Strays counts the views that are neither nil nor of the present buffer: each keeps an earlier buffer in memory.
func (r *Reader) Strays() int {
	n := 0
	for _, arg := range r.args[:cap(r.args)] {
		if cap(arg) > 0 && !within(r.in.buf, arg) {
			n++
		}
	}
	return n
}

func within(b, view []byte) bool {
	view = view[:1]
	for i := range b {
		if &b[i] == &view[0] {
			return true
		}
	}
	return false
}
