package latelyhttp

import (
	"net/http"

	"github.com/lately-go/lately/internal/middleware"
	"github.com/lately-go/lately/match"
)

// EventFields fills in events from requests, with the same meaning of each field as in
// a [Middleware], for programs that judge events themselves. It does not change and is
// safe for concurrent use. Its zero value fills in nothing.
type EventFields struct {
	fields middleware.Fields[*source]
}

// NewEventFields returns the EventFields of these names, such as
// [ratelimit.Set.Fields] returns. It skips names that no request has, which a
// [Middleware] would reject: such a field stays absent from every event.
func NewEventFields(names []string) *EventFields {
	fields, _ := middleware.NewFields(names, findField(nil))
	return &EventFields{fields}
}

// Fill gives e the fields of r, which client has sent. e holds views of r. Fill
// allocates for the fields client, host and user.
func (f *EventFields) Fill(e *match.Event, r *http.Request, client Client) {
	f.fields.Fill(e, &source{request: r, client: client, known: true})
}
