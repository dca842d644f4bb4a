package accesslog

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth bounds the objects and lists that are open at a time; encoding/json
// has the same bound.
const maxDepth = 10_000

// A jsonKind is what a JSON value is.
type jsonKind uint8

const (
	jsonMissing jsonKind = iota // the line does not have the value
	jsonString
	jsonNumber
	jsonBool
	jsonNull
	jsonList
	jsonObject
)

// A jsonValue is where a value is in its line, a string without its quotes.
type jsonValue struct {
	from, to int32
	kind     jsonKind
	escaped  bool // a string with backslashes
}

// A jsonReader reads one line of JSON, checks all of it (grammar, escapes, UTF-8)
// and finds the values of a spec, in one pass. NaN and Infinity, which
// Python writes, are not JSON (RFC 8259, section 6). Methods that take an index
// return the index after what they have read, or -1 if the line is bad.
type jsonReader struct {
	line   []byte
	root   *pathNode
	values []jsonValue // of each want
	key    []byte      // scratch for keys with escapes
}

// blank returns the index of the first byte from i on that is not a blank.
func (r *jsonReader) blank(i int) int {
	for i < len(r.line) {
		if c := r.line[i]; c > ' ' || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return i
		}
		i++
	}
	return i
}

// read reads a line, which must be one object.
func (r *jsonReader) read(line []byte) bool {
	r.line = line
	clear(r.values)
	i := r.blank(0)
	if i == len(line) || line[i] != '{' {
		return false
	}
	i = r.nested(i, r.root, 0)
	return i >= 0 && r.blank(i) == len(line)
}

// value reads the value at i, within so many objects and lists, for no want.
func (r *jsonReader) value(i, depth int) (v jsonValue, end int) {
	if i >= len(r.line) {
		return v, -1
	}
	switch c := r.line[i]; c {
	case '"':
		to, escaped := r.text(i + 1)
		return jsonValue{int32(i + 1), int32(to), jsonString, escaped}, to + 1
	case '{', '[':
		v.kind = jsonObject
		if c == '[' {
			v.kind = jsonList
		}
		end = r.nested(i, nil, depth)
	default:
		v.kind, end = r.scalar(i)
	}
	v.from, v.to = int32(i), int32(end)
	return v, end
}

// nested reads the object or list at i, within so many others; n is its node, nil if no
// value in it is wanted.
func (r *jsonReader) nested(i int, n *pathNode, depth int) int {
	if depth == maxDepth {
		return -1
	}
	isObject, end := r.line[i] == '{', r.line[i]+2 // ']' is '['+2, '}' is '{'+2
	i = r.blank(i + 1)
	if i < len(r.line) && r.line[i] == end {
		return i + 1
	}
	for {
		var step *pathStep
		if isObject {
			var key []byte
			if key, i = r.member(i); i < 0 {
				return -1
			}
			if n != nil {
				step = n.step(key)
			}
		}
		if step != nil {
			i = r.wanted(i, step, depth+1)
		} else {
			_, i = r.value(i, depth+1)
		}
		if i < 0 {
			return -1
		}
		i = r.blank(i)
		switch {
		case i == len(r.line):
			return -1
		case r.line[i] == end:
			return i + 1
		case r.line[i] != ',':
			return -1
		}
		i = r.blank(i + 1)
	}
}

// member reads `"key" : ` at i. It returns the key as text, valid until the next one, and the index of the value.
func (r *jsonReader) member(i int) (key []byte, value int) {
	if i >= len(r.line) || r.line[i] != '"' {
		return nil, -1
	}
	to, escaped := r.text(i + 1)
	if to < 0 {
		return nil, -1
	}
	if key = r.line[i+1 : to]; escaped {
		r.key = appendUnescaped(r.key[:0], key)
		key = r.key
	}
	i = r.blank(to + 1)
	if i >= len(r.line) || r.line[i] != ':' {
		return key, -1
	}
	return key, r.blank(i + 1)
}

// Patterns for looking at eight bytes of a word at a time, after "Determine if
// a word has a byte less than n" in S. E. Anderson's "Bit Twiddling Hacks".
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// text reads a string from after its first quote and returns the index of its
// last one, or badText.
func (r *jsonReader) text(i int) (to int, escaped bool) {
	line, from, high := r.line, i, false
	for {
		// Skip plain bytes: the first byte marked is a quote, a backslash, a
		// control character or not ASCII. Later marks may be wrong.
		for i+8 <= len(line) {
			w := binary.LittleEndian.Uint64(line[i:])
			quote, slash := w^'"'*eachByte, w^'\\'*eachByte
			marks := ((quote-eachByte)&^quote | (slash-eachByte)&^slash | (w-' '*eachByte)&^w | w) & highBits
			if marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		if i >= len(line) {
			return badText, false
		}
		switch c := line[i]; {
		case c == '"':
			if high && !utf8.Valid(line[from:i]) {
				return badText, false
			}
			return i, escaped
		case c == '\\':
			escaped = true
			if i = escapeEnd(line, i+1); i < 0 {
				return badText, false
			}
		case c < ' ':
			return badText, false
		case c < utf8.RuneSelf:
			i++
		default:
			high = true
			for i++; i < len(line) && line[i] >= utf8.RuneSelf; i++ {
			}
		}
	}
}

// badText is what text returns for a bad string. The index after it is -1.
const badText = -2

// escapeEnd returns the index after the escape whose backslash is before i.
func escapeEnd(line []byte, i int) int {
	if i >= len(line) {
		return -1
	}
	switch line[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 <= len(line) && hexValue(line[i+1:i+5]) >= 0 {
			return i + 5
		}
	}
	return -1
}

// hexValue returns the value of hexadecimal digits, -1 if there is another byte.
func hexValue(s []byte) rune {
	var n rune
	for _, c := range s {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		n = n<<4 | rune(c)
	}
	return n
}

// scalar reads a number or a word.
func (r *jsonReader) scalar(i int) (jsonKind, int) {
	switch r.line[i] {
	case 't':
		return jsonBool, r.word(i, "true")
	case 'f':
		return jsonBool, r.word(i, "false")
	case 'n':
		return jsonNull, r.word(i, "null")
	}
	n := numberLen(r.line[i:])
	if n < 0 {
		return jsonNumber, -1
	}
	return jsonNumber, i + n
}

func (r *jsonReader) word(i int, word string) int {
	end := i + len(word)
	if end > len(r.line) || string(r.line[i:end]) != word {
		return -1
	}
	return end
}

// numberLen returns the length of the number at the start of s, -1 if there is none.
func numberLen(s []byte) int {
	i := 0
	if s[0] == '-' {
		i++
	}
	from := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == from || s[from] == '0' && i > from+1 {
		return -1
	}
	rest := s[i:]
	if len(rest) > 0 && rest[0] == '.' {
		digits, after := leadingDigits(rest[1:])
		if len(digits) == 0 {
			return -1
		}
		rest = after
	}
	if len(rest) > 0 && rest[0]|' ' == 'e' {
		_, after, ok := leadingExponent(rest)
		if !ok {
			return -1
		}
		rest = after
	}
	return len(s) - len(rest)
}
