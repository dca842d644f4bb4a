package latelyhttp

import (
	"net/http"

	"github.com/lately-go/lately/match"
)

// EventFields fills in events from requests, with the same meaning of each field as in
// a [Middleware], for programs that judge events themselves. It does not change and is
// safe for concurrent use. Its zero value fills in nothing.
type EventFields struct {
	extractors []extractor
}

// NewEventFields returns the EventFields of these names, such as
// [ratelimit.Set.Fields] returns. It skips names that no request has, which a
// [Middleware] would reject: such a field stays absent from every event.
func NewEventFields(names []string) *EventFields {
	extractors, _ := newExtractors(names, nil)
	return &EventFields{extractors}
}

// Fill gives e the fields of r, which client has sent. e holds views of r. Fill
// allocates for the fields client, host and user.
func (fields *EventFields) Fill(e *match.Event, r *http.Request, client Client) {
	new(fieldMemory).fill(e, fields.extractors, r, client)
}
