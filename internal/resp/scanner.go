package resp

import (
	"bytes"
	"strings"
)

const (
	// maxDepth is how deep aggregates may be nested: other readers of replies are recursive.
	maxDepth = 32

	// MaxScanText is how many bytes of texts a [Scanner] keeps.
	MaxScanText = 256

	maxNumber = 256      // bytes of a line with a number, without its end
	maxLine   = 64 * kib // bytes of a simple string or an error, without its end
)

// The reasons of a [ProtocolError] of a Scanner.
const (
	faultReply  = "not a reply"
	faultLine   = "too long line in a reply"
	faultValues = "too many values in a reply"
	faultBig    = "too big reply"
	faultDepth  = "too deeply nested reply"
	faultPush   = "a push message within a reply"
)

// A Scanner finds the ends of values in a stream that something else reads: replies, or commands, which are arrays.
// Make one with [NewScanner]. A Scanner is for one goroutine at a time.
//
// It keeps the beginning of the texts, and allocates nothing. What it finds depends on the bytes
// only, not on how they are split. Attributes and streamed values, which servers send only on
// request, are errors, and so are push messages within another value.
type Scanner struct {
	limits Limits
	value  Value // so far; its Text is in text
	text   [MaxScanText]byte
	texts  int   // in it
	list   *list // has all values for a ReplyReader, or nil
	begun  bool
	size   int // bytes of the value so far
	values int // that it has announced

	depth int           // open aggregates
	left  [maxDepth]int // values to come of each
	body  int           // bytes to come of a string and its end

	kept []byte // the beginning of a line that comes in pieces
	kind byte   // of the line
	line int    // its bytes so far
	cr   bool   // the last of them was a CR

	err error
}

// NewScanner returns a Scanner. The limit Bulk bounds one string, Args the values within one value, and Command its
// bytes.
func NewScanner(limits Limits) *Scanner { return &Scanner{limits: limits.withDefaults()} }

// Within reports whether the last scan ended within a value.
func (s *Scanner) Within() bool { return s.begun }

// Value returns the value that Scan has found. Its Text is the beginning of all texts in it, with blanks in between.
// It is valid until the next scan.
func (s *Scanner) Value() Value { return s.value }

// Scan reads b up to the end of a value. It returns how many bytes these are, and whether the value is whole: if not,
// all of b was read. The error is a [ProtocolError], which stays.
func (s *Scanner) Scan(b []byte) (n int, whole bool, err error) {
	if s.err != nil || len(b) == 0 {
		return 0, false, s.err
	}
	if !s.begun {
		s.begun, s.size, s.values, s.texts, s.value = true, 0, 1, 0, Value{Kind: b[0], Text: s.text[:0]}
	}
	for n < len(b) && s.begun && s.err == nil {
		if s.body > 0 {
			n += s.scanString(b[n:])
		} else {
			n += s.scanLine(b[n:])
		}
	}
	if s.err != nil {
		return 0, false, s.err
	}
	return n, !s.begun, nil
}

// scanString scans a part of a string or of its end, and returns its length.
func (s *Scanner) scanString(b []byte) int {
	const end = "\r\n"
	if text := s.body - len(end); text > 0 {
		n := min(len(b), text)
		s.keep(b[:n])
		s.body -= n
		return n
	}
	n := min(len(b), s.body)
	if from := len(end) - s.body; string(b[:n]) != end[from:from+n] {
		return s.fail(faultReply)
	}
	if s.body -= n; s.body == 0 {
		s.textEnds()
	}
	return n
}

