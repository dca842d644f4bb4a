package accesslog

import (
	"bufio"
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
// It uses a fixed amount of memory, a little more than [MaxLine]. It must not be used by
// several goroutines at once. Make one with [NewScanner].
type Scanner struct {
	r      *bufio.Reader
	parser *Parser
	ev     match.Event
	err    error

	lines, parsed, skipped int64
	bad                    []BadLine
}

// A BadLine is a bad line that a Scanner keeps for messages.
type BadLine struct {
	Number int64  // in the log, the first being 1
	Text   string // its first bytes, MaxBadText at most, of any encoding
}

// NewScanner returns a scanner of the log that r reads, which must be decompressed. The
// error is that of [Format.NewParser].
func NewScanner(r io.Reader, f Format, o Options) (*Scanner, error) {
	p, err := f.NewParser(o)
	if err != nil {
		return nil, err
	}
	return &Scanner{r: bufio.NewReaderSize(r, MaxLine+len("\r\n")), parser: p}, nil
}

// Scan advances to the next event. It returns false at the end of the log, or if the
// reader fails.
func (s *Scanner) Scan() bool {
	if s.parser.Next(&s.ev) {
		return true
	}
	s.ev.Reset()
	for s.err == nil {
		line, err := s.r.ReadSlice('\n')
		switch err {
		case nil:
			line = trimReturn(line[:len(line)-1])
		case io.EOF:
			s.err = err
			if len(line) == 0 {
				return false
			}
			line = trimReturn(line)
		case bufio.ErrBufferFull:
			s.longLine(line)
			continue
		default:
			s.err = err
			return false
		}
		s.lines++
		switch {
		case s.parser.Parse(line, &s.ev):
			s.parsed++
			return true
		case s.parser.Skipped():
			s.skipped++
		default:
			s.keepBad(string(line[:min(len(line), MaxBadText)]))
		}
	}
	return false
}

// longLine skips the rest of a line that is too long and begins with head.
func (s *Scanner) longLine(head []byte) {
	text := string(head[:MaxBadText])
	err := bufio.ErrBufferFull
	for err == bufio.ErrBufferFull {
		_, err = s.r.ReadSlice('\n')
	}
	s.err = err
	if err == nil || err == io.EOF {
		s.lines++
		s.keepBad(text)
	}
}

func (s *Scanner) keepBad(text string) {
	if len(s.bad) < MaxBadLines {
		s.bad = append(s.bad, BadLine{s.lines, text})
	}
}

// Event returns the current event. It is valid until the next call of Scan.
func (s *Scanner) Event() *match.Event { return &s.ev }

// Err returns the error of the reader, or nil at the end of the log. The line that was
// being read at the error is not counted.
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
