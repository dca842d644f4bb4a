package resp

import (
	"math"
	"strconv"
	"strings"
)

// A Value is a reply of a server, or an element of one. See [ReplyReader.Next].
type Value struct {
	// Kind is the byte with which the value begins on the wire, and '_' for every null.
	Kind byte

	// N is the number of an integer, 1 for true, and of an aggregate the number of its
	// elements: for a map, of keys and values together.
	N int64

	// Text is the text of strings, errors, doubles and big numbers.
	Text []byte
}

// The kinds of values.
const (
	KindSimple   = '+'
	KindError    = '-'
	KindInt      = ':'
	KindBulk     = '$'
	KindArray    = '*'
	KindNull     = '_'
	KindBool     = '#'
	KindDouble   = ','
	KindBig      = '('
	KindVerbatim = '=' // its Text begins with the format: "txt:"
	KindMap      = '%'
	KindSet      = '~'
	KindPush     = '>'

	kinds = "+-:$*_#,(=%~>"
)

// parse parses the line with which a value begins, without its end, and reports whether it is
// well-formed. N is the length of a string, and Text the text of the line.
func (v *Value) parse(line []byte) (ok bool) {
	text := line[1:]
	switch v.Kind = line[0]; v.Kind {
	case KindInt:
		v.N, ok = ParseInt(text)
		return ok
	case KindSimple, KindError:
		v.Text = text
		return true
	case KindDouble:
		v.Text = text
		return isDouble(text)
	case KindBig:
		v.Text = text
		return isBig(text)
	case KindNull:
		return len(text) == 0
	case KindBool:
		if string(text) == "t" {
			v.N = 1
		}
		return v.N == 1 || string(text) == "f"
	}
	return v.counts(text)
}

// counts sets N to the length of a string, or to the number of elements of an aggregate.
func (v *Value) counts(text []byte) (ok bool) {
	v.N, ok = ParseInt(text)
	switch {
	case v.N == -1 && (v.Kind == KindBulk || v.Kind == KindArray): // the nulls of version 2
		v.Kind, v.N = KindNull, 0
	case v.N < 0:
		return false
	case v.Kind == KindMap:
		v.N = 2 * min(v.N, math.MaxInt64/2)
	}
	return ok
}

// isDouble reports whether text is a number as servers write it.
func isDouble(text []byte) bool {
	switch string(text) {
	case "inf", "-inf", "nan", "-nan":
		return true
	}
	for _, c := range text {
		if strings.IndexByte("0123456789+-.eE", c) < 0 {
			return false
		}
	}
	_, err := strconv.ParseFloat(string(text), 64)
	return err == nil
}

// isBig reports whether text is a big number.
func isBig(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}
