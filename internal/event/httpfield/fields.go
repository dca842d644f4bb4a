// Package httpfield fills in events from HTTP requests. latelyhttp and forward-auth give each
// field its meaning by it.
package httpfield

import (
	"cmp"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/match"
)

// unrouted is the pattern of a request that no route matched. With a value, requests to
// unknown paths do not escape a rule on pattern.
const unrouted = "unrouted"

// A Source is the origin of the fields of an event: a request, and memory for fields
// that are not parts of it.
type Source struct {
	Request *http.Request
	Client  Client // asked only if rules use the field client

	client, host, user []byte
}

// A Client is the sender of a request.
type Client interface {
	// AppendTo appends the value of the field client.
	AppendTo(dst []byte) []byte
}

type field = middleware.Field[*Source]

// builtin are the fields that every request has.
var builtin = map[string]field{
	"client":   {Bytes: clientText},
	"host":     {Bytes: hostText},
	"user":     {Bytes: userText},
	"method":   {Text: func(s *Source) string { return s.Request.Method }},
	"path":     {Text: textOf(pathOf)},
	"object":   {Text: textOf(pathOf)},
	"pattern":  {Text: routed(func(r *http.Request) string { return r.Pattern })},
	"query":    {Text: func(s *Source) string { return s.Request.URL.RawQuery }},
	"protocol": {Text: func(s *Source) string { return s.Request.Proto }},
	"referer":  {Text: headerOf("Referer")},
	"agent":    {Text: headerOf("User-Agent")},
}

func clientText(s *Source) []byte {
	s.client = s.Client.AppendTo(s.client[:0])
	return s.client
}

func hostText(s *Source) []byte {
	s.host = middleware.AppendHost(s.host[:0], s.Request.Host)
	return s.host
}

func userText(s *Source) (user []byte) {
	s.user, user = appendUser(s.user[:0], s.Request.Header["Authorization"])
	return user
}

// Finder returns a function that finds what fills in a field: the function of own, the
// place that is declared, or the function of this package. Its error states why none does.
func Finder(own map[string]func(*http.Request) string) middleware.Finder[*Source] {
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
		case eventfield.IsOfAnswer(name): // which latelyhttp.Lease fills in
			f = field{Text: func(*Source) string { return "" }}
		default:
			return f, fmt.Errorf("unknown field %q in the rules: must be client, method, path, object, pattern, query, host, protocol, referer, agent, user, a name in Config.Fields, or declared with the header, cookie or parameter that has it", name)
		}
		return f, nil
	}
}

// partOf returns a function that returns the part of a request that is declared.
func partOf(declared match.Source) func(*Source) string {
	header := textproto.CanonicalMIMEHeaderKey(declared.Header)
	switch {
	case declared.Bearer:
		return func(s *Source) string { return middleware.Bearer(s.Request.Header["Authorization"]) }
	case declared.Cookie != "":
		return func(s *Source) string { return middleware.Cookie(s.Request.Header["Cookie"], declared.Cookie) }
	case declared.Query != "":
		return func(s *Source) string { return middleware.Parameter(s.Request.URL.RawQuery, declared.Query) }
	}
	return func(s *Source) string { return middleware.Single(s.Request.Header[header]) }
}

// textOf returns text as a function of a source.
func textOf(text func(*http.Request) string) func(*Source) string {
	return func(s *Source) string { return text(s.Request) }
}

// routed returns pattern with a value for requests without a pattern.
func routed(pattern func(*http.Request) string) func(*Source) string {
	return func(s *Source) string { return cmp.Or(pattern(s.Request), unrouted) }
}

// headerOf returns a function that returns the first header of that canonical name.
func headerOf(name string) func(*Source) string {
	return func(s *Source) string {
		if v := s.Request.Header[name]; len(v) > 0 {
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
