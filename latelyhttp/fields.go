package latelyhttp

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/lately-go/lately/internal/clientaddr"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// unrouted is the pattern of a request that no route matched. It is a value, so
// that requests to paths that lead nowhere do not escape a rule on pattern.
const unrouted = "unrouted"

// PatternOf returns a function for [Config.Fields] that gives the pattern under
// which mux would handle a request, for a middleware around mux:
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

// An extractor fills in one field of the event.
type extractor struct {
	name  string
	field match.Field // when known
	known bool
	kind  extractorKind
	arg   string // the header's canonical name, or the cookie's name
	fn    func(*http.Request) string
}

type extractorKind uint8

const (
	extractClient extractorKind = iota
	extractMethod
	extractPath
	extractPattern
	extractQuery
	extractProtocol
	extractHost
	extractUser
	extractHeader
	extractCookie
	extractFunc
)

// builtin returns what fills in a field that every request has.
func builtin(name string) (extractor, bool) {
	switch name {
	case "client":
		return extractor{kind: extractClient}, true
	case "method":
		return extractor{kind: extractMethod}, true
	case "path", "object":
		return extractor{kind: extractPath}, true
	case "pattern":
		return extractor{kind: extractPattern}, true
	case "query":
		return extractor{kind: extractQuery}, true
	case "protocol":
		return extractor{kind: extractProtocol}, true
	case "host":
		return extractor{kind: extractHost}, true
	case "user":
		return extractor{kind: extractUser}, true
	case "referer":
		return extractor{kind: extractHeader, arg: "Referer"}, true
	case "agent":
		return extractor{kind: extractHeader, arg: "User-Agent"}, true
	}
	return extractor{}, false
}

// newExtractor returns what fills in the field of that name, or an error that
// says why nothing can.
func newExtractor(name string, own map[string]func(*http.Request) string) (extractor, error) {
	f, ok := builtin(name)
	prefix, arg, _ := strings.Cut(name, ":")
	switch {
	case own[name] != nil:
		f = extractor{kind: extractFunc, fn: own[name]}
	case ok:
	case prefix == "header" && strings.EqualFold(arg, "host"): // net/http takes it out of the headers
		f = extractor{kind: extractHost}
	case prefix == "header" && clientaddr.IsToken(arg):
		f = extractor{kind: extractHeader, arg: textproto.CanonicalMIMEHeaderKey(arg)}
	case prefix == "cookie" && clientaddr.IsToken(arg):
		f = extractor{kind: extractCookie, arg: arg}
	case name == match.Status.String(), name == match.Size.String():
		return extractor{}, fmt.Errorf("the rules look at the field %q, which a request does not have; leave such rules to replay, or say what it is in Config.Fields", name)
	default:
		return extractor{}, fmt.Errorf("unknown field %q in the rules: must be client, method, path, object, pattern, query, host, protocol, referer, agent, user, header:NAME, cookie:NAME and the names in Config.Fields", name)
	}
	f.name = name
	f.field, f.known = match.FieldNamed(name)
	return f, nil
}

// newExtractors returns an extractor for each field that set looks at, and an error
// about the first that has none.
func newExtractors(set *ratelimit.Set, own map[string]func(*http.Request) string) (fs []extractor, err error) {
	for _, name := range set.Fields() {
		f, e := newExtractor(name, own)
		if e == nil {
			fs = append(fs, f)
		} else if err == nil {
			err = e
		}
	}
	return fs, err
}

// fill makes s.event the event of r.
func (s *state) fill(fs []extractor, r *http.Request) {
	for i := range fs {
		f := &fs[i]
		switch f.kind {
		case extractClient:
			f.set(&s.event, s.clientText)
		case extractHost:
			s.host = appendHost(s.host[:0], r.Host)
			f.set(&s.event, s.host)
		case extractUser:
			var user []byte
			s.user, user = appendUser(s.user[:0], r.Header["Authorization"])
			f.set(&s.event, user)
		default:
			f.setString(&s.event, f.text(r))
		}
	}
}

func (f *extractor) set(e *match.Event, v []byte) {
	if f.known {
		e.Set(f.field, v)
	} else {
		e.SetNamed(f.name, v)
	}
}

func (f *extractor) setString(e *match.Event, v string) {
	if f.known {
		e.SetString(f.field, v)
	} else {
		e.SetNamedString(f.name, v)
	}
}

// text returns the field as a part of the request.
func (f *extractor) text(r *http.Request) string {
	switch f.kind {
	case extractMethod:
		return r.Method
	case extractPath:
		return pathOf(r)
	case extractPattern:
		if r.Pattern == "" {
			return unrouted
		}
		return r.Pattern
	case extractQuery:
		return r.URL.RawQuery
	case extractProtocol:
		return r.Proto
	case extractHeader:
		if v := r.Header[f.arg]; len(v) > 0 {
			return v[0]
		}
	case extractCookie:
		return cookie(r.Header["Cookie"], f.arg)
	case extractFunc:
		v := f.fn(r)
		if v == "" && f.name == "pattern" {
			return unrouted
		}
		return v
	}
	return ""
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

// appendHost appends host in lower case, without port and final dots: a client
// can write it in any of these ways and is answered the same.
func appendHost(dst []byte, host string) []byte {
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
	} else if name, _, ok := strings.Cut(host, ":"); ok {
		host = name
	}
	for _, c := range []byte(strings.TrimRight(host, ".")) {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
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
