package accesslog

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/lately-go/lately/match"
)

// The table of messages. See its first lines for the form.
//
//go:embed messages.txt
var messagesText string

// A vocabulary is the messages of a program.
type vocabulary struct {
	name    []byte
	packets bool // they are of the kernel, about packets

	// The patterns by their first byte; those that begin with words and a blank behind each by the
	// byte behind these, and the others that begin with a value at 0.
	patterns    [256][]*pattern
	behindWords []map[byte][]*pattern // by the number of words, less one
}

// A messageTable is the messages of all programs.
type messageTable struct {
	programs map[string]*vocabulary // nil for none
	general  *vocabulary            // messages of any program, as those of PAM
	own      vocabulary             // messages in logs without the name of a program
}

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

// set sets the fields of ev if a pattern describes the text.
func (v *vocabulary) set(text []byte, ev *match.Event) bool {
	text = trimBlanks(text) // sudo writes a name to the right of 8 columns
	if len(text) == 0 {
		return false
	}
	if setFirst(v.patterns[text[0]], text, ev) || setFirst(v.patterns[0], text, ev) {
		return true
	}
	rest := text
	for _, patterns := range v.behindWords {
		blank := bytes.IndexByte(rest, ' ')
		if blank < 0 || blank+1 == len(rest) {
			return false
		}
		if rest = rest[blank+1:]; setFirst(patterns[rest[0]], text, ev) {
			return true
		}
	}
	return false
}

// setFirst sets the fields of ev if one of the patterns describes the text.
func setFirst(patterns []*pattern, text []byte, ev *match.Event) bool {
	for _, p := range patterns {
		if p.set(text, ev) {
			return true
		}
	}
	return false
}

// add adds a pattern.
func (v *vocabulary) add(p *pattern) {
	if p.first != "" {
		v.patterns[p.first[0]] = append(v.patterns[p.first[0]], p)
		return
	}
	for i, value := range p.values {
		if value.kind < userWord || len(value.until) == 0 || value.until[0] != ' ' {
			break
		}
		if len(value.until) > 1 {
			for len(v.behindWords) <= i {
				v.behindWords = append(v.behindWords, make(map[byte][]*pattern))
			}
			v.behindWords[i][value.until[1]] = append(v.behindWords[i][value.until[1]], p)
			return
		}
	}
	v.patterns[0] = append(v.patterns[0], p)
}

// setUnknown is set for a log without the names of programs, and for a program that is not in
// the table.
func (t *messageTable) setUnknown(h *head, program, text []byte, ev *match.Event) bool {
	switch {
	case t.own.set(h.text, ev), h.tagged && t.own.set(text, ev), setNested(&t.own, text, ev):
	case len(program) > 0 && t.general.set(text, ev):
		ev.SetNamed("program", program)
	default:
		return false
	}
	return true
}

// setNested sets the fields of ev to those of a text with a time of its own, as of a log that a
// program writes to syslog.
func setNested(v *vocabulary, text []byte, ev *match.Event) bool {
	if host := bytes.IndexByte(text, ' '); len(v.name) > 0 && bytes.HasPrefix(text[host+1:], v.name) { // nginx sends "HOST nginx: "
		text = bytes.TrimPrefix(text[host+1+len(v.name):], []byte(": "))
	}
	s, ok := readStamp(text)
	return ok && v.set(text[s.end:], ev)
}

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

// theMessages is the table, compiled when it is first used.
var theMessages = sync.OnceValue(func() *messageTable { return compileMessages(messagesText) })

// compileMessages compiles the text of a table; mistakes panic.
func compileMessages(text string) *messageTable {
	t := &messageTable{programs: make(map[string]*vocabulary), general: new(vocabulary)}
	t.programs["kernel"] = &vocabulary{name: []byte("kernel"), packets: true}
	var into []*vocabulary
	var program []byte
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		reason, form, isPattern := strings.Cut(strings.TrimPrefix(line, "\t"), "\t")
		switch {
		case line == "" || line[0] == '#':
		case line[0] != '\t':
			into, program = t.section(strings.Fields(line))
		case !isPattern:
			panic(fmt.Sprintf("accesslog: %q is not a reason and a pattern", line))
		default:
			for _, form := range alternatives(form) {
				p := compilePattern(form)
				p.reason = []byte(reason)
				for _, v := range into {
					own := *p
					if v == &t.own {
						own.program = program
					}
					v.add(&own)
				}
			}
		}
	}
	return t
}

// section returns the vocabularies of the programs of those names: "-" is a log without a
// name, and "*" any program.
func (t *messageTable) section(names []string) (into []*vocabulary, program []byte) {
	program = []byte(names[0])
	named := t.programs[names[0]]
	if named == nil {
		named = &vocabulary{name: program}
	}
	into = []*vocabulary{named}
	for _, name := range names {
		switch name {
		case "-":
			into = append(into, &t.own)
		case "*":
			into = []*vocabulary{t.general}
		default:
			t.programs[name] = named
		}
	}
	return into, program
}

// alternatives returns the texts that one with {a|b} stands for. Other braces are text.
func alternatives(form string) (all []string) {
	before, rest, found := strings.Cut(form, "{")
	if !found {
		return []string{form}
	}
	inside, after, closed := strings.Cut(rest, "}")
	if !closed || !strings.Contains(inside, "|") {
		for _, more := range alternatives(rest) {
			all = append(all, before+"{"+more)
		}
		return all
	}
	for choice := range strings.SplitSeq(inside, "|") {
		all = append(all, alternatives(before+choice+after)...)
	}
	return all
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