// scanLine scans a part of a line, and returns its length.
func (s *Scanner) scanLine(b []byte) int {
	if s.line == 0 {
		if s.kind = b[0]; strings.IndexByte(kinds, s.kind) < 0 {
			return s.fail(faultReply)
		}
	}
	part := b
	end := bytes.IndexByte(b, '\n')
	if end >= 0 {
		part = b[:end]
	}
	cr := bytes.IndexByte(part, '\r')
	if s.cr && len(part) > 0 || cr >= 0 && cr < len(part)-1 || end >= 0 && cr < 0 && !s.cr {
		return s.fail(faultReply)
	}
	longest, line := maxNumber, part
	if s.kind == KindSimple || s.kind == KindError {
		longest = maxLine
	}
	if s.line > 0 || end < 0 {
		line = s.keepLine(part)
	}
	s.line, s.cr = s.line+len(part), s.cr || cr >= 0
	switch {
	case s.line > longest+len("\r"):
		return s.fail(faultLine)
	case end < 0:
		return len(b)
	}
	s.lineEnds(line[:min(s.line-len("\r"), s.keepsOfLine())])
	s.line, s.cr = 0, false
	return end + 1
}

// keepLine keeps a piece of the line, and returns the kept part.
func (s *Scanner) keepLine(part []byte) []byte {
	if s.line == 0 {
		s.kept = s.kept[:0]
	}
	s.kept = append(s.kept, part[:min(len(part), s.keepsOfLine()-len(s.kept))]...)
	return s.kept
}

// keepsOfLine returns how many bytes of a line are kept: all for a list.
func (s *Scanner) keepsOfLine() int {
	if s.list != nil {
		return maxLine
	}
	return maxNumber
}

// lineEnds continues after a line; line is its beginning.
func (s *Scanner) lineEnds(line []byte) {
	var v Value
	if !v.parse(line) {
		s.fail(faultReply)
		return
	}
	first := s.size == 0
	if s.size += s.line + len("\n"); s.size > s.limits.Command {
		s.fail(faultBig)
		return
	}
	if first {
		s.value.Kind, s.value.N = v.Kind, v.N
	} else if v.Kind == KindPush {
		s.fail(faultPush)
		return
	}
	if s.list != nil {
		s.list.add(v)
	}
	switch v.Kind {
	case KindBulk, KindVerbatim:
		s.stringBegins(v.N)
	case KindArray, KindMap, KindSet, KindPush:
		s.aggregateBegins(v.N)
	case KindSimple, KindError, KindDouble, KindBig:
		s.textBegins()
		s.keep(v.Text)
		s.textEnds()
	default:
		s.ended()
	}
}

// stringBegins expects a string of n bytes.
func (s *Scanner) stringBegins(n int64) {
	switch {
	case n > int64(s.limits.Bulk):
		s.fail(faultLength)
		return
	case int64(s.size)+n > int64(s.limits.Command):
		s.fail(faultBig)
		return
	}
	s.body = int(n) + len("\r\n")
	s.size += s.body
	s.textBegins()
}

// aggregateBegins expects n values.
func (s *Scanner) aggregateBegins(n int64) {
	switch {
	case n > int64(s.limits.Args-s.values):
		s.fail(faultValues)
	case n == 0:
		s.ended()
	case s.depth == maxDepth:
		s.fail(faultDepth)
	default:
		s.values += int(n)
		s.left[s.depth] = int(n)
		s.depth++
	}
}

// ended notes the end of a value, and of the aggregates that end with it.
func (s *Scanner) ended() {
	for s.depth > 0 {
		if s.left[s.depth-1]--; s.left[s.depth-1] > 0 {
			return
		}
		s.depth--
	}
	s.begun = false
}

// keep appends b to the text of the value, up to its longest.
func (s *Scanner) keep(b []byte) {
	if s.list != nil {
		s.list.text = append(s.list.text, b...)
		return
	}
	n := len(s.value.Text)
	s.value.Text = s.text[:n+copy(s.text[n:], b)]
}

// textBegins separates the next text from those before.
func (s *Scanner) textBegins() {
	if n := len(s.value.Text); s.texts > 0 && n < len(s.text) {
		s.text[n] = ' '
		s.value.Text = s.text[:n+1]
	}
	s.texts++
}

// textEnds notes the end of a value with a text.
func (s *Scanner) textEnds() {
	if s.list != nil {
		s.list.ended()
	}
	s.ended()
}

func (s *Scanner) fail(reason string) int {
	s.err = ProtocolError{reason}
	return 0
}
