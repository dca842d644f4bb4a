package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/lately-go/lately/match"
)

// A template is a line of text with variables in it, such as
//
//	$remote_addr [$time_local] "$request" $status
//
// as the compilers of nginx's and Apache's format strings make it. A line is read in one
// pass: each value ends where the text after its variable begins for the first time.
// Between quotes, a backslash takes its meaning from the next byte.
type template struct {
	steps []step
	must  int    // how many steps a line must have
	tail  string // the text after the last step
	open  bool   // after these steps, a line may end or have a space and anything
}

// A step is a variable of a template and the text before it.
type step struct {
	name   string // of the variable
	before string
	after  string // the text at which the value ends; "" is the end of the line
	want   int    // index in spec.wants, -1 for none
	quoted bool
	number bool // digits, or a dash
	time   bool // as in access logs

	// The value may hold what ends it, as a user name that a client chooses. It ends
	// where a time and the text after that follow, which a value cannot hold if there
	// is a quote in this text: servers escape quotes.
	beforeTime string
}

// A piece is a part of a line, as a format string has it: a text, or a variable.
type piece struct {
	text   string
	label  string // of a variable
	column int    // in the format string, from 1
	variable
}

// A variable is what the value of a variable of a format string is.
type variable struct {
	want
	priority int  // of several variables for a field the one of the highest is used
	number   bool // the value has digits only, or is a dash
	unit     unit // of a time
}

// newTemplate returns the spec of a line that has the pieces in order.
func newTemplate(pieces []piece) (*spec, error) {
	s := &spec{template: &template{}, wants: make([]want, 1)}
	used := usedPieces(pieces)
	before := ""
	for i, p := range pieces {
		if p.label == "" {
			before += p.text
			continue
		}
		if before == "" && len(s.template.steps) > 0 {
			return nil, fmt.Errorf("column %d: %s: must have a text before it, because the end of the value before it is not known", p.column, p.label)
		}
		st := step{name: p.label, before: before, want: -1, number: p.number, time: p.unit == unitCLF && p.name == "time"}
		if used[i] {
			st.want = s.addVariable(p.variable)
		}
		s.template.steps = append(s.template.steps, st)
		before = ""
	}
	s.template.tail, s.template.must = before, len(s.template.steps)
	s.template.link()
	if s.wants[0].name == "" {
		return nil, errNoTime
	}
	return s, nil
}

var errNoTime = errors.New("there is no time")

// usedPieces reports which pieces give a field: of several variables for one, the first
// of the highest priority.
func usedPieces(pieces []piece) []bool {
	used, byField := make([]bool, len(pieces)), make(map[string]int)
	for i, p := range pieces {
		first, ok := byField[p.name]
		if p.name == "" || ok && pieces[first].priority >= p.priority {
			continue
		}
		if ok {
			used[first] = false
		}
		used[i], byField[p.name] = true, i
	}
	return used
}

// addVariable adds the want of a variable and returns its index.
func (s *spec) addVariable(v variable) int {
	switch v.name {
	case "time":
		s.wants[0], s.unit = v.want, v.unit
		return 0
	case "object":
		s.object = len(s.wants)
	}
	s.wants = append(s.wants, v.want)
	return len(s.wants) - 1
}

// link finds out where the value of each step ends.
func (t *template) link() {
	for i := range t.steps {
		st := &t.steps[i]
		st.after = t.tail
		if i+1 < len(t.steps) {
			st.after = t.steps[i+1].before
		}
		st.quoted = strings.HasSuffix(st.before, `"`) && strings.HasPrefix(st.after, `"`)
		if st.time && i > 0 && !t.steps[i-1].quoted {
			t.steps[i-1].beforeTime = st.after
		}
	}
}

// end returns the index at which the value at i ends, -1 if it does not.
func (st *step) end(line []byte, i int) int {
	switch {
	case st.quoted:
		return quoteEnd(line, i)
	case st.after == "":
		return len(line)
	}
	for at := i; ; at++ {
		hop := bytes.IndexByte(line[at:], st.after[0])
		if hop < 0 {
			return -1
		}
		at += hop
		rest := line[at:]
		if len(st.after) > 1 && (len(rest) < len(st.after) || string(rest[:len(st.after)]) != st.after) {
			continue
		}
		if st.beforeTime == "" || timeFollows(rest[len(st.after):], st.beforeTime) {
			return at
		}
	}
}

// timeFollows reports whether rest begins with what may be a time, and the text after it.
func timeFollows(rest []byte, after string) bool {
	n := clfLen + len(after)
	return len(rest) >= n && rest[2] == '/' && rest[6] == '/' && rest[11] == ':' && string(rest[clfLen:n]) == after
}

// text reads a line of a template.
func (p *Parser) text(line []byte, ev *match.Event) bool {
	p.scratch = p.scratch[:0]
	clear(p.values)
	if p.spec.template.read(line, p.values) < 0 || p.otherKind() || !p.fill(ev) {
		return false
	}
	p.unescapePath(ev, len(p.scratch))
	return true
}

// read sets values to those of a line, by want. It returns the number of steps that the
// line has, negative and one more if it is bad: -1 has none.
func (t *template) read(line []byte, values [][]byte) int {
	i := 0
	for n := range t.steps {
		st := &t.steps[n]
		if len(line)-i < len(st.before) || string(line[i:i+len(st.before)]) != st.before {
			return t.cut(line, i, n)
		}
		from := i + len(st.before)
		end := st.end(line, from)
		if end < 0 {
			if n+1 < t.must || !t.open || st.quoted || st.after[0] != ' ' {
				return t.cut(line, i, n)
			}
			if end = bytes.IndexByte(line[from:], ' '); end < 0 {
				end = len(line)
			} else {
				end += from
			}
		}
		i = end
		value := line[from:end:end]
		if st.number && !isNumber(value) {
			return t.cut(line, from, n)
		}
		if st.want >= 0 {
			values[st.want] = value
		}
	}
	if rest := line[i:]; string(rest) != t.tail && !(t.open && (len(rest) == 0 || rest[0] == ' ' || bytes.HasPrefix(rest, []byte(t.tail)))) {
		return -1 - len(t.steps)
	}
	return len(t.steps)
}

// cut returns what read returns for a line that has only n steps, up to i.
func (t *template) cut(line []byte, i, n int) int {
	if n < t.must || !t.open || i < len(line) && line[i] != ' ' && line[i] != '"' {
		return -1 - n
	}
	return n
}

// isNumber reports whether a value has digits and dots, or is the dash for none.
func isNumber(s []byte) bool {
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		if len(s) == 1 {
			return s[0] == '-'
		}
		s = s[1:]
	}
	for _, c := range s {
		if !isDigit(c) && c != '.' {
			return false
		}
	}
	return len(s) > 0
}

// textProblem returns the place where a line differs from the template.
func (f Format) textProblem(line []byte) string {
	t := f.spec.template
	values := make([][]byte, len(f.spec.wants))
	n := -1 - t.read(line, values)
	switch {
	case n < 0:
		return "its time is not one that the format has, or the value of a field that must be there is empty"
	case n == len(t.steps):
		return "it goes on after the last value of the format"
	case n == 0 && t.steps[0].before != "":
		return fmt.Sprintf("it does not begin with %q", t.steps[0].before)
	case t.steps[n].after == "":
		return fmt.Sprintf("%s, after %q, is not where the format has it", t.steps[n].name, t.steps[n].before)
	}
	return fmt.Sprintf("%s, between %q and %q, is not where the format has it", t.steps[n].name, t.steps[n].before, t.steps[n].after)
}
