package latelyhttp

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// A strict parser of what RFC 9651 calls a List, of Items only: it fails
// where the RFC says that parsing fails, and on inner lists.

type sfItem struct {
	value  any // string, sfToken, int64, bool, []byte
	params []sfParam
}

type sfParam struct {
	key   string
	value any
}

type sfToken string

func (i sfItem) param(key string) any {
	for _, p := range i.params {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

type sfParser struct{ rest string }

// parseSF parses the lines of one field.
func parseSF(lines []string) (items []sfItem, err error) {
	p := sfParser{strings.Trim(strings.Join(lines, ", "), " ")}
	defer func() {
		if failure := recover(); failure != nil {
			items, err = nil, fmt.Errorf("%v at %q", failure, p.rest)
		}
	}()
	for p.rest != "" {
		items = append(items, p.item())
		p.skip(" \t")
		if p.rest == "" {
			break
		}
		p.want(',')
		p.skip(" \t")
		if p.rest == "" {
			panic("trailing comma")
		}
	}
	return items, nil
}

func (p *sfParser) skip(set string) { p.rest = strings.TrimLeft(p.rest, set) }

func (p *sfParser) peek() byte {
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *sfParser) want(c byte) {
	if p.peek() != c {
		panic("want " + string(c))
	}
	p.rest = p.rest[1:]
}

func (p *sfParser) item() sfItem {
	i := sfItem{value: p.bare()}
	for p.peek() == ';' {
		p.rest = p.rest[1:]
		p.skip(" ")
		key, value := p.key(), any(true)
		if p.peek() == '=' {
			p.rest = p.rest[1:]
			value = p.bare()
		}
		i.params = append(i.params, sfParam{key, value})
	}
	return i
}

func (p *sfParser) key() string {
	if c := p.peek(); c != '*' && (c < 'a' || c > 'z') {
		panic("bad key")
	}
	return p.while(func(c byte) bool {
		return 'a' <= c && c <= 'z' || isDigit(c) || strings.IndexByte("_-.*", c) >= 0
	})
}

func (p *sfParser) while(ok func(byte) bool) string {
	n := 0
	for n < len(p.rest) && ok(p.rest[n]) {
		n++
	}
	text := p.rest[:n]
	p.rest = p.rest[n:]
	return text
}

func (p *sfParser) bare() any {
	switch c := p.peek(); {
	case c == '-' || isDigit(c):
		return p.integer()
	case c == '"':
		return p.text()
	case c == ':':
		p.rest = p.rest[1:]
		text, rest, ok := strings.Cut(p.rest, ":")
		b, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil {
			panic("bad byte sequence")
		}
		p.rest = rest
		return b
	case c == '?':
		p.rest = p.rest[1:]
		b := p.peek()
		if b != '0' && b != '1' {
			panic("bad boolean")
		}
		p.rest = p.rest[1:]
		return b == '1'
	case c == '*' || c|0x20 >= 'a' && c|0x20 <= 'z':
		return sfToken(p.while(func(c byte) bool { return c == ':' || c == '/' || isToken(string(rune(c))) }))
	}
	panic("no item")
}

func (p *sfParser) integer() int64 {
	sign := ""
	if p.peek() == '-' {
		sign, p.rest = "-", p.rest[1:]
	}
	digits := p.while(isDigit)
	if digits == "" || len(digits) > 15 || p.peek() == '.' {
		panic("no Integer")
	}
	n, err := strconv.ParseInt(sign+digits, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (p *sfParser) text() string {
	p.want('"')
	var b strings.Builder
	for {
		c := p.peek()
		if c < ' ' || c > '~' {
			panic("bad String")
		}
		p.rest = p.rest[1:]
		switch c {
		case '"':
			return b.String()
		case '\\':
			if c = p.peek(); c != '"' && c != '\\' {
				panic("bad escape")
			}
			p.rest = p.rest[1:]
		}
		b.WriteByte(c)
	}
}

// The parser that other tests lean on knows good from bad.
func TestSFParser(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // as %v, or "" for an error
	}{
		{`"a";q=1;w=60`, `[{a [{q 1} {w 60}]}]`},
		{`"a", "b" ,	"c"`, `[{a []} {b []} {c []}]`},
		{`"a\"\\";x`, `[{a"\ [{x true}]}]`},
		{`"a"; q=-5`, `[{a [{q -5}]}]`},
		{`tok/en:*;pk=:aGk=:;b=?0;s="x"`, `[{tok/en:* [{pk [104 105]} {b false} {s x}]}]`},
		{`1`, `[{1 []}]`},
		{``, `[]`},
		{`"a",`, ``},
		{`,"a"`, ``},
		{`"a" "b"`, ``},
		{`"a" ;q=1`, ``},
		{`"a";Q=1`, ``},
		{`"a";q=`, ``},
		{`"a";q =1`, ``},
		{`"a`, ``},
		{`"a\b"`, ``},
		{"\"é\"", ``},
		{"\"\x7f\"", ``},
		{`"a";q=1.5`, ``},
		{`"a";q=1000000000000000`, ``},
		{`:a:`, ``},
		{`?2`, ``},
		{`("a")`, ``},
		{`'a'`, ``},
	} {
		items, err := parseSF([]string{c.text})
		switch got := fmt.Sprint(items); {
		case c.want == "" && err == nil:
			t.Errorf("%s: taken as %s", c.text, got)
		case c.want != "" && (err != nil || got != c.want):
			t.Errorf("%s: %s, %v; want %s", c.text, got, err, c.want)
		}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
