package resp

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Kind is the type of a reply: the byte that it begins with on the wire.
type Kind byte

// The kinds of replies. Version 2 has the first five and Null.
const (
	KindSimple    Kind = '+' // Text
	KindError     Kind = '-' // Text, see Value.Err
	KindInt       Kind = ':' // Int
	KindBulk      Kind = '$' // Text
	KindArray     Kind = '*' // Elems
	KindNull      Kind = '_' // nothing; version 2's null bulk strings and null arrays too
	KindBool      Kind = '#' // Int, 1 or 0
	KindDouble    Kind = ',' // Value.Float
	KindBig       Kind = '(' // Text: a decimal integer of any length
	KindBulkError Kind = '!' // Text, see Value.Err
	KindVerbatim  Kind = '=' // Text, without its format; see Value.Format
	KindMap       Kind = '%' // Elems: keys and values in turn
	KindSet       Kind = '~' // Elems
	KindPush      Kind = '>' // Elems; not an answer to anything, see ReplyReader.Next
)

// String returns the name of k in words.
func (k Kind) String() string {
	switch k {
	case KindSimple:
		return "simple string"
	case KindError:
		return "error"
	case KindInt:
		return "integer"
	case KindBulk:
		return "bulk string"
	case KindArray:
		return "array"
	case KindNull:
		return "null"
	case KindBool:
		return "boolean"
	case KindDouble:
		return "double"
	case KindBig:
		return "big number"
	case KindBulkError:
		return "bulk error"
	case KindVerbatim:
		return "verbatim string"
	case KindMap:
		return "map"
	case KindSet:
		return "set"
	case KindPush:
		return "push"
	}
	return fmt.Sprintf("kind %q", byte(k))
}

// A Value is one reply, or an element of one. Its [Kind] says
// which fields it has; the other fields are zero. The zero Value is of no kind.
//
// Text and Elems of a Value from a [ReplyReader] are views, valid until the
// next reply is asked for; [Value.Clone] copies them.
type Value struct {
	Kind  Kind
	Int   int64 // of doubles, the bits of the number; of verbatim strings, the format
	Text  []byte
	Elems []Value
}

// IsNull reports whether v is a null.
func (v Value) IsNull() bool { return v.Kind == KindNull }

// Float returns the number of a double and of an integer, NaN for other kinds.
func (v Value) Float() float64 {
	switch v.Kind {
	case KindDouble:
		return math.Float64frombits(uint64(v.Int))
	case KindInt:
		return float64(v.Int)
	}
	return math.NaN()
}

// Format returns the three bytes that say what a verbatim string is, such as
// "txt"; "" for other kinds.
func (v Value) Format() string {
	if v.Kind != KindVerbatim {
		return ""
	}
	return string([]byte{byte(v.Int >> 16), byte(v.Int >> 8), byte(v.Int)})
}

// Err returns the [ReplyError] that v is, nil for other kinds. Elements are not
// looked at.
func (v Value) Err() error {
	if v.Kind == KindError || v.Kind == KindBulkError {
		return ReplyError(v.Text)
	}
	return nil
}

// Clone returns a copy of v that shares nothing with it.
func (v Value) Clone() Value {
	v.Text = slices.Clone(v.Text)
	v.Elems = slices.Clone(v.Elems)
	for i := range v.Elems {
		v.Elems[i] = v.Elems[i].Clone()
	}
	return v
}

// A ReplyError is an error that the server has answered: a code word, a blank,
// and a message. Its bytes are the server's; escape them before a terminal.
type ReplyError string

// Error returns the text as the server sent it.
func (e ReplyError) Error() string { return string(e) }

// Code returns the first word, such as ERR or NOAUTH.
func (e ReplyError) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}
