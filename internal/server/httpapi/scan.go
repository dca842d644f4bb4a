package httpapi

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/match"
)

// A scan reads the common form of a body, in one pass and without copying: objects whose
// members are strings without escapes, whole numbers and lists of strings. It rejects any
// other form, valid or not, which is then left to encoding/json. What it accepts,
// encoding/json reads as the same; a fuzz test checks that. A check by encoding/json takes
// 26 % more instructions, all of HTTP included (benchmarks/results/http-json.md).
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

// view is text as a string that is valid as long as the body.
func (s *scan) view() (string, bool) {
	b, ok := s.text()
	return keys.View(b), ok
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

// object reads an object, whose members read reads, and reports whether it could.
func (s *scan) object(read func(name []byte) bool) bool {
	if !s.is('{') {
		return false
	}
	for first := true; !s.is('}'); first = false {
		if !first && !s.is(',') {
			return false
		}
		name, ok := s.text()
		if !ok || !s.is(':') || !read(name) {
			return false
		}
	}
	return true
}

// maxFields is how many fields an event may have.
const maxFields = 64

// many reads the body as {name:[...]}, each entry with item, and returns how many
// entries there are, up to maxBatch. The scan is then before the first of them, for next.
func (s *scan) many(name string, item func() bool) (n int, ok bool) {
	from, lists := 0, 0
	ok = s.object(func(member []byte) bool {
		if lists++; lists > 1 || string(member) != name || !s.is('[') {
			return false
		}
		for from = s.i; !s.is(']'); n++ {
			if n > 0 && !s.is(',') || n == maxBatch || !item() {
				return false
			}
		}
		return true
	})
	ok = ok && lists == 1 && s.atEnd()
	s.i = from
	return n, ok
}

// next moves to the next entry that many has found.
func (s *scan) next() { s.is(',') }

// amount reads a number from 1 to most. The decoder has the error for others.
func (s *scan) amount(most uint64) (n uint64, ok bool) {
	n, ok = s.number()
	return n, ok && 0 < n && n <= most
}

// hold reads for how many milliseconds an id is valid.
func (s *scan) hold() (time.Duration, bool) {
	n, ok := s.amount(maxHold)
	return time.Duration(n) * time.Millisecond, ok
}

// item reads {"event":{...},"cost":n} or {"rule":"r","key":"k","cost":n,"limit":n}, each perhaps with "for_ms":n, an event with
// "outcome_ms":n or "id":"x", where the key may be a list of strings. The fields, which are set in ev, rule and key, which is appended
// to dst, are views of the body.
func (s *scan) item(ev *match.Event, dst []string) (it item, ok bool) {
	ok = s.object(func(name []byte) (ok bool) {
		switch {
		case string(name) == "event" && it.ev == nil:
			it.ev, ok = ev, s.event(ev)
		case string(name) == "rule" && it.rule == "":
			it.rule, ok = s.view()
		case string(name) == "key" && it.key == nil:
			it.key, ok = s.key(dst)
		case string(name) == "cost" && it.cost == 0:
			it.cost, ok = s.amount(engine.MaxCost)
		case string(name) == "for_ms" && it.Hold == 0:
			it.Hold, ok = s.hold()
		case string(name) == "outcome_ms" && it.Report == 0:
			it.Report, ok = s.hold()
		case string(name) == "id" && !it.ByID:
			it.ID, ok = s.view()
			it.ByID = ok
		case string(name) == "limit" && it.Limit == 0:
			it.Limit, ok = s.amount(engine.MaxCost)
		}
		return ok
	})
	it.cost = max(it.cost, 1)
	take := it.rule != ""
	return it, ok && take == (it.ev == nil) && take == (it.key != nil) && (take || it.Limit == 0)
}

// event reads an object of strings into ev.
func (s *scan) event(ev *match.Event) bool {
	n := 0
	return s.object(func(name []byte) bool {
		value, ok := s.text()
		if n++; !ok || n > maxFields || len(name) == 0 {
			return false
		}
		ev.SetNamed(keys.View(name), value)
		return true
	})
}

// key appends one string, or a list of at least one, to dst.
func (s *scan) key(dst []string) ([]string, bool) {
	list := s.is('[')
	for n := 0; n < keyvalue.MaxFields; n++ {
		text, ok := s.text()
		if !ok {
			return dst, false
		}
		if dst = append(dst, keys.View(text)); !list || s.is(']') {
			return dst, true
		}
		if !s.is(',') {
			return dst, false
		}
	}
	return dst, false
}

// appendText appends s as a JSON string.
func appendText(dst []byte, s string) []byte {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		b, _ := json.Marshal(s) // a string has no error
		return append(dst, b...)
	}
	return append(append(append(dst, '"'), s...), '"')
}
