package match

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Source declares a field of requests beside the well-known ones: its name in rules, and
// where requests have its value. At most one of Header, Cookie, Bearer and Query is set.
// Without any, whoever makes the event gives the field: a service, a program or a log.
type Source struct {
	Field string

	Header string // the value of this header
	Cookie string // the value of this cookie
	Bearer bool   // what follows "Bearer" in the header Authorization
	Query  string // the value of this parameter in the query

	// Trusted means that clients cannot choose the value, because a proxy sets or checks it. Rules
	// files reject bans by a field that clients can choose.
	Trusted bool

	// Hash means that only keyed digests of the values are kept and shown.
	Hash bool

	// Share and Refuse say what becomes of an event without the field under a rule that counts by it. With Share, it has
	// the value [Missing] instead, so that such events count together. With Refuse, the rule refuses it. With neither, the
	// rule does not judge it. At most one of them is set.
	Share, Refuse bool
}

// derivedFields are the fields that events get from what is known of them.
var derivedFields = []string{"log", "format", "country", "asn"}

// partFields are fields that Lately's own readers of logs and requests set.
var partFields = []string{
	"backend", "bucket", "duration", "filter", "frontend", "message", "operation", "pattern", "program", "proto", "reason", "router", "spt",
	"termination", "x_forwarded_for",
}

// NeedsSource reports whether a rules file must declare the field of this name, since it is not
// well known, and neither the middleware nor a log of a named format has it.
func NeedsSource(name string) bool {
	_, known := FieldNamed(name)
	return !known && !slices.Contains(derivedFields, name) && !slices.Contains(partFields, name)
}

// Missing is the value of a shared field in events without it, see [Source].
const Missing = "(missing)"

// Ambiguous is the value of a field that a request has several times with different values, or in
// a form that servers read differently. All such requests count as one key. Otherwise a client
// could get a fresh count with a value that the service does not use.
const Ambiguous = "(ambiguous)"

// FromRequest reports whether the value is a part of the request, which a client writes.
func (s *Source) FromRequest() bool { return len(s.places()) > 0 }

// Place returns where requests have the value, in words: "the header X-API-Key".
func (s *Source) Place() string {
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
func (s *Source) places() (names []string) {
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

// Validate returns an error about the first bad field of s.
func (s *Source) Validate() error {
	if err := s.checkPlace(); err != nil {
		return fmt.Errorf("field %q: %w", s.Field, err)
	}
	return nil
}

func (s *Source) checkPlace() error {
	if s.Field == "" {
		return errors.New("empty: must be a name")
	}
	if f, known := FieldNamed(s.Field); known && f != User || slices.Contains(derivedFields, s.Field) {
		return errors.New("must be another name, as this field is known without a declaration; of these only user can have another source")
	}
	if places := s.places(); len(places) > 1 {
		return fmt.Errorf("%s: must be one of them", strings.Join(places, ", "))
	}
	switch {
	case s.Share && s.Refuse:
		return errors.New("Share, Refuse: must be one of them")
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
