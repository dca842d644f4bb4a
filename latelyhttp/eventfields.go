package latelyhttp

import (
	"net/http"

	"github.com/lately-go/lately/match"
)

// EventFields fills in events from requests, with the same meaning of each field
// as a [Middleware] gives it, for programs that have a way of their own from an
// event to a decision. It does not change and is safe for concurrent use. Its zero
// value fills in nothing.
type EventFields struct {
	extractors []extractor
}

// NewEventFields returns the EventFields of these names, such as
// [ratelimit.Set.Fields] returns. Names that no request has, which a [Middleware]
// would refuse, are left out: such a field stays absent from every event.
func NewEventFields(names []string) *EventFields {
	fields := new(EventFields)
	for _, name := range names {
		if f, err := newExtractor(name, nil); err == nil {
			fields.extractors = append(fields.extractors, f)
		}
	}
	return fields
}

// Fill gives e the fields of r, which client has sent. e holds views of r, and is
// used no longer than that. Fill allocates for the fields client, host and user.
func (fields *EventFields) Fill(e *match.Event, r *http.Request, client Client) {
	for i := range fields.extractors {
		f := &fields.extractors[i]
		switch f.kind {
		case extractClient:
			f.set(e, client.AppendTo(nil))
		case extractHost:
			f.set(e, appendHost(nil, r.Host))
		case extractUser:
			_, user := appendUser(nil, r.Header["Authorization"])
			f.set(e, user)
		default:
			f.setString(e, f.text(r))
		}
	}
}
