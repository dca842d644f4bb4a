package resp

import (
	"bytes"
	"math"
)

// kindAttribute is the type of what stands before a reply and is no part of
// it. No Value is of this kind.
const kindAttribute Kind = '|'

// A head is a value without its elements.
type head struct {
	kind     Kind
	n        int64 // for Value.Int
	elems    int64 // values that follow and belong to it
	from, to int   // where its text is
	next     int   // the index behind it, lineCut when it is not whole
}

// read reads the head at b[i:], with a line of at most the given length. Of
// a bulk that is not whole, to is set.
func (h *head) read(b []byte, i, line int) (fault string) {
	*h = head{}
	if i >= len(b) {
		return ""
	}
	h.kind = Kind(b[i])
	switch h.kind {
	case KindInt:
		// Most integers have fewer digits than the largest, and need no search
		// for the end of their line.
		if h.n, h.next = lengthLine(b, i+1); h.next > 0 {
			return ""
		}
		return h.readLine(b, i+1, line)
	case KindBulk, KindBulkError, KindVerbatim:
		return h.readBulk(b, i+1)
	case KindArray, KindMap, KindSet, KindPush, kindAttribute:
		return h.readAggregate(b, i+1)
	case KindSimple, KindError, KindNull, KindBool, KindDouble, KindBig:
		return h.readLine(b, i+1, line)
	}
	return expected("the type of a reply", b[i])
}

func (h *head) readAggregate(b []byte, i int) (fault string) {
	h.elems, h.next, fault = replyLength(b, i)
	switch {
	case fault != "" || h.next == lineCut:
	case h.elems < 0 && h.kind == KindArray:
		h.kind, h.elems = KindNull, 0
	case h.elems < 0:
		fault = faultReplyLength
	case h.kind == KindMap || h.kind == kindAttribute:
		h.elems *= 2
	}
	return fault
}

func (h *head) readBulk(b []byte, i int) (fault string) {
	n, body, fault := replyLength(b, i)
	switch {
	case fault != "" || body == lineCut:
		return fault
	case n < 0 && h.kind == KindBulk:
		h.kind, h.next = KindNull, body
		return ""
	case n < 0:
		return faultReplyLength
	case n > 512*mib: // more than any limit, and than an int may hold
		return faultReplySize
	case h.kind == KindVerbatim && n < 4:
		return faultReplyVerbatim
	}
	h.from, h.to = body, body+int(n)
	if h.to+2 > len(b) {
		return ""
	}
	if b[h.to] != '\r' || b[h.to+1] != '\n' {
		return faultReplyEnd
	}
	h.next = h.to + 2
	if h.kind == KindVerbatim {
		if b[body+3] != ':' {
			return faultReplyVerbatim
		}
		h.n = int64(b[body])<<16 | int64(b[body+1])<<8 | int64(b[body+2])
		h.from += 4
	}
	return ""
}

// replyLength reads the length at b[i:].
func replyLength(b []byte, i int) (n int64, next int, fault string) {
	if i < len(b) && b[i] == '?' {
		return 0, 0, faultReplyStream
	}
	n, next = lengthLine(b, i)
	if next == lineBad {
		return 0, 0, faultReplyLength
	}
	return n, next, ""
}

// readLine reads a value that ends with its line, which begins at b[i].
func (h *head) readLine(b []byte, i, most int) (fault string) {
	h.next = lineCut
	line := b[i:min(len(b), i+most+len("\r\n"))]
	n := bytes.IndexByte(line, '\n')
	switch {
	case n < 0 && len(line) == most+len("\r\n"):
		return faultReplyLong
	case n < 0:
		return ""
	case n == 0 || line[n-1] != '\r':
		return faultReplyLine
	}
	line = line[:n-1]
	if bytes.IndexByte(line, '\r') >= 0 {
		return faultReplyLine
	}
	h.from, h.to, h.next = i, i+n-1, i+n+1
	if !h.readNumber(line) {
		return faultReplyNumber
	}
	return ""
}

// readNumber reads what a line stands for. Texts are what they are.
func (h *head) readNumber(line []byte) (ok bool) {
	switch h.kind {
	case KindInt:
		h.n, ok = ParseInt(line)
		return ok
	case KindDouble:
		f, ok := parseDouble(line)
		h.n = int64(math.Float64bits(f))
		return ok
	case KindBig:
		return isWhole(line)
	case KindNull:
		return len(line) == 0
	case KindBool:
		if len(line) == 1 && line[0] == 't' {
			h.n = 1
		}
		return len(line) == 1 && (line[0] == 't' || line[0] == 'f')
	}
	return true
}
