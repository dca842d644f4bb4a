package accesslog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/match"
)

// A spec is where a line has its time and its fields.
type spec struct {
	unit   unit
	wants  []want // wants[0] is the time
	object int    // index of the object in wants, 0 when there is none

	separator byte         // of CSV and TSV, else 0
	quotes    bool         // CSV
	columns   []columnWant // of CSV and TSV, by column

	root *pathNode // of JSON

	template *template  // of text
	header   *w3cHeader // of columns that a line of the log names
	selects  bool       // lines of other kinds are told from the values of wants
}

// A want is a value of a spec and its place in the line.
type want struct {
	name  string
	field match.Field
	known bool // field counts; else the name does
	plain bool // the value is that of the field, whatever it is
	form  form
	list  bool // the value is a list of objects

	column int // of CSV and TSV, from 0

	path []string // keys of JSON

	// Only the named formats, and format strings, set these.
	onlyString bool // a value that is not a string counts as absent
	must       bool // a line without the value is bad
	mayBeEmpty bool // the value may be empty
	dash       bool // "-" counts as absent
	fallback   bool // used only if the field is still empty
	first      bool // of a list, the first element is the value
	scale      int  // of formDuration: the unit is 10^-scale seconds

	// Lines of other kinds are skipped: those without the value, those with another
	// value than only, and those whose value is others.
	mark         bool
	only, others string
}

// A form is which fields a value sets.
type form uint8

const (
	formWhole     form = iota // the field itself
	formPath                  // a request target: Object, Path, Query
	formRequest               // a request line: these, Method and Protocol
	formURL                   // a request line whose target is a URL: Host too
	formURI                   // a host and a request target, without a scheme
	formDuration              // a number of units of time; the field is in seconds
	formPeer                  // an address and a port
	formForwarded             // X-Forwarded-For, to which the server has appended the client
)

var formNames = map[string]form{"path": formPath, "request": formRequest}

// A unit is the form of a time.
type unit uint8

const (
	unitS unit = iota
	unitMS
	unitUS
	unitNS
	unitRFC3339
	unitCLF

	// These are not in a spec.
	unitISO       // as unitRFC3339, also with a zone such as +0100
	unitAny       // seconds, or as unitRFC3339
	unitCLFMillis // 17/Apr/2018:06:25:06.123, in Options.Zone
	unitCommon    // any of readCommon
	unitLocal     // as unitRFC3339 with Z, which stands for Options.Zone
)

// unitNames are the names of the units in a spec, by unit.
var unitNames = []string{"s", "ms", "us", "ns", "rfc3339", "clf"}

// maxKeys bounds the keys of a path, because the ways to read its dots double
// with each.
const maxKeys = 6

// parseSpec parses what follows the prefix of a spec; the result must be
// compiled. A separator of 0 stands for JSON.
func parseSpec(body string, separator byte, quotes bool) (*spec, error) {
	s := &spec{separator: separator, quotes: quotes, wants: make([]want, 1)}
	for _, item := range splitEscaped(body, ',') {
		name, where, ok := strings.Cut(item, "=")
		if !ok || name == "" || strings.Trim(name, nameBytes) != "" {
			return nil, fmt.Errorf("%q is not of the form FIELD=PLACE; a field name has letters, digits, '_', '-' and '.'", item)
		}
		if s.has(name) {
			return nil, fmt.Errorf("field %q is given twice; give it once", name)
		}
		if err := s.add(name, where); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
	}
	if s.wants[0].name == "" {
		return nil, fmt.Errorf("there is no time; add time=PLACE@UNIT, UNIT being one of %s", strings.Join(unitNames, ", "))
	}
	return s, nil
}

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

