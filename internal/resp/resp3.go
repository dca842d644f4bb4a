package resp

import "strconv"

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
	if n = max(n, 0); w.three {
		w.head('%', int64(n))
		return
	}
	w.head('*', 2*int64(n))
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
	w.head(kind, int64(max(n, 0)))
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
	const format = "txt:"
	b := append(w.space(headRoom+len(format)+len(text)+2), '=')
	b = append(appendInt(b, int64(len(format)+len(text))), '\r', '\n')
	b = append(b, format...)
	w.buf = append(append(b, text...), '\r', '\n')
}
