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

// show writes a value down with its type, so that two that differ look it.
func show(v resp.Value) string {
	switch v.Kind {
	case resp.KindNull:
		return "null"
	case resp.KindInt:
		return fmt.Sprintf("int %d", v.Int)
	case resp.KindBool:
		return fmt.Sprintf("bool %d", v.Int)
	case resp.KindDouble:
		return fmt.Sprintf("double %v", v.Float())
	case resp.KindVerbatim:
		return fmt.Sprintf("verbatim %q %q", v.Format(), v.Text)
	case resp.KindArray, resp.KindMap, resp.KindSet, resp.KindPush:
		elems := make([]string, len(v.Elems))
		for i, e := range v.Elems {
			elems[i] = show(e)
		}
		return fmt.Sprintf("%s (%s)", v.Kind, strings.Join(elems, ", "))
	}
	return fmt.Sprintf("%s %q", v.Kind, v.Text)
}

// A referenceReplies is a slow reader of replies that are all there, by
// recursion, regular expressions and strings.
type referenceReplies struct {
	s      string // what is left of the longest reply possible
	window int    // the length of s at first
	values int
	limits resp.ReplyLimits
}

// replyReference returns the replies of a stream as show writes them, and the
// error behind the last one.
func replyReference(stream string, limits resp.ReplyLimits) (o outcome) {
	for stream != "" {
		window := stream[:min(len(stream), limits.Reply)]
		r := referenceReplies{s: window, window: len(window), values: 1, limits: limits}
		text, err := r.value(0)
		if errors.Is(err, io.ErrUnexpectedEOF) && len(window) == limits.Reply {
			err = fault("too big reply")
		}
		if err != nil {
			o.end = err.Error()
			return o
		}
		o.commands = append(o.commands, []string{text})
		stream = stream[len(window)-len(r.s):]
	}
	o.end = io.EOF.Error()
	return o
}

func (r *referenceReplies) value(depth int) (string, error) {
	if r.s == "" {
		return "", io.ErrUnexpectedEOF
	}
	kind := r.s[:1]
	switch kind {
	case "*", "%", "~", ">", "|":
		return r.aggregate(kind, depth)
	case "$", "!", "=":
		return r.bulk(kind)
	case "+", "-", ":", ",", "(", "#", "_":
		return r.line(kind)
	}
	return "", fault(referenceExpected("the type of a reply", kind[0]))
}

func (r *referenceReplies) length() (int, error) {
	if strings.HasPrefix(r.s[1:], "?") {
		return 0, fault("streamed replies are not supported")
	}
	n, size, err := length(r.s[1:], "invalid length in a reply")
	r.s = r.s[1+size:]
	return n, err
}

func (r *referenceReplies) aggregate(kind string, depth int) (string, error) {
	n, err := r.length()
	switch {
	case err != nil:
		return "", err
	case n < 0 && kind == "*":
		return "null", nil
	case n < 0:
		return "", fault("invalid length in a reply")
	case kind == ">" && depth > 0:
		return "", fault("push inside a reply")
	}
	if kind == "%" || kind == "|" {
		n *= 2
	}
	if n > r.limits.Elements-r.values {
		return "", fault("too many elements in a reply")
	}
	if n > 0 && depth == 32 {
		return "", fault("too deeply nested reply")
	}
	r.values += n
	elems := make([]string, n)
	for i := range elems {
		if elems[i], err = r.value(depth + 1); err != nil {
			return "", err
		}
	}
	if kind == "|" {
		return r.value(depth)
	}
	return fmt.Sprintf("%s (%s)", resp.Kind(kind[0]), strings.Join(elems, ", ")), nil
}

func (r *referenceReplies) bulk(kind string) (string, error) {
	n, err := r.length()
	switch {
	case err != nil:
		return "", err
	case n < 0 && kind == "$":
		return "null", nil
	case n < 0:
		return "", fault("invalid length in a reply")
	case n > 512<<20:
		return "", fault("too big reply")
	case kind == "=" && n < 4:
		return "", fault("verbatim string without a format")
	}
	if len(r.s) < n+2 {
		if r.window-len(r.s)+n+2 > r.limits.Reply {
			return "", fault("too big reply")
		}
		return "", io.ErrUnexpectedEOF
	}
	text := r.s[:n]
	if r.s[n:n+2] != "\r\n" {
		return "", fault("expected CR LF behind a bulk in a reply")
	}
	r.s = r.s[n+2:]
	if kind == "=" {
		if text[3] != ':' {
			return "", fault("verbatim string without a format")
		}
		return fmt.Sprintf("verbatim %q %q", text[:3], text[4:]), nil
	}
	return fmt.Sprintf("%s %q", resp.Kind(kind[0]), text), nil
}

var doubleText = regexp.MustCompile(`^(-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|-?inf|nan)$`)

func (r *referenceReplies) line(kind string) (string, error) {
	line, rest, ended := strings.Cut(r.s[1:], "\n")
	text, crlf := strings.CutSuffix(line, "\r")
	switch {
	case len(line) > r.limits.Line+1:
		return "", fault("too long line in a reply")
	case !ended:
		return "", io.ErrUnexpectedEOF
	case !crlf || strings.Contains(text, "\r"):
		return "", fault("invalid line in a reply")
	}
	r.s = rest
	wrong := fault("invalid number in a reply")
	switch kind {
	case ":":
		if n, ok := canonical(text); ok {
			return fmt.Sprintf("int %d", n), nil
		}
		return "", wrong
	case ",":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !doubleText.MatchString(text) {
			return "", wrong
		}
		return fmt.Sprintf("double %v", f), nil
	case "(":
		if !regexp.MustCompile(`^-?[0-9]+$`).MatchString(text) {
			return "", wrong
		}
	case "#":
		n := strings.Index("ft", text)
		if len(text) != 1 || n < 0 {
			return "", wrong
		}
		return fmt.Sprintf("bool %d", n), nil
	case "_":
		if text != "" {
			return "", wrong
		}
		return "null", nil
	}
	return fmt.Sprintf("%s %q", resp.Kind(kind[0]), text), nil
}
