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
