package accesslog

import (
	"bytes"
	"strings"

	"github.com/lately-go/lately/match"
)

// A pattern is a text with values.
type pattern struct {
	reason  []byte
	program []byte
	first   string // text before the first value
	values  []patternValue
	open    bool // it ends with any text
}

// A patternValue is a value and the text behind it.
type patternValue struct {
	kind  valueKind
	until []byte // empty at the end
	once  []byte // the end of until, from the last comma before a word on
}

// A valueKind is what a value of a pattern may be.
type valueKind uint8

const (
	// anyText is followed by a text whose end, from the last comma before a word on, is in the line
	// once only: what clients choose may be on both sides of it.
	anyText valueKind = iota
	// messageText is anyText whose end is known by the words that follow it, too: what clients choose may have
	// it, but not these words.
	messageText
	// accountText is a name of Basic authentication, which ends at a colon: what a client chooses is not before the first
	// place of the text after it.
	accountText
	// programText ends at the first place of the text after it, since the program writes it.
	programText
	// userText is a name that a client chose: what is behind it is read from the end of the
	// line, which the program writes. If that is any text, the name ends at the last place of
	// the text after it.
	userText
	// userWord is a name without blanks.
	userWord
	oneWord
	clientWord
	// contextText is a word, and after a comma any text.
	contextText
)

var valueKinds = map[string]valueKind{"any": anyText, "message": messageText, "context": contextText, "account": accountText, "text": programText, "user": userText, "name": userWord, "word": oneWord, "client": clientWord}

// maxWord bounds a value without blanks.
const maxWord = 300

// set sets the fields of ev if p describes the text: in one pass, without going back.
func (p *pattern) set(text []byte, ev *match.Event) bool {
	n := len(p.first)
	if len(text) < n || n > 0 && text[n-1] != p.first[n-1] || string(text[:n]) != p.first { // the last byte differs most often
		return false
	}
	var found found
	rest := text[len(p.first):]
	for i := range p.values {
		v := &p.values[i]
		if v.kind == userText && !p.open {
			if !p.setFromEnd(rest, i, &found) {
				return false
			}
			rest = nil
			break
		}
		end := v.end(rest)
		if v.kind == messageText {
			end = p.messageEnd(rest, i)
		}
		if end < 0 {
			return false
		}
		found.take(v.kind, rest[:end])
		rest = rest[end+len(v.until):]
	}
	if len(rest) > 0 || !found.checkClient() {
		return false
	}
	ev.Set(match.Client, found.client)
	if found.user != nil {
		ev.Set(match.User, found.user)
	}
	ev.SetNamed("reason", p.reason)
	if p.program != nil {
		ev.SetNamed("program", p.program)
	}
	return true
}

// messageEnd returns the index at which the message, value i, ends that rest begins with. There must be one
// place only where the words that follow it stand: of two, a client may have chosen either.
func (p *pattern) messageEnd(rest []byte, i int) int {
	v, only := &p.values[i], -1
	for from := 0; ; {
		at := bytes.Index(rest[from:], v.once)
		if at < 0 {
			break
		}
		from += at + len(v.once)
		if !p.wordsFollow(rest[from:], i+1) {
			continue
		}
		if only >= 0 {
			return -1
		}
		only = from
	}
	if only < 0 || !bytes.HasSuffix(rest[:only], v.until) {
		return -1
	}
	return only - len(v.until)
}

// wordsFollow reports whether a text begins with the values from i on.
func (p *pattern) wordsFollow(text []byte, i int) bool {
	for _, v := range p.values[i:] {
		end := v.end(text)
		if end < 0 {
			return false
		}
		text = text[end+len(v.until):]
	}
	return len(text) == 0
}

// setFromEnd reads the values from the one at i on, the name of a user, from the end of a text.
func (p *pattern) setFromEnd(rest []byte, i int, found *found) bool {
	last := len(p.values) - 1
	rest, ok := bytes.CutSuffix(rest, p.values[last].until)
	for ; ok && last > i; last-- {
		before := p.values[last-1].until
		at := wordStart(rest, before)
		if at < 0 {
			return false
		}
		found.take(p.values[last].kind, rest[at:])
		rest = rest[:at-len(before)]
	}
	found.take(userText, rest)
	return ok
}

