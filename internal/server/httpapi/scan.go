package httpapi

import (
	"unicode/utf8"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/match"
)

// A scan reads the usual form of a body, in one pass and without a copy: objects
// whose members are texts without escapes, whole numbers and lists of texts. What it
// does not take, it takes no stand on: encoding/json then says what it is, or what
// is wrong with it. What it takes is what encoding/json takes it for, which a fuzz
// test holds it to.
//
// REQUIRES: the bytes are UTF-8.
type scan struct {
	b []byte
	i int
}

// skip skips white space.
func (s *scan) skip() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return
		}
	}
}

// is skips white space and c, and reports whether c was there.
func (s *scan) is(c byte) bool {
	s.skip()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// atEnd reports whether nothing but white space is left.
func (s *scan) atEnd() bool {
	s.skip()
	return s.i == len(s.b)
}

// text returns the text that is next, if it has no escapes.
func (s *scan) text() ([]byte, bool) {
	if !s.is('"') {
		return nil, false
	}
	for from := s.i; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[from : s.i-1], true
		case c == '\\' || c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// number returns the number that is next, if it is a whole one of at most 15 digits.
func (s *scan) number() (n uint64, ok bool) {
	s.skip()
	from := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		n = n*10 + uint64(s.b[s.i]-'0')
		s.i++
	}
	digits := s.i - from
	if digits == 0 || digits > 15 || digits > 1 && s.b[from] == '0' {
		return 0, false
	}
	if s.i < len(s.b) {
		switch s.b[s.i] {
		case '.', 'e', 'E':
			return 0, false
		}
	}
	return n, true
}

// member returns the name of the next member of an object, or false at its end or
// where there is none. first says that it would be the first.
func (s *scan) member(first bool) (name []byte, ok bool) {
	if !first && !s.is(',') {
		return nil, false
	}
	name, ok = s.text()
	return name, ok && s.is(':')
}

// maxFields is how many fields an event may have.
const maxFields = 64

// many reads the body as {name:[...]}, each entry with item, and returns how many
// entries there are, up to maxBatch. The scan is then before the first of them, for next.
func (s *scan) many(name string, item func() bool) (n int, ok bool) {
	if !s.is('{') {
		return 0, false
	}
	if got, ok := s.member(true); !ok || string(got) != name || !s.is('[') {
		return 0, false
	}
	from := s.i
	for !s.is(']') {
		if n > 0 && !s.is(',') || n == maxBatch || !item() {
			return 0, false
		}
		n++
	}
	ok = s.is('}') && s.atEnd()
	s.i = from
	return n, ok
}

// next goes to the next entry that many has found.
func (s *scan) next() { s.is(',') }

// check reads {"event":{...},"cost":n} into ev, whose fields are views of the body.
func (s *scan) check(ev *match.Event) (cost uint64, ok bool) {
	cost = 1
	if !s.is('{') {
		return 0, false
	}
	var event, costs bool
	for first := true; !s.is('}'); first = false {
		name, ok := s.member(first)
		if !ok {
			return 0, false
		}
		switch {
		case string(name) == "event" && !event:
			event = true
			ok = s.event(ev)
		case string(name) == "cost" && !costs:
			costs = true
			cost, ok = s.number()
		default:
			ok = false
		}
		if !ok {
			return 0, false
		}
	}
	return cost, event
}

// event reads an object of texts into ev.
func (s *scan) event(ev *match.Event) bool {
	if !s.is('{') {
		return false
	}
	for n := 0; !s.is('}'); n++ {
		name, ok := s.member(n == 0)
		if !ok || n == maxFields || len(name) == 0 {
			return false
		}
		value, ok := s.text()
		if !ok {
			return false
		}
		ev.SetNamed(view(name), value)
	}
	return true
}

// take reads {"rule":"r","key":"k","cost":n}, with one text for the key or a list of
// them. rule and key are views of the body or of c.key.
func (s *scan) take(c *call) (rule, key string, cost uint64, ok bool) {
	cost = 1
	if !s.is('{') {
		return "", "", 0, false
	}
	var rules, keys, costs bool
	for first := true; !s.is('}'); first = false {
		name, ok := s.member(first)
		if !ok {
			return "", "", 0, false
		}
		var text []byte
		switch {
		case string(name) == "rule" && !rules:
			rules = true
			text, ok = s.text()
			rule = view(text)
		case string(name) == "key" && !keys:
			keys = true
			text, ok = s.key(c)
			key = view(text)
		case string(name) == "cost" && !costs:
			costs = true
			cost, ok = s.number()
		default:
			ok = false
		}
		if !ok {
			return "", "", 0, false
		}
	}
	return rule, key, cost, rules && keys
}

// key reads one text, or a list of texts that it joins in c.key. No text has the
// separator in it: in JSON a tab is written as an escape.
func (s *scan) key(c *call) ([]byte, bool) {
	if !s.is('[') {
		text, ok := s.text()
		return text, ok && len(text) <= engine.MaxKey
	}
	c.key = c.key[:0]
	for n := 0; ; n++ {
		text, ok := s.text()
		if !ok || n == match.MaxKeyFields || len(text) > engine.MaxKey {
			return nil, false
		}
		if n > 0 {
			c.key = append(c.key, engine.KeySeparator)
		}
		c.key = append(c.key, text...)
		if s.is(']') {
			return c.key, true
		}
		if !s.is(',') {
			return nil, false
		}
	}
}

// appendText appends s as a JSON string.
func appendText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r) // U+FFFD for what is none
			i += n
		}
	}
	return append(dst, '"')
}
