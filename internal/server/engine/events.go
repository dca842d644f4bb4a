package engine

import (
	"encoding/json"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// An Event is what subscribers receive. JSON is its form in all protocols.
type Event struct {
	api.Event
	JSON []byte
}

// encode sets ev.JSON.
func (ev *Event) encode() {
	ev.Time = ev.Time.UTC() // as the times of bans
	var err error
	if ev.JSON, err = json.Marshal(&ev.Event); err != nil {
		ev.JSON = []byte(`{"type":"` + string(ev.Type) + `"}`)
	}
}

// banEvent returns the event of the ban r.
func banEvent(r *ratelimit.BanRecord) api.Event {
	ban := BanOf(r)
	return api.Event{Type: api.BanStarted, Time: r.Since, Ban: &ban}
}
