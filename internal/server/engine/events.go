package engine

import (
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/ratelimit"
)

// An EventType says what an [Event] is about.
type EventType string

// The types of events.
const (
	Banned       EventType = "ban"   // a ban began, or was added
	Unbanned     EventType = "unban" // a ban was ended by hand
	Heated       EventType = "hot"   // a key became hot
	RulesChanged EventType = "rules" // other rules are in force
)

// An Event is what subscribers are told. JSON is what it looks like on every wire.
type Event struct {
	Type   EventType            `json:"type"`
	Time   time.Time            `json:"time"`
	Ban    *ratelimit.BanRecord `json:"ban,omitempty"`
	Rule   string               `json:"rule,omitempty"` // of what was unbanned or became hot
	Key    []string             `json:"key,omitempty"`
	Base64 [][]byte             `json:"key_base64,omitempty"` // in JSON: the key as it is, where key shows U+FFFD for what is not UTF-8
	Until  *time.Time           `json:"until,omitempty"`      // how long it stays hot
	JSON   []byte               `json:"-"`
}

// encode sets ev.JSON, and what only JSON has.
func (ev *Event) encode() {
	ev.Time = ev.Time.UTC() // as the times of bans
	ev.Base64 = bytesOf(ev.Key)
	var err error
	if ev.JSON, err = json.Marshal(ev); err != nil {
		ev.JSON = []byte(`{"type":"` + string(ev.Type) + `"}`)
	}
}

// bytesOf returns the values of a key that is not UTF-8 throughout, and nil for
// others.
func bytesOf(key []string) (values [][]byte) {
	if !slices.ContainsFunc(key, func(v string) bool { return !utf8.ValidString(v) }) {
		return nil
	}
	for _, v := range key {
		values = append(values, []byte(v))
	}
	return values
}
