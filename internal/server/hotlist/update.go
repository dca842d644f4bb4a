package hotlist

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
)

// An Update is what changed from one version to another.
type Update struct {
	instance, rule string
	from, version  uint64
	reset, empty   bool
	made           time.Time

	encode             sync.Once
	hot, cold, changed []Hot // until it is encoded
	parts              [][]byte
}

// Parts returns the update as one or more messages, each the JSON of an [api.HotUpdate].
func (u *Update) Parts() [][]byte { return u.parts }

// partBytes is about the length at which a message ends and the next one begins.
const partBytes = 64 << 10

// A message is an [api.HotUpdate] whose elements are already JSON.
type message struct {
	api.HotUpdate
	Hot     []json.RawMessage `json:"hot"`
	Cold    []json.RawMessage `json:"cold"`
	Changed []json.RawMessage `json:"changed"`
}

// write makes the messages of u.
func (u *Update) write() {
	var m message
	size := 0
	begin := func() {
		m = message{Hot: []json.RawMessage{}, Cold: []json.RawMessage{}, Changed: []json.RawMessage{}}
		m.HotUpdate = api.HotUpdate{Instance: u.instance, From: u.from, Version: u.version, Rule: u.rule, Reset: u.reset && u.parts == nil}
		size = 0
	}
	end := func() {
		text, _ := json.Marshal(&m) // its elements have no errors
		u.parts = append(u.parts, text)
	}
	add := func(list *[]json.RawMessage, element any) {
		text, err := json.Marshal(element)
		if err != nil {
			return // a time after the year 9999
		}
		if size > 0 && size+len(text) > partBytes {
			m.More = true
			end()
			begin()
		}
		*list = append(*list, text)
		size += len(text) + 1 // and a comma
	}
	begin()
	for i := range u.hot {
		add(&m.Hot, u.hot[i].onWire(u.made, u.hot[i].Changed))
	}
	for i := range u.cold {
		add(&m.Cold, api.RuleKey{Rule: u.cold[i].Rule, Key: u.cold[i].Key})
	}
	for i := range u.changed {
		add(&m.Changed, api.RuleKey{Rule: u.changed[i].Rule, Key: u.changed[i].Key})
	}
	end()
	u.hot, u.cold, u.changed = nil, nil, nil
}
