package resp_test

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/lately-go/lately/internal/resp"
)

// An outcome is all that a stream of commands yields: the commands, and the
// error behind the last one.
type outcome struct {
	commands [][]string
	end      string
}

func (o outcome) String() string {
	return fmt.Sprintf("%q, then %s", o.commands, o.end)
}

func (o outcome) equal(p outcome) bool { return o.String() == p.String() }

var (
	wholeLength = regexp.MustCompile(`^(-1|0|[1-9][0-9]{0,17})\r\n`)
	cutLength   = regexp.MustCompile(`^(-1?|(-1|0|[1-9][0-9]{0,17})\r?)?$`)
)

// A referenceReader is a slow reader of a complete stream. It is written from the specification with regular expressions
// and strings, and shares nothing with Reader but the words of its errors.
type referenceReader struct {
	stream string
	limits resp.Limits
}

func reference(stream string, limits resp.Limits) outcome {
	r := referenceReader{stream: stream, limits: limits}
	var o outcome
	for r.stream != "" {
		command, err := r.command()
		if err != nil {
			o.end = err.Error()
			return o
		}
		if len(command) > 0 {
			o.commands = append(o.commands, command)
		}
	}
	o.end = io.EOF.Error()
	return o
}

func fault(reason string) error { return resp.ProtocolError{Reason: reason} }

func (r *referenceReader) command() ([]string, error) {
	if r.stream[0] != '*' {
		return r.inline()
	}
	window := r.stream[:min(len(r.stream), r.limits.Command)]
	command, size, err := r.bulks(window)
	if errors.Is(err, io.ErrUnexpectedEOF) && len(window) == r.limits.Command {
		err = fault("too big command")
	}
	r.stream = r.stream[size:]
	return command, err
}

// length reads a number and its line end from s; wrong is the error for other text.
func length(s, wrong string) (n, size int, err error) {
	if line := wholeLength.FindString(s); line != "" {
		long, err := strconv.ParseInt(strings.TrimSuffix(line, "\r\n"), 10, 64)
		const tooMuch = 512<<20 + 1 // for any limit
		return int(min(long, tooMuch)), len(line), err
	}
	if cutLength.MatchString(s) {
		return 0, 0, io.ErrUnexpectedEOF
	}
	return 0, 0, fault(wrong)
}

func (r *referenceReader) bulks(s string) (command []string, size int, err error) {
	count, n, err := length(s[1:], "invalid multibulk length")
	if err != nil {
		return nil, 0, err
	}
	if count > r.limits.Args {
		return nil, 0, fault("invalid multibulk length")
	}
	at := 1 + n
	for range max(count, 0) {
		if at == len(s) {
			return nil, 0, io.ErrUnexpectedEOF
		}
		if s[at] != '$' {
			return nil, 0, fault(referenceExpected("'$'", s[at]))
		}
		bytes, n, err := length(s[at+1:], "invalid bulk length")
		if err != nil {
			return nil, 0, err
		}
		if bytes < 0 || bytes > r.limits.Bulk {
			return nil, 0, fault("invalid bulk length")
		}
		at += 1 + n
		if at+bytes+2 > r.limits.Command {
			return nil, 0, fault("too big command")
		}
		switch end := s[min(at+bytes, len(s)):min(at+bytes+2, len(s))]; {
		case !strings.HasPrefix("\r\n", end):
			return nil, 0, fault("expected CR LF behind an argument")
		case end != "\r\n":
			return nil, 0, io.ErrUnexpectedEOF
		}
		command = append(command, s[at:at+bytes])
		at += bytes + 2
	}
	return command, at, nil
}

func referenceExpected(want string, got byte) string {
	if got < ' ' || got > '~' {
		return fmt.Sprintf(`expected %s, got '\x%02x'`, want, got)
	}
	return fmt.Sprintf("expected %s, got '%c'", want, got)
}

func (r *referenceReader) inline() ([]string, error) {
	line, rest, ended := strings.Cut(r.stream, "\n")
	stripped := line
	if ended {
		stripped = strings.TrimSuffix(line, "\r")
	}
	switch {
	case !ended && len(line) < r.limits.Inline+2:
		return nil, io.ErrUnexpectedEOF
	case !ended || len(stripped) > r.limits.Inline:
		return nil, fault("too big inline request")
	}
	r.stream = rest
	return referenceSplit(stripped, r.limits)
}

// referenceSplit parts a line into words with a machine of four states.
func referenceSplit(line string, limits resp.Limits) (words []string, err error) {
	if strings.Contains(line, "\x00") {
		return nil, fault("NUL byte in inline request")
	}
	const (
		between = iota
		plain
		single
		double
	)
	state := between
	var word []byte
	take := func() {
		words = append(words, string(word))
		word, state = nil, between
	}
	// As Reader does, judge each word before the next one is looked at.
	judge := func() error {
		switch n := len(words); {
		case n > limits.Args:
			return fault("too many arguments in inline request")
		case n > 0 && len(words[n-1]) > limits.Bulk:
			return fault("too big argument in inline request")
		}
		return nil
	}
	for line != "" {
		c, rest := line[0], line[1:]
		switch state {
		case between:
			if strings.IndexByte(" \t\n\v\f\r", c) < 0 {
				state = plain
				continue
			}
		case plain:
			switch c {
			case ' ', '\t', '\n', '\r':
				take()
			case '"':
				state = double
			case '\'':
				state = single
			default:
				word = append(word, c)
			}
		default:
			quote := `"`[0]
			if state == single {
				quote = '\''
			}
			switch {
			case c == quote:
				if rest != "" && strings.IndexByte(" \t\n\v\f\r", rest[0]) < 0 {
					return nil, fault("unbalanced quotes in request")
				}
				take()
			case state == single && strings.HasPrefix(line, `\'`):
				word, rest = append(word, '\''), line[2:]
			case state == double && c == '\\' && rest != "":
				word, rest = referenceEscape(word, line)
			default:
				word = append(word, c)
			}
		}
		line = rest
		if err := judge(); err != nil {
			return nil, err
		}
	}
	switch state {
	case plain:
		take()
	case single, double:
		return nil, fault("unbalanced quotes in request")
	}
	if err := judge(); err != nil {
		return nil, err
	}
	if len(words) > 0 && (strings.EqualFold(words[0], "post") || strings.EqualFold(words[0], "host:")) {
		return nil, fault("this is not an HTTP port")
	}
	return words, nil
}

var hexEscape = regexp.MustCompile(`^\\x[0-9a-fA-F]{2}`)

func referenceEscape(word []byte, line string) (longer []byte, rest string) {
	if hex := hexEscape.FindString(line); hex != "" {
		n, _ := strconv.ParseUint(hex[2:], 16, 8)
		return append(word, byte(n)), line[len(hex):]
	}
	named := map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'a': '\a'}
	c, ok := named[line[1]]
	if !ok {
		c = line[1]
	}
	return append(word, c), line[2:]
}
