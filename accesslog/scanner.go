package accesslog

import (
	"bytes"
	"io"

	"github.com/lately-go/lately/match"
)

// Bounds of the bad lines that a Scanner keeps.
const (
	MaxBadLines = 10  // their number
	MaxBadText  = 256 // the bytes kept of each
)

// A Scanner reads a log from an io.Reader, event by event, in the order of the
// log:
//
//	for s.Scan() {
//		use(s.Event())
//	}
//	if err := s.Err(); err != nil {
//
// It holds a fixed amount of memory, a little more than two lines of [MaxLine],
// whatever the log. It must not be used by several goroutines at once. One is
// got from [NewScanner].
type Scanner struct {
	r      io.Reader
	parser *Parser
	ev     match.Event

	buf      []byte
	from, to int // what is read and not yet used: buf[from:to]
	looked   int // there is no '\n' in buf[from:looked]
	err      error

	lines, parsed, skipped int64
	bad                    []BadLine
}

// A BadLine is a bad line that a Scanner keeps, to be shown.
type BadLine struct {
	Number int64  // in the log, the first being 1
	Text   string // its first bytes, MaxBadText at most, of any encoding
}

// NewScanner returns a scanner of the log that r gives, decompressed. The error
// is that of [Format.NewParser].
func NewScanner(r io.Reader, f Format, o Options) (*Scanner, error) {
	p, err := f.NewParser(o)
	if err != nil {
		return nil, err
	}
	return &Scanner{r: r, parser: p, buf: make([]byte, 2*MaxLine)}, nil
}

// Scan goes on to the next event, false at the end of the log or when the
// reader has failed.
func (s *Scanner) Scan() bool {
	if s.parser.Next(&s.ev) {
		return true
	}
	for {
		line, ok := s.line()
		if !ok {
			s.ev.Reset()
			return false
		}
		s.lines++
		if s.parser.Parse(line, &s.ev) {
			s.parsed++
			return true
		}
		if s.parser.Skipped() {
			s.skipped++
			continue
		}
		if len(s.bad) < MaxBadLines {
			s.bad = append(s.bad, BadLine{s.lines, string(line[:min(len(line), MaxBadText)])})
		}
	}
}

// Event returns the event that Scan has gone on to. It is good until the next
// call of Scan.
func (s *Scanner) Event() *match.Event { return &s.ev }

// Err returns the error that ended the log early, nil at its proper end. The
// line that was being read then is not counted.
func (s *Scanner) Err() error {
	if s.err == io.EOF {
		return nil
	}
	return s.err
}

// Lines returns the number of lines so far: parsed, skipped and bad.
func (s *Scanner) Lines() int64 { return s.lines }

// Parsed returns the number of lines so far that have events.
func (s *Scanner) Parsed() int64 { return s.parsed }

// Skipped returns the number of lines so far that are of another kind; see
// [Parser.Skipped].
func (s *Scanner) Skipped() int64 { return s.skipped }

// Bad returns the number of bad lines so far.
func (s *Scanner) Bad() int64 { return s.lines - s.parsed - s.skipped }

// BadLines returns the first bad lines so far, MaxBadLines at most.
func (s *Scanner) BadLines() []BadLine { return s.bad }

// line returns the next line, good until the next call. Of a line that is too
// long it returns so much that Parse finds it bad.
func (s *Scanner) line() ([]byte, bool) {
	for {
		if hop := bytes.IndexByte(s.buf[s.looked:s.to], '\n'); hop >= 0 {
			end := s.looked + hop
			line := s.buf[s.from:end]
			s.from, s.looked = end+1, end+1
			return trimReturn(line), true
		}
		s.looked = s.to
		if s.to-s.from > MaxLine+len("\r") {
			return s.longLine()
		}
		if s.err != nil {
			line := s.buf[s.from:s.to]
			s.from, s.to, s.looked = 0, 0, 0
			return trimReturn(line), len(line) > 0 && s.err == io.EOF
		}
		s.fill()
	}
}

// longLine skips the line that fills the buffer, keeping its beginning.
func (s *Scanner) longLine() ([]byte, bool) {
	const keep = MaxLine + 1 // too long for Parse
	head := s.buf[:keep]
	copy(head, s.buf[s.from:s.to])
	for {
		s.from, s.to, s.looked = keep, keep, keep
		if s.err != nil {
			return head, s.err == io.EOF
		}
		s.fill()
		if hop := bytes.IndexByte(s.buf[keep:s.to], '\n'); hop >= 0 {
			s.from = keep + hop + 1
			s.looked = s.from
			return head, true
		}
	}
}

// fill reads more into the buffer, moving what is in use to its start if there
// is no room.
func (s *Scanner) fill() {
	if s.to == len(s.buf) {
		n := copy(s.buf, s.buf[s.from:s.to])
		s.looked -= s.from
		s.from, s.to = 0, n
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.to:])
		s.to += n
		s.err = err
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}
