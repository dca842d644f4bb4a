package latelyhttp

import (
	"cmp"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"

	"github.com/lately-go/lately/internal/eventfield"
	"github.com/lately-go/lately/internal/intake"
	"github.com/lately-go/lately/internal/middleware"
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
// It costs a second search of the routes. Middleware within mux, around one
// handler, does not need it: the request already has its Pattern.
func PatternOf(mux *http.ServeMux) func(*http.Request) string {
	return func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}
}

// A source is where the fields of an event come from: a request, and memory for those
// that are not parts of it.
type source struct {
	request  *http.Request
	identity *Identity // finds the client, unless it is known
	client   Client
	known    bool

	clientText, host, user []byte
}

// sender returns the client of the request, which it finds once.
func (s *source) sender() Client {
	if !s.known {
		s.client, s.known = s.identity.Client(s.request), true
	}
	return s.client
}

// reset releases the request and keeps the memory.
func (s *source) reset() { s.request, s.known = nil, false }

type field = middleware.Field[*source]

// builtin are the fields that every request has.
var builtin = map[string]field{
	"client":   {Bytes: clientText},
	"host":     {Bytes: hostText},
	"user":     {Bytes: userText},
	"method":   {Text: func(s *source) string { return s.request.Method }},
	"path":     {Text: textOf(pathOf)},
	"object":   {Text: textOf(pathOf)},
	"pattern":  {Text: routed(func(r *http.Request) string { return r.Pattern })},
	"query":    {Text: func(s *source) string { return s.request.URL.RawQuery }},
	"protocol": {Text: func(s *source) string { return s.request.Proto }},
	"referer":  {Text: headerOf("Referer")},
	"agent":    {Text: headerOf("User-Agent")},
}

func clientText(s *source) []byte {
	s.clientText = s.sender().AppendTo(s.clientText[:0])
	return s.clientText
}

func hostText(s *source) []byte {
	s.host = middleware.AppendHost(s.host[:0], s.request.Host)
	return s.host
}

func userText(s *source) (user []byte) {
	s.user, user = appendUser(s.user[:0], s.request.Header["Authorization"])
	return user
}

// findField returns a function that finds what fills in a field: the function of own, the
// place that is declared, or the function of this package. Its error states why none does.
func findField(own map[string]func(*http.Request) string) middleware.Finder[*source] {
	return func(declared match.Source) (field, error) {
		name := declared.Field
		f, ok := builtin[name]
		switch {
		case own[name] != nil && name == "pattern":
			f = field{Text: routed(own[name])}
		case own[name] != nil:
			f = field{Text: textOf(own[name])}
		case intake.FromRequest(&declared):
			f = field{Text: partOf(declared)}
		case ok:
		case eventfield.IsOfAnswer(name): // which Lease.Answer fills in
			f = field{Text: func(*source) string { return "" }}
		default:
			return f, fmt.Errorf("unknown field %q in the rules: must be client, method, path, object, pattern, query, host, protocol, referer, agent, user, a name in Config.Fields, or declared with the header, cookie or parameter that has it", name)
		}
		return f, nil
	}
}

// partOf returns a function that returns the part of a request that is declared.
func partOf(declared match.Source) func(*source) string {
	header := textproto.CanonicalMIMEHeaderKey(declared.Header)
	switch {
	case declared.Bearer:
		return func(s *source) string { return middleware.Bearer(s.request.Header["Authorization"]) }
	case declared.Cookie != "":
		return func(s *source) string { return middleware.Cookie(s.request.Header["Cookie"], declared.Cookie) }
	case declared.Query != "":
		return func(s *source) string { return middleware.Parameter(s.request.URL.RawQuery, declared.Query) }
	}
	return func(s *source) string { return middleware.Single(s.request.Header[header]) }
}

// textOf returns text as a function of a source.
func textOf(text func(*http.Request) string) func(*source) string {
	return func(s *source) string { return text(s.request) }
}

// routed returns pattern with a value for requests without a pattern.
func routed(pattern func(*http.Request) string) func(*source) string {
	return func(s *source) string { return cmp.Or(pattern(s.request), unrouted) }
}

// headerOf returns a function that returns the first header of that canonical name.
func headerOf(name string) func(*source) string {
	return func(s *source) string {
		if v := s.request.Header[name]; len(v) > 0 {
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

// EventFields fills in events from requests, with the same meaning of each field as in
// a [Middleware], for programs that judge events themselves. It does not change and is
// safe for concurrent use. Its zero value fills in nothing.
type EventFields struct {
	fields middleware.Fields[*source]
}

// NewEventFields returns EventFields for these names, for example the Fields of a
// rules.File. declared has the sources of fields that are not well
// known. A name that no request has, which a Middleware would reject, is
// skipped: the field is absent from every event.
func NewEventFields(names []string, declared []match.Source) *EventFields {
	fields, _ := middleware.NewFields(names, declared, findField(nil))
	return &EventFields{fields}
}

// Fill sets the fields of e from r, which client has sent. e holds views of r.
// Fill allocates for the fields client, host and user.
func (f *EventFields) Fill(e *match.Event, r *http.Request, client Client) {
	f.fields.Fill(e, &source{request: r, client: client, known: true})
}
