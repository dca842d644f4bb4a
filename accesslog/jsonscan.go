package accesslog

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth bounds the objects and lists that are open at a time; encoding/json
// has the same bound.
const maxDepth = 10_000

// maxIntDigits bounds the digits of a number without point and exponent, as
// the JSON reader of Python does.
const maxIntDigits = 4300

// A jsonKind is what a JSON value is.
type jsonKind uint8

const (
	jsonMissing jsonKind = iota
	jsonString
	jsonNumber
	jsonBool
	jsonNull
	jsonList
	jsonObject
)

// A jsonValue is where a value is in its line. Of a string, from and to leave
// out the quotes.
type jsonValue struct {
	from, to int32
	kind     jsonKind
	escaped  bool // a string with backslashes
}

// A jsonScan walks over one line of JSON and checks all of it: grammar,
// escapes, UTF-8. NaN and Infinity, which Python writes, are not JSON (RFC 8259,
// section 6). Methods that take an index return the index behind what they
// have read, or -1 when the line is bad.
type jsonScan struct {
	line []byte
	open [maxDepth/64 + 1]uint64 // bit d: what is open at depth d is an object
}

// blank returns the index of the first byte at i or behind that is no blank.
func (s *jsonScan) blank(i int) int {
	for i < len(s.line) {
		if c := s.line[i]; c > ' ' || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return i
		}
		i++
	}
	return i
}

// value reads the value at i, where depth objects and lists are open.
func (s *jsonScan) value(i, depth int) (v jsonValue, end int) {
	if i >= len(s.line) {
		return v, -1
	}
	switch c := s.line[i]; c {
	case '"':
		to, escaped := s.text(i + 1)
		return jsonValue{int32(i + 1), int32(to), jsonString, escaped}, to + 1
	case '{', '[':
		v.kind = jsonObject
		if c == '[' {
			v.kind = jsonList
		}
		end = s.nested(i, depth)
	default:
		v.kind, end = s.scalar(i)
	}
	v.from, v.to = int32(i), int32(end)
	return v, end
}

// Patterns for looking at eight bytes of a word at a time, after "Determine if
// a word has a byte less than n" in S. E. Anderson's "Bit Twiddling Hacks".
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// text reads a string from behind its first quote and returns the index of its
// last one, or badText.
func (s *jsonScan) text(i int) (to int, escaped bool) {
	line, from, high := s.line, i, false
	for {
		// Skip what needs no look: the first byte marked is a quote, a
		// backslash, a control or not ASCII. Marks behind it may be wrong.
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

// badText is what text returns for a bad string. The index behind it is -1.
const badText = -2

// escapeEnd returns the index behind the escape whose backslash is before i.
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

// hexValue returns the value of hexadecimal digits, -1 when there is another
// byte.
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
func (s *jsonScan) scalar(i int) (jsonKind, int) {
	rest := s.line[i:]
	if n := shortIntLen(rest); n > 0 {
		return jsonNumber, i + n
	}
	switch rest[0] {
	case 't':
		return jsonBool, s.word(i, "true")
	case 'f':
		return jsonBool, s.word(i, "false")
	case 'n':
		return jsonNull, s.word(i, "null")
	}
	n := numberLen(rest)
	if n < 0 {
		return jsonNumber, -1
	}
	return jsonNumber, i + n
}

func (s *jsonScan) word(i int, word string) int {
	end := i + len(word)
	if end > len(s.line) || string(s.line[i:end]) != word {
		return -1
	}
	return end
}

// shortIntLen returns the length of the number at the start of s when it is a
// plain one, as most are: a few digits, the first not 0, and then a byte that
// cannot go on with it. It is 0 for all others.
func shortIntLen(s []byte) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n == 0 || n > 18 || n == len(s) || s[0] == '0' || s[n] == '.' || s[n]|' ' == 'e' {
		return 0
	}
	return n
}

// numberLen returns the length of the number at the start of s, -1 when there
// is none.
func numberLen(s []byte) int {
	i := 0
	if s[0] == '-' {
		i++
	}
	whole, rest := leadingDigits(s[i:])
	if len(whole) == 0 || whole[0] == '0' && len(whole) > 1 {
		return -1
	}
	isInt := true
	if len(rest) > 0 && rest[0] == '.' {
		digits, behind := leadingDigits(rest[1:])
		if len(digits) == 0 {
			return -1
		}
		isInt, rest = false, behind
	}
	if len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E') {
		_, behind, ok := leadingExponent(rest)
		if !ok {
			return -1
		}
		isInt, rest = false, behind
	}
	if isInt && len(whole) > maxIntDigits {
		return -1
	}
	return len(s) - len(rest)
}

// key reads `"key" : ` at i and returns the index of the value.
func (s *jsonScan) key(i int) (key jsonValue, value int) {
	if i >= len(s.line) || s.line[i] != '"' {
		return key, -1
	}
	to, escaped := s.text(i + 1)
	if to < 0 {
		return key, -1
	}
	key = jsonValue{int32(i + 1), int32(to), jsonString, escaped}
	i = s.blank(to + 1)
	if i >= len(s.line) || s.line[i] != ':' {
		return key, -1
	}
	return key, s.blank(i + 1)
}

// nested reads the object or list at i. It is a loop with a bit per level, not
// a recursion, so that a line of brackets costs no stack.
func (s *jsonScan) nested(i, depth int) int {
	outside := depth
	for {
		if i >= len(s.line) {
			return -1
		}
		c := s.line[i]
		if c == '{' || c == '[' {
			depth++
			if depth > maxDepth {
				return -1
			}
			s.setOpen(depth, c == '{')
			i = s.blank(i + 1)
			if i < len(s.line) && s.line[i] != c+2 { // '}' is '{'+2, ']' is '['+2
				if c == '{' {
					_, i = s.key(i)
				}
				if i < 0 {
					return -1
				}
				continue
			}
		} else if _, i = s.value(i, depth); i < 0 {
			return -1
		}
		if i, depth = s.close(i, depth, outside); i < 0 || depth == outside {
			return i
		}
	}
}

// close reads what follows a value inside brackets: closing brackets down to
// the depth outside, or a comma and what leads to the next value.
func (s *jsonScan) close(i, depth, outside int) (int, int) {
	for depth > outside {
		i = s.blank(i)
		if i >= len(s.line) {
			return -1, depth
		}
		isObject := s.isOpen(depth)
		switch c := s.line[i]; {
		case c == ',':
			i = s.blank(i + 1)
			if isObject {
				_, i = s.key(i)
			}
			return i, depth
		case c == '}' && isObject, c == ']' && !isObject:
			depth--
			i++
		default:
			return -1, depth
		}
	}
	return i, depth
}

func (s *jsonScan) setOpen(depth int, object bool) {
	bit := uint64(1) << (depth % 64)
	s.open[depth/64] &^= bit
	if object {
		s.open[depth/64] |= bit
	}
}

func (s *jsonScan) isOpen(depth int) bool { return s.open[depth/64]>>(depth%64)&1 != 0 }
