// Package eventfield has the names of the fields that this module's own readers of logs and
// requests set, and what they do with the fields of an event.
package eventfield

import (
	"bytes"
	"slices"

	"github.com/lately-go/lately/match"
)

// The fields of the log that an event is from, see [SetOrigin]. Events of services do not have them.
const (
	Log    = "log"    // absolute path of the file, "journal:ssh.service", or "-" for the standard input
	Format = "format" // name or spec of its format
)

// The fields that are looked up by the client in a local file (--geo), if a rule or report uses them.
const (
	Country = "country" // two capital letters, as in ISO 3166
	ASN     = "asn"     // number of the autonomous system, in decimal
)

// Duration is the time that a request took, in seconds.
const Duration = "duration"

// ForwardedFor is the X-Forwarded-For header of the request, which a log may have.
const ForwardedFor = "x_forwarded_for"

// IsOfAnswer reports whether the field of that name is known only when a request is answered.
func IsOfAnswer(name string) bool {
	return name == match.Status.String() || name == match.Size.String() || name == Duration
}

// HasAnswer reports whether e has a field of an answer: status, size or duration.
func HasAnswer(e *match.Event) bool {
	return len(e.Get(match.Status)) > 0 || len(e.Get(match.Size)) > 0 || len(e.GetNamed(Duration)) > 0
}

// SetOrigin sets the fields log and format, without copying them: the file that e is from, and
// the format of its lines.
func SetOrigin(e *match.Event, log, format string) {
	e.SetNamedString(Log, log)
	e.SetNamedString(Format, format)
}

// WellKnown returns the names of the well-known fields, in order.
func WellKnown() (names []string) {
	for f := match.Client; f <= match.Agent; f++ {
		names = append(names, f.String())
	}
	return names
}

// Named returns the well-known field of that name.
func Named(name string) (f match.Field, ok bool) {
	for f := match.Client; f <= match.Agent; f++ {
		if f.String() == name {
			return f, true
		}
	}
	return 0, false
}

// Names returns the names of the fields that e has, the well-known ones last.
func Names(e *match.Event) (names []string) {
	for name := range e.Fields() {
		names = append(names, name)
	}
	return names
}

// Unknown returns the name of the first field of e that is neither well known nor among
// custom. It finds misspelled names in events of clients.
func Unknown(e *match.Event, custom []string) (name string, ok bool) {
	for name := range e.Fields() {
		if _, known := Named(name); known {
			break // and so are all others, which need not be looked at: this is done for each CHECK
		}
		if !slices.Contains(custom, name) {
			return name, true
		}
	}
	return "", false
}

// SplitPath moves the query of a path such as "/login?x=1" to Query, unless e has a
// query already. It is for events whose path may be a whole request target.
func SplitPath(e *match.Event) {
	path := e.Get(match.Path)
	q := bytes.IndexByte(path, '?')
	if q <= 0 {
		return
	}
	e.Set(match.Path, path[:q])
	if len(e.Get(match.Query)) == 0 {
		e.Set(match.Query, path[q+1:])
	}
}
