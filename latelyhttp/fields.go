package latelyhttp

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/lately-go/lately/internal/clientaddr"
	"github.com/lately-go/lately/match"
)

// unrouted is the pattern of a request that no route matched. With a value, requests to
// unknown paths do not escape a rule on pattern.
const unrouted = "unrouted"

// PatternOf returns a function for [Config.Fields] that returns the pattern under which
// mux would handle a request, for a middleware around mux:
//
//	latelyhttp.Config{Fields: map[string]func(*http.Request) string{
//		"pattern": latelyhttp.PatternOf(mux),
//	}}
//
// It costs a second search of the routes. A middleware within mux, around one
// handler, needs none: the request then has its Pattern.
func PatternOf(mux *http.ServeMux) func(*http.Request) string {
	return func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}
}

// An extractor fills in one field of an event.
type extractor struct {
	name string
	kind extractorKind
	text func(*http.Request) string // for fromText
}

// An extractorKind says where a field comes from. A client, a host and a user are
// written into memory, the text of all other fields is a part of the request.
type extractorKind uint8

const (
	fromText extractorKind = iota
	fromClient
	fromHost
	fromUser
)

// builtin are the fields that every request has.
var builtin = map[string]extractor{
	"client":   {kind: fromClient},
	"host":     {kind: fromHost},
	"user":     {kind: fromUser},
	"method":   {text: func(r *http.Request) string { return r.Method }},
	"path":     {text: pathOf},
	"object":   {text: pathOf},
	"pattern":  {text: routed(func(r *http.Request) string { return r.Pattern })},
	"query":    {text: func(r *http.Request) string { return r.URL.RawQuery }},
	"protocol": {text: func(r *http.Request) string { return r.Proto }},
	"referer":  {text: headerOf("Referer")},
	"agent":    {text: headerOf("User-Agent")},
}

// newExtractor returns what fills in the field of that name, or an error that
// says why nothing can.
func newExtractor(name string, own map[string]func(*http.Request) string) (extractor, error) {
	f, ok := builtin[name]
	prefix, arg, _ := strings.Cut(name, ":")
	switch {
	case own[name] != nil:
		f = extractor{text: own[name]}
		if name == "pattern" {
			f.text = routed(f.text)
		}
	case ok:
	case prefix == "header" && strings.EqualFold(arg, "host"): // net/http takes it out of the headers
		f = extractor{kind: fromHost}
	case prefix == "header" && clientaddr.IsToken(arg):
		f = extractor{text: headerOf(textproto.CanonicalMIMEHeaderKey(arg))}
	case prefix == "cookie" && clientaddr.IsToken(arg):
		f = extractor{text: func(r *http.Request) string { return cookie(r.Header["Cookie"], arg) }}
	case name == match.Status.String(), name == match.Size.String():
		return extractor{}, fmt.Errorf("field %q in the rules: unknown before the response: must be left to replay, or be in Config.Fields", name)
	default:
		return extractor{}, fmt.Errorf("unknown field %q in the rules: must be client, method, path, object, pattern, query, host, protocol, referer, agent, user, header:NAME, cookie:NAME and the names in Config.Fields", name)
	}
	f.name = name
	return f, nil
}

// newExtractors returns an extractor for each of the fields that has one, and the
// first error about one that has none.
func newExtractors(names []string, own map[string]func(*http.Request) string) (fs []extractor, err error) {
	for _, name := range names {
		f, e := newExtractor(name, own)
		if e == nil {
			fs = append(fs, f)
		} else if err == nil {
			err = e
		}
	}
	return fs, err
}

// A fieldMemory is memory for the fields that are not parts of the request.
type fieldMemory struct{ client, host, user []byte }

// fill gives e the fields of r, which client has sent. e holds views of r and m.
func (m *fieldMemory) fill(e *match.Event, fs []extractor, r *http.Request, client Client) {
	for i := range fs {
		f := &fs[i]
		switch f.kind {
		case fromClient:
			m.client = client.AppendTo(m.client[:0])
			e.SetNamed(f.name, m.client)
		case fromHost:
			m.host = clientaddr.AppendHost(m.host[:0], r.Host)
			e.SetNamed(f.name, m.host)
		case fromUser:
			var user []byte
			m.user, user = appendUser(m.user[:0], r.Header["Authorization"])
			e.SetNamed(f.name, user)
		default:
			e.SetNamedString(f.name, f.text(r))
		}
	}
}

// routed returns pattern with a value for requests that it has none for.
func routed(pattern func(*http.Request) string) func(*http.Request) string {
	return func(r *http.Request) string {
		if p := pattern(r); p != "" {
			return p
		}
		return unrouted
	}
}

// headerOf returns a function that returns the first header of that canonical name.
func headerOf(name string) func(*http.Request) string {
	return func(r *http.Request) string {
		if v := r.Header[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
}

// pathOf returns r's path as it was sent. A target without path
// ("http://example.com") asks for "/", as it does in net/http.
func pathOf(r *http.Request) string {
	path := r.URL.EscapedPath()
	if raw := r.URL.RawPath; raw != "" && raw != path {
		// RawPath is what a client sent that no URL has, such as '#' or '\', or
		// it is left from before a handler has changed Path.
		if sent, err := url.PathUnescape(raw); err == nil && sent == r.URL.Path {
			return raw
		}
	}
	if path == "" && r.Method != http.MethodConnect {
		return "/"
	}
	return path
}

// cookie returns the value of the first cookie of that name, as
// http.Request.Cookie finds it.
func cookie(lines []string, name string) string {
	for _, line := range lines {
		for line != "" {
			var part string
			part, line, _ = strings.Cut(line, ";")
			key, value, _ := strings.Cut(strings.Trim(part, " \t"), "=")
			if strings.Trim(key, " \t") != name {
				continue
			}
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			if isCookieValue(value) {
				return value
			}
		}
	}
	return ""
}

func isCookieValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == ';' || c == '\\' {
			return false
		}
	}
	return true
}
