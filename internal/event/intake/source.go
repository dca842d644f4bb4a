package intake

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/match"
)

// derivedFields are fields that are computed from other fields of an event.
var derivedFields = []string{eventfield.Log, eventfield.Format, eventfield.Country, eventfield.ASN}

// partFields are fields that Lately's own readers of logs and requests set.
var partFields = []string{
	"backend", "bucket", "duration", "filter", "frontend", "message", "operation", "pattern", "program", "proto", "reason", "router", "spt",
	"termination", "x_forwarded_for",
}

// NeedsSource reports whether a rules file must declare the field of this name, since it is not
// well known, and neither the middleware nor a log of a named format has it.
func NeedsSource(name string) bool {
	_, known := eventfield.Named(name)
	return !known && !slices.Contains(derivedFields, name) && !slices.Contains(partFields, name)
}

// Missing is the value of a shared field in events without it, see [match.Source].
const Missing = "(missing)"

// Ambiguous is the value of a field that a request has several times with different values, or in
// a form that servers read differently. All such requests count as one key. Otherwise a client
// could get a fresh count with a value that the service does not use.
const Ambiguous = "(ambiguous)"

// FromRequest reports whether the value is a part of the request, which a client writes.
func FromRequest(s *match.Source) bool { return len(places(s)) > 0 }

// Place returns where requests have the value, in words: "the header X-API-Key".
func Place(s *match.Source) string {
	switch {
	case s.Header != "":
		return "the header " + s.Header
	case s.Cookie != "":
		return "the cookie " + s.Cookie
	case s.Bearer:
		return "the bearer token in the header Authorization"
	case s.Query != "":
		return "the parameter " + s.Query + " in the query"
	}
	return "the field " + s.Field
}

// places returns the names of what is set of Header, Cookie, Bearer and Query.
func places(s *match.Source) (names []string) {
	add := func(name string, set bool) {
		if set {
			names = append(names, name)
		}
	}
	add("header", s.Header != "")
	add("cookie", s.Cookie != "")
	add("bearer", s.Bearer)
	add("query", s.Query != "")
	return names
}

// Validate returns an error about the first wrong field of s.
func Validate(s *match.Source) error {
	if err := checkPlace(s); err != nil {
		return fmt.Errorf("field %q: %w", s.Field, err)
	}
	return nil
}

func checkPlace(s *match.Source) error {
	if s.Field == "" {
		return errors.New("empty: must be a name")
	}
	if f, known := eventfield.Named(s.Field); known && f != match.User || slices.Contains(derivedFields, s.Field) {
		return errors.New("must be another name, as this field is known without a declaration; of these only user can have another source")
	}
	if places := places(s); len(places) > 1 {
		return fmt.Errorf("%s: must be one of them", strings.Join(places, ", "))
	}
	switch {
	case s.Share && s.Refuse:
		return errors.New("both Share and Refuse: must be one of them")
	case s.Header != "" && !isToken(s.Header):
		return fmt.Errorf("header: %.80q: must be the name of a header, such as X-API-Key", s.Header)
	case s.Cookie != "" && !isToken(s.Cookie):
		return fmt.Errorf("cookie: %.80q: must be the name of a cookie, such as sid", s.Cookie)
	case strings.EqualFold(s.Header, "cookie"):
		return errors.New("header: Cookie: must be one cookie, as in {cookie: sid}")
	case strings.EqualFold(s.Header, "host"):
		return errors.New("header: Host: must be left out, as the field host has it")
	}
	return nil
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	const bytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	return s != "" && strings.Trim(s, bytes) == ""
}
