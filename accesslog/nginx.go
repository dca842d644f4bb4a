package accesslog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/rule/spelling"
)

func fieldVariable(name string) variable { return variable{want: want{name: name, dash: true}} }
func numberVariable(name string) variable {
	return variable{want: want{name: name, dash: true}, number: true}
}

func timeVariable(u unit, priority int) variable {
	return variable{want: want{name: "time"}, unit: u, priority: priority}
}

func objectVariable(f form, priority int) variable {
	return variable{want: want{name: "object", form: f}, priority: priority}
}

func durationVariable(scale int) variable {
	return variable{want: want{name: "duration", form: formDuration, scale: scale}, number: true}
}

// nginxVariables are the variables of nginx that are fields. Each other is a field of
// its own name.
var nginxVariables = map[string]variable{
	"remote_addr":          {want: want{name: "client", must: true}},
	"remote_user":          fieldVariable("user"),
	"time_local":           timeVariable(unitCLF, 1),
	"time_iso8601":         timeVariable(unitRFC3339, 1),
	"msec":                 timeVariable(unitS, 2), // finer than the others
	"request":              objectVariable(formRequest, 3),
	"request_uri":          objectVariable(formPath, 2),
	"uri":                  objectVariable(formPath, 1),
	"request_method":       fieldVariable("method"),
	"args":                 fieldVariable("query"),
	"query_string":         fieldVariable("query"),
	"server_protocol":      fieldVariable("protocol"),
	"status":               numberVariable("status"),
	"body_bytes_sent":      {want: want{name: "size", dash: true}, number: true, priority: 1},
	"bytes_sent":           numberVariable("size"),
	"host":                 {want: want{name: "host", dash: true}, priority: 1},
	"http_host":            fieldVariable("host"),
	"server_name":          fieldVariable("host"),
	"http_referer":         fieldVariable("referer"),
	"http_user_agent":      fieldVariable("agent"),
	"http_x_forwarded_for": fieldVariable("x_forwarded_for"),
	"request_time":         durationVariable(0),
}

// parseVariables compiles a format string with variables of nginx and of presets.
func parseVariables(text string, more map[string]variable) (*spec, error) {
	pieces, err := nginxPieces(text)
	if err != nil {
		return nil, err
	}
	var unknown *piece
	for i := range pieces {
		p := &pieces[i]
		if p.label == "" {
			continue
		}
		name := p.label[1:]
		v, ok := more[name]
		if !ok {
			v, ok = nginxVariables[name]
		}
		if !ok && more == nil {
			v = fieldVariable(name)
			if unknown == nil && nearVariable(p) != "" {
				unknown = p // probably misspelled
			}
		}
		p.variable = v
	}
	s, err := newTemplate(pieces)
	if err == errNoTime {
		if unknown != nil {
			return nil, fmt.Errorf("there is no time; column %d: unknown variable %s: did you mean $%s?", unknown.column, unknown.label, nearVariable(unknown))
		}
		err = fmt.Errorf("there is no time: must have $time_local, $time_iso8601 or $msec")
	}
	if err == nil && unknown != nil && !s.has("client") {
		err = fmt.Errorf("there is no client; column %d: unknown variable %s: did you mean $%s?", unknown.column, unknown.label, nearVariable(unknown))
	}
	return s, err
}

// nearVariable returns the variable of nginx that is probably meant by an unknown one, or "".
func nearVariable(p *piece) string {
	return spelling.Nearest(p.label[1:], slices.Sorted(maps.Keys(nginxVariables)), 2)
}

// nginxPieces divides a format string at its variables, $name or ${name}.
func nginxPieces(text string) ([]piece, error) {
	var pieces []piece
	for i := 0; i < len(text); {
		if text[i] != '$' {
			end := strings.IndexByte(text[i:], '$')
			if end < 0 {
				end = len(text) - i
			}
			pieces = append(pieces, piece{text: text[i : i+end], column: i + 1})
			i += end
			continue
		}
		name, end := text[i+1:], 0
		if braced, ok := strings.CutPrefix(name, "{"); ok {
			inside, _, closed := strings.Cut(braced, "}")
			if !closed {
				return nil, fmt.Errorf("column %d: ${ without a }: must be ${name}", i+1)
			}
			name, end = inside, i+len("${}")+len(inside)
		} else {
			name = name[:len(name)-len(strings.TrimLeft(name, variableBytes))]
			end = i + len("$") + len(name)
		}
		if name == "" || strings.Trim(name, variableBytes) != "" {
			return nil, fmt.Errorf("column %d: $ must be followed by the name of a variable: letters, digits and '_'", i+1)
		}
		pieces = append(pieces, piece{label: "$" + name, column: i + 1})
		i = end
	}
	return pieces, nil
}

const variableBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// has reports whether the spec has a field of that name.
func (s *spec) has(name string) bool {
	return slices.ContainsFunc(s.wants, func(w want) bool { return w.name == name })
}