// add adds the want of that name.
func (s *spec) add(name, where string) error {
	w := want{name: name}
	place, suffix := cutSuffix(where)
	var err error
	switch {
	case name == eventfield.Log || name == eventfield.Format:
		err = errors.New("must have another name, as this one says which log an event is from")
	case name == "time":
		s.unit, err = unitNamed(suffix)
	case suffix == "":
	case name != "object":
		err = fmt.Errorf(`"@%s" is not allowed here; only time and object have an @ (write \@ for one in a key)`, suffix)
	default:
		var ok bool
		if w.form, ok = formNames[suffix]; !ok {
			err = fmt.Errorf(`"@%s" is unknown; use @path, @request or nothing (write \@ for an @ in a key)`, suffix)
		}
	}
	if err == nil {
		err = s.place(&w, place)
	}
	if err != nil {
		return err
	}
	switch {
	case name == "time":
		s.wants[0] = w
		return nil
	case name == "client":
		w.must = true
	case name == "object":
		w.must = w.list
		s.object = len(s.wants)
	}
	s.wants = append(s.wants, w)
	return nil
}

func unitNamed(name string) (unit, error) {
	allowed := strings.Join(unitNames, ", ")
	if name == "" {
		return 0, fmt.Errorf("it has no unit; write time=PLACE@UNIT, UNIT being one of %s", allowed)
	}
	i := slices.Index(unitNames, name)
	if i < 0 {
		return 0, fmt.Errorf("unit %q is unknown; use one of %s", name, allowed)
	}
	return unit(i), nil
}

// place reads the place of w: a column, or a path of keys.
func (s *spec) place(w *want, place string) error {
	if s.separator != 0 {
		n, err := strconv.ParseUint(place, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("column %q is none; columns are numbers from 1 to %d", place, 1<<16-1)
		}
		w.column = int(n) - 1
		return nil
	}
	if strings.HasSuffix(place, "[]") && !strings.HasSuffix(place, `\[]`) {
		if w.name != "object" {
			return fmt.Errorf(`%q is a list; only object may be one (write \[ for a bracket in a key)`, place)
		}
		w.list, place = true, strings.TrimSuffix(place, "[]")
	}
	for _, key := range splitEscaped(place, '.') {
		key, ok := unescape(key)
		if !ok || key == "" {
			return fmt.Errorf(`path %q has an empty key or ends in a backslash; write keys with a '.' between, and \. for a dot in a key`, place)
		}
		w.path = append(w.path, key)
	}
	if len(w.path) > maxKeys {
		return fmt.Errorf(`path %q has %d keys; at most %d are allowed (write \. for a dot that is in a key)`, place, len(w.path), maxKeys)
	}
	return nil
}

// cutSuffix cuts where at its last '@' that is neither escaped nor the first
// byte.
func cutSuffix(where string) (place, suffix string) {
	parts := splitEscaped(where, '@')
	n := len(parts) - 1
	place = strings.Join(parts[:n], "@")
	if place == "" {
		return where, ""
	}
	return place, parts[n]
}

// splitEscaped splits s at each c that no backslash precedes. Backslashes stay.
func splitEscaped(s string, c byte) []string {
	var parts []string
	from := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case c:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	return append(parts, s[from:])
}

// unescape removes backslashes; it is false when the last byte is one.
func unescape(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			if i == len(s) {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// compile prepares s for its reader, and returns it.
func (s *spec) compile() *spec {
	for i := range s.wants {
		w := &s.wants[i]
		w.field, w.known = eventfield.Named(w.name)
		w.plain = w.known && w.form == formWhole && !w.fallback && w.field != match.Client
	}
	s.selects = slices.ContainsFunc(s.wants, func(w want) bool { return w.mark || w.only != "" || w.others != "" })
	switch {
	case s.template != nil, s.header != nil:
	case s.separator == 0:
		s.root = &pathNode{}
		for i := range s.wants {
			s.root.add(s.wants[i].path, i)
		}
	default:
		for i, w := range s.wants {
			s.columns = append(s.columns, columnWant{w.column, i})
		}
		slices.SortStableFunc(s.columns, func(a, b columnWant) int { return a.column - b.column })
	}
	return s
}
