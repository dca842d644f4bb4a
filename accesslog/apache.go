package accesslog

import (
	"fmt"
	"strings"
)

// apacheDirectives are the directives of Apache's LogFormat that are fields, by their
// letter.
var apacheDirectives = map[byte]variable{
	'h': {want: want{name: "client", must: true}},
	'a': {want: want{name: "client", must: true}, priority: 1}, // %h may be a host name
	'u': fieldVariable("user"),
	'r': objectVariable(formRequest, 3),
	'U': objectVariable(formPath, 1),
	's': numberVariable("status"),
	'b': numberVariable("size"),
	'B': numberVariable("size"),
	'O': numberVariable("size"),
	'm': fieldVariable("method"),
	'H': fieldVariable("protocol"),
	'V': fieldVariable("host"),
	'v': fieldVariable("host"),
	'D': durationVariable(6),
	'T': durationVariable(0),
}

// apacheOthers are the directives that are no field.
const apacheOthers = "AfIiklLnopPRSCeqxX^"

// apacheHeaders are the request headers that are fields, in lower case. Each other is a
// field of its name.
var apacheHeaders = map[string]string{"user-agent": "agent", "referer": "referer", "x-forwarded-for": "x_forwarded_for", "host": "host"}

// apacheTimes are the forms of %{FORM}t, apart from those of strftime.
var apacheTimes = map[string]unit{"sec": unitS, "msec": unitMS, "usec": unitUS}

// strftimes are the forms of strftime that are times which this package reads.
var strftimes = map[string]unit{
	"%d/%b/%Y:%H:%M:%S %z": unitCLF,
	"%d/%b/%Y:%T %z":       unitCLF,
	"%Y-%m-%dT%H:%M:%S%z":  unitISO,
	"%Y-%m-%d %H:%M:%S%z":  unitISO,
	"%Y-%m-%dT%H:%M:%SZ":   unitISO,
	"%FT%T%z":              unitISO,
	"%F %T%z":              unitISO,
	"%FT%TZ":               unitISO,
	"%s":                   unitS,
}

// parseApache compiles a format string of Apache's LogFormat.
func parseApache(text string) (*spec, error) {
	var pieces []piece
	for i := 0; i < len(text); {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			c := text[i+1 : i+2]
			if c == "t" {
				c = "\t"
			}
			pieces = append(pieces, piece{text: c})
			i += 2
		case strings.HasPrefix(text[i:], "%%"):
			pieces = append(pieces, piece{text: "%"})
			i += 2
		case strings.HasPrefix(text[i:], "%U%q"): // Apache writes the '?' itself
			pieces = append(pieces, piece{label: "%U%q", column: i + 1, variable: objectVariable(formPath, 2)})
			i += 4
		case text[i] == '%':
			more, n, err := apacheDirective(text[i:])
			if err != nil {
				return nil, fmt.Errorf("column %d: %w", i+1, err)
			}
			for _, p := range more {
				p.column = i + 1
				pieces = append(pieces, p)
			}
			i += n
		default:
			pieces = append(pieces, piece{text: text[i : i+1]})
			i++
		}
	}
	s, err := newTemplate(pieces)
	if err == errNoTime {
		err = fmt.Errorf("there is no time: must have %%t or %%{FORM}t")
	}
	return s, err
}

// apacheDirective returns the pieces of the directive that s begins with, and its length.
func apacheDirective(s string) ([]piece, int, error) {
	n := 1
	for n < len(s) && strings.IndexByte("<>!,0123456789", s[n]) >= 0 { // which request, and which statuses
		n++
	}
	argument := ""
	if n < len(s) && s[n] == '{' {
		inside, _, ok := strings.Cut(s[n+1:], "}")
		if !ok {
			return nil, 0, fmt.Errorf("%%{ without a }: must be such as %%{Referer}i")
		}
		argument, n = inside, n+len("{}")+len(inside)
	}
	if n == len(s) {
		return nil, 0, fmt.Errorf("%s: must be followed by a letter, such as %%h", s)
	}
	letter, name := s[n], s[:n+1]
	n++
	if letter == '^' && n+2 <= len(s) { // %^ti and %^to: trailers
		name, n = s[:n+2], n+2
	}
	p := piece{label: name}
	v, known := apacheDirectives[letter]
	switch {
	case letter == 't':
		return apacheTime(argument, name, n)
	case letter == 'i':
		p.variable = apacheHeader(argument)
	case letter == 'T' && argument != "":
		scale, ok := map[string]int{"s": 0, "ms": 3, "us": 6}[argument]
		if !ok {
			return nil, 0, fmt.Errorf("%s: unknown unit: must be one of s, ms, us", name)
		}
		p.variable = durationVariable(scale)
	case known && argument == "": // %{c}a is the peer of the connection
		p.variable = v
	case !known && strings.IndexByte(apacheOthers, letter) < 0:
		return nil, 0, fmt.Errorf("%s: unknown directive: must be one of Apache's, such as %%h, %%t, %%r, %%>s, %%b, %%{Referer}i", name)
	}
	return []piece{p}, n, nil
}

// apacheHeader returns what a request header is.
func apacheHeader(header string) variable {
	header = strings.ToLower(header)
	if name, ok := apacheHeaders[header]; ok {
		return fieldVariable(name)
	}
	return fieldVariable(strings.ReplaceAll(header, "-", "_"))
}

// apacheTime returns the pieces of %t, which has brackets, or of %{FORM}t.
func apacheTime(form, name string, n int) ([]piece, int, error) {
	p := piece{label: name, variable: timeVariable(unitCLF, 1)}
	form = strings.TrimPrefix(strings.TrimPrefix(form, "begin:"), "end:")
	if form == "" {
		return []piece{{text: "["}, p, {text: "]"}}, n, nil
	}
	var ok bool
	if p.unit, ok = apacheTimes[form]; ok {
		p.priority = 2
		return []piece{p}, n, nil
	}
	if form == "msec_frac" || form == "usec_frac" {
		return []piece{{label: name}}, n, nil // part of another time
	}
	before, after := "", ""
	if strings.HasPrefix(form, "[") && strings.HasSuffix(form, "]") {
		before, form, after = "[", form[1:len(form)-1], "]"
	}
	if p.unit, ok = strftimes[form]; !ok {
		return nil, 0, fmt.Errorf("%s: unknown form of time: must be sec, msec, usec, %%Y-%%m-%%dT%%H:%%M:%%S%%z or %%d/%%b/%%Y:%%H:%%M:%%S %%z", name)
	}
	return []piece{{text: before}, p, {text: after}}, n, nil
}
