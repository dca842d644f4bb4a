package accesslog

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lately-go/lately/match"
)

// wanted reads the value that a step leads to.
func (r *jsonReader) wanted(i int, s *pathStep, depth int) int {
	var v jsonValue
	if from := i; s.inner != nil && i < len(r.line) && r.line[i] == '{' {
		i = r.nested(i, s.inner, depth)
		v = jsonValue{int32(from), int32(i), jsonObject, false}
	} else {
		v, i = r.value(i, depth)
	}
	for _, w := range s.wants {
		r.values[w] = v
	}
	return i
}

// appendText appends the text of v to dst, and returns it too; without escapes
// it is a view of the line. It is nil for a value that has no text.
func (r *jsonReader) appendText(dst []byte, v jsonValue) (text, all []byte) {
	raw := r.line[v.from:v.to:v.to]
	switch {
	case v.kind != jsonString && v.kind != jsonNumber && v.kind != jsonBool:
		return nil, dst
	case !v.escaped:
		return raw, dst
	}
	n := len(dst)
	dst = appendUnescaped(dst, raw)
	return dst[n:len(dst):len(dst)], dst
}

// appendUnescaped appends the text of a string that a jsonReader has found valid. A
// half of a surrogate pair without the other becomes the three bytes that UTF-8 would
// have for it (WTF-8), so that different strings are different keys; they are not
// valid UTF-8.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, n := unicodeEscape(raw[i+1:])
			if utf16.IsSurrogate(r) {
				dst = append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
			} else {
				dst = utf8.AppendRune(dst, r)
			}
			i += n
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// unicodeEscape returns the rune that XXXX or the pair XXXX\uXXXX at the start
// of s stands for, and its length there. It may be half of a pair.
func unicodeEscape(s []byte) (rune, int) {
	const one, pair = len("XXXX"), len(`XXXX\uXXXX`)
	r := hexValue(s[:one])
	if !utf16.IsSurrogate(r) {
		return r, one
	}
	if len(s) >= pair && s[one] == '\\' && s[one+1] == 'u' {
		if r := utf16.DecodeRune(r, hexValue(s[one+2:pair])); r != utf8.RuneError {
			return r, pair
		}
	}
	return r, one
}

// json reads a line of JSON.
func (p *Parser) json(line []byte, ev *match.Event) bool {
	if !p.reader.read(line) {
		return false
	}
	p.scratch = p.scratch[:0]
	for i := range p.spec.wants {
		w := &p.spec.wants[i]
		v := p.reader.values[i]
		if w.first && v.kind == jsonList {
			v = p.reader.firstOf(v)
		}
		switch {
		case w.list && v.kind == jsonList:
			p.values[i] = line[v.from:v.to]
			p.element = int(v.from) + 1
		case w.list || w.onlyString && v.kind != jsonString:
			p.values[i] = nil
		default:
			p.values[i], p.scratch = p.reader.appendText(p.scratch, v)
		}
	}
	return !p.otherKind() && p.fill(ev)
}

// firstOf returns the first element of a list, which is missing if that is empty.
func (r *jsonReader) firstOf(list jsonValue) (v jsonValue) {
	if i := r.blank(int(list.from) + 1); r.line[i] != ']' {
		v, _ = r.value(i, 1)
	}
	return v
}

// nextElement returns the next element of the list that has a text, nil if there is
// none left.
func (p *Parser) nextElement() []byte {
	r := &p.reader
	for {
		i := r.blank(p.element)
		switch r.line[i] {
		case ']':
			return nil
		case ',':
			i = r.blank(i + 1)
		}
		var v jsonValue
		v, p.element = r.value(i, 1)
		var text []byte
		text, p.scratch = r.appendText(p.scratch, v)
		if len(text) > 0 && v.kind != jsonBool {
			return text
		}
	}
}

// A pathNode stands for an object of a line in which values are wanted.
//
// A dot in a path may also be part of a key, so a path of n keys can be read in
// 1<<(n-1) ways: at each of its dots an object begins or the key continues. A node has a
// step for the first key of each of these ways.
type pathNode struct {
	steps []pathStep
	sizes uint64 // bit n: a step has a key of n bytes; bit 63: or of more
}

// A pathStep is a key that may be in an object, and what it leads to.
type pathStep struct {
	key   string
	wants []int     // whose paths end here
	inner *pathNode // the object that paths continue in; nil if there are none
}

// add adds a path from n on, to the want of that number.
func (n *pathNode) add(path []string, want int) {
	for keys := 1; keys <= len(path); keys++ {
		key := strings.Join(path[:keys], ".")
		step := n.step([]byte(key))
		if step == nil {
			n.steps = append(n.steps, pathStep{key: key})
			n.sizes |= 1 << min(len(key), 63)
			step = &n.steps[len(n.steps)-1]
		}
		if keys == len(path) {
			step.wants = append(step.wants, want)
			break
		}
		if step.inner == nil {
			step.inner = &pathNode{}
		}
		step.inner.add(path[keys:], want)
	}
}

// step returns the step of a key, nil if there is none.
func (n *pathNode) step(key []byte) *pathStep {
	if n.sizes&(1<<min(len(key), 63)) == 0 {
		return nil
	}
	for i := range n.steps {
		if s := &n.steps[i]; s.key == string(key) {
			return s
		}
	}
	return nil
}
