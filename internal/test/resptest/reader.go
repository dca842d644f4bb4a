// Package resptest reads the replies of RESP servers in tests.
package resptest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Value is one reply, or an element of one.
type Value struct {
	Kind  byte    // the byte that it begins with on the wire; '_' for every null
	Text  string  // for all kinds but null and aggregates
	Elems []Value // of aggregates; keys and values of a map in turn
}

// Int returns the number of an integer, 0 for other kinds.
func (v Value) Int() int64 {
	n, _ := strconv.ParseInt(v.Text, 10, 64)
	return n
}

// Err returns an error that the server has answered.
func (v Value) Err() error {
	if v.Kind == '-' {
		return fmt.Errorf("%s", v.Text)
	}
	return nil
}

// A Reader reads replies of both protocol versions. It trusts the lengths that the
// server announces.
type Reader struct{ src *bufio.Reader }

// NewReader returns a Reader of the replies that src holds.
func NewReader(src io.Reader) *Reader { return &Reader{bufio.NewReader(src)} }

// Next returns the next reply. The error is io.EOF between two replies.
func (r *Reader) Next() (Value, error) {
	line, err := r.src.ReadString('\n')
	if err != nil && line != "" {
		return Value{}, io.ErrUnexpectedEOF
	}
	if err != nil {
		return Value{}, err
	}
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok || text == "" {
		return Value{}, fmt.Errorf("resptest: %q: must be a line that ends with CR LF", line)
	}
	v := Value{Kind: text[0], Text: text[1:]}
	if strings.IndexByte("+-:_#,(", v.Kind) >= 0 {
		return v, nil
	}
	n, err := strconv.Atoi(v.Text)
	switch {
	case err != nil || strings.IndexByte("$=*%~>", v.Kind) < 0:
		return Value{}, fmt.Errorf("resptest: %q: must be a reply", line)
	case n < 0:
		return Value{Kind: '_'}, nil
	case v.Kind == '$' || v.Kind == '=':
		v.Text, err = r.bulk(n)
		return v, err
	case v.Kind == '%':
		n *= 2
	}
	v.Text, v.Elems = "", make([]Value, n)
	for i := range v.Elems {
		if v.Elems[i], err = r.Next(); err != nil {
			return Value{}, unexpected(err)
		}
	}
	return v, nil
}

// bulk reads a string of n bytes and the line end after it.
func (r *Reader) bulk(n int) (string, error) {
	b := make([]byte, n+2)
	if _, err := io.ReadFull(r.src, b); err != nil {
		return "", unexpected(err)
	}
	text, ok := strings.CutSuffix(string(b), "\r\n")
	if !ok {
		return "", fmt.Errorf("resptest: %q: must end with CR LF", b)
	}
	return text, nil
}

// unexpected returns the error of a stream that ends within a reply.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
