package events

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
)

// Without subscribers, an event costs nothing but its number.
func TestPublishWithoutSubscribers(t *testing.T) {
	h := New()
	ev := api.Event{Type: api.BanEnded, Time: time.Unix(1, 0).In(time.FixedZone("east", 3600)), Rule: "r", Key: api.KeyOf("k")}
	if n := testing.AllocsPerRun(100, func() { h.Publish(ev) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := h.events.Load(); n != 101 { // one to warm up
		t.Errorf("%d events", n)
	}
	s := h.Subscribe()
	h.Publish(ev)
	if got, ok := s.Next(); !ok || string(got.JSON) != `{"type":"unban","time":"1970-01-01T00:00:01Z","rule":"r","key":["k"]}` {
		t.Errorf("told: %s", got.JSON)
	}
}

// Different keys are published differently, also where JSON has no bytes for them.
func TestEventsOfBytes(t *testing.T) {
	h := New()
	s := h.Subscribe()
	for _, key := range []string{"/\xff", "/\xfe"} {
		h.Publish(api.Event{Type: api.BanEnded, Rule: "r", Key: api.KeyOf("k", key)})
		var got api.Event
		ev, ok := s.Next()
		if !ok {
			t.Fatal("no event")
		}
		if err := json.Unmarshal(ev.JSON, &got); err != nil || got.Text != nil || len(got.Base64) != 2 || string(got.Base64[1]) != key {
			t.Errorf("%q is published as %s (%v)", key, ev.JSON, err)
		}
	}
}