// wordStart returns the index of the word that a text ends with, -1 if none is behind the text
// before.
func wordStart(rest, before []byte) int {
	if before[len(before)-1] == ' ' { // as most: a word begins behind the last blank
		at := bytes.LastIndexByte(rest, ' ') + 1
		if at < len(before) || len(rest)-at >= maxWord || !bytes.Equal(rest[at-len(before):at], before) {
			return -1
		}
		return at
	}
	from := max(0, len(rest)-maxWord)
	at := bytes.LastIndex(rest[from:], before)
	if at < 0 || bytes.IndexByte(rest[from+at+len(before):], ' ') >= 0 {
		return -1
	}
	return from + at + len(before)
}

// found is the values of a text.
type found struct{ client, user []byte }

// take notes a value.
func (f *found) take(kind valueKind, value []byte) {
	switch kind {
	case userText, userWord:
		f.user = value
	case clientWord:
		f.client = value
	}
}

// checkClient cuts the port off the client, and reports whether it is an address or the name of a
// host. That takes longer than the rest of a pattern, so it comes last.
func (f *found) checkClient() bool {
	if f.client == nil {
		return true
	}
	f.client = peerAddress(f.client)
	return isAddress(f.client) || isHostName(f.client)
}

// end returns the index at which a value ends that rest begins with, -1 if there is none.
func (v *patternValue) end(rest []byte) int {
	switch {
	case v.kind == programText:
		return bytes.Index(rest, v.until)
	case v.kind == accountText:
		at := bytes.Index(rest, v.until)
		if bytes.IndexByte(rest[:max(at, 0)], ':') >= 0 {
			return -1
		}
		return at
	case v.kind == anyText || v.kind == userText:
		if len(v.until) == 0 {
			return len(rest)
		}
		last := bytes.LastIndex(rest, v.until)
		if v.kind == anyText && last >= 0 && bytes.Count(rest, v.once) > 1 {
			return -1
		}
		return last
	}
	end := bytes.IndexByte(rest, ' ') // no word goes on behind it
	if end < 0 {
		end = len(rest)
	}
	if v.kind == contextText {
		if end < len(rest) && (end == 0 || rest[end-1] != ',') {
			return -1
		}
		return len(rest)
	}
	switch {
	case end >= maxWord, len(v.until) == 0 && end < len(rest):
		return -1
	case len(v.until) == 0:
		return end
	case v.until[0] == ' ':
		if len(rest)-end < len(v.until) || !bytes.Equal(rest[end:end+len(v.until)], v.until) {
			return -1
		}
		return end
	}
	return bytes.Index(rest[:min(len(rest), end+len(v.until)-1)], v.until)
}

// compilePattern compiles a text with values, $name.
func compilePattern(form string) *pattern {
	first, rest, found := strings.Cut(form, "$")
	p := &pattern{first: first}
	has := make(map[valueKind]bool)
	for found {
		n := len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))
		kind, ok := valueKinds[rest[:n]]
		var until string
		until, rest, found = strings.Cut(rest[n:], "$")
		if !ok || until == "" && found {
			panic("accesslog: unknown value, or no text between two, in " + form)
		}
		has[kind] = true
		once := until[max(strings.LastIndex(strings.TrimRight(until, ", "), ", "), 0):]
		if strings.HasSuffix(once, "=[") { // of an address without a name before it, whose other form has no bracket here
			once = once[:len(once)-1]
		}
		p.values = append(p.values, patternValue{kind, []byte(until), []byte(once)})
	}
	if !has[clientWord] && !has[userText] && !has[userWord] {
		panic("accesslog: no $client and no user in " + form)
	}
	last := p.values[len(p.values)-1]
	p.open = last.kind == anyText && len(last.until) == 0
	return p
}
