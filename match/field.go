package match

import "strings"

// A Field is the number of a well-known event field. Other fields have names only, see
// [Event.SetNamed].
type Field uint8

// The well-known fields. Rules files and the command line use the names that
// [Field.String] returns.
const (
	Client   Field = iota // the client: an address, a host name, an API key
	Object                // the requested object as logged: a path, a port, a name
	Method                // request method
	Path                  // request path as sent, without the query; see Event.CleanPath
	Query                 // the part of the target after the first '?'
	Protocol              // HTTP/1.1, HTTP/2.0, ...
	Status                // response status, in decimal
	Size                  // response size in bytes, in decimal
	User                  // authenticated or attempted user name
	Host                  // virtual host or server name
	Referer               // Referer header
	Agent                 // User-Agent header
	numFields
)

var fieldNames = [numFields]string{
	"client", "object", "method", "path", "query", "protocol",
	"status", "size", "user", "host", "referer", "agent",
}

// String returns the name of f, or "field?" if f is not a well-known field.
func (f Field) String() string {
	if f < numFields {
		return fieldNames[f]
	}
	return "field?"
}

// fieldNamed returns the well-known field with that name.
func fieldNamed(name string) (f Field, ok bool) {
	switch name { // half the time of a search of fieldNames, for each named field of a line of a log
	case "client":
		return Client, true
	case "object":
		return Object, true
	case "method":
		return Method, true
	case "path":
		return Path, true
	case "query":
		return Query, true
	case "protocol":
		return Protocol, true
	case "status":
		return Status, true
	case "size":
		return Size, true
	case "user":
		return User, true
	case "host":
		return Host, true
	case "referer":
		return Referer, true
	case "agent":
		return Agent, true
	}
	return 0, false
}

// A ref is a resolved field name.
type ref struct {
	field  Field // numFields if it is not well known
	name   string
	either []ref // the alternatives of "user | client", in order; nil for one field
}

func newRef(name string) ref {
	if strings.Contains(name, alternative) {
		return newEither(name)
	}
	if f, ok := fieldNamed(name); ok {
		return ref{field: f, name: name}
	}
	return ref{field: numFields, name: name}
}

// alternative separates the names of fields. The first field that an event has is used.
const alternative = "|"

func newEither(name string) ref {
	var names []string
	r := ref{field: numFields}
	for n := range strings.SplitSeq(name, alternative) {
		n = strings.TrimSpace(n)
		names = append(names, n)
		r.either = append(r.either, newRef(n))
	}
	r.name = strings.Join(names, " "+alternative+" ")
	return r
}

func (r *ref) get(e *Event) []byte {
	if r.field < numFields {
		return e.known[r.field]
	}
	if r.either != nil {
		if r = r.in(e); r == nil {
			return nil
		}
		return r.get(e)
	}
	return e.named(r.name)
}

// in returns the first alternative of r that e has, or nil.
func (r *ref) in(e *Event) *ref {
	for i := range r.either {
		if len(r.either[i].get(e)) > 0 {
			return &r.either[i]
		}
	}
	return nil
}

// given returns the alternative of r that a value such as "user:ada" begins with, and
// what follows it, or nil.
func (r *ref) given(v string) (one *ref, rest string) {
	for i := range r.either {
		one := &r.either[i]
		if rest, ok := strings.CutPrefix(v, one.name+":"); ok && rest != "" {
			return one, rest
		}
	}
	return nil, ""
}

// names returns the names of the event fields that r reads.
func (r *ref) names() []string {
	if r.either == nil {
		return []string{r.name}
	}
	var names []string
	for i := range r.either {
		names = append(names, r.either[i].name)
	}
	return names
}

// has reports whether r reads f.
func (r *ref) has(f Field) bool {
	if r.field == f {
		return true
	}
	for i := range r.either { // not by slices.ContainsFunc: the argument of its function would be allocated
		if r.either[i].field == f {
			return true
		}
	}
	return false
}
