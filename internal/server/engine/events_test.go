package engine

import (
	"encoding/json"
	"testing"
	"time"
)

// Where nobody listens, an event costs nothing but its number.
func TestPublishToNobody(t *testing.T) {
	var h hub
	h.init()
	ev := Event{Type: Unbanned, Time: time.Unix(1, 0).In(time.FixedZone("east", 3600)), Rule: "r", Key: []string{"k"}}
	if n := testing.AllocsPerRun(100, func() { h.publish(ev) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := h.told.Load(); n != 101 { // one to warm up
		t.Errorf("%d events", n)
	}
	s := h.add()
	h.publish(ev)
	if got, ok := s.Next(); !ok || string(got.JSON) != `{"type":"unban","time":"1970-01-01T00:00:01Z","rule":"r","key":["k"]}` {
		t.Errorf("told: %s", got.JSON)
	}
}

// Keys that differ are told so that they differ, also where JSON has no bytes for them.
func TestEventsOfBytes(t *testing.T) {
	var h hub
	h.init()
	s := h.add()
	for _, key := range []string{"/\xff", "/\xfe"} {
		h.publish(Event{Type: Unbanned, Rule: "r", Key: []string{"k", key}})
		var got struct {
			Key    []string
			Base64 [][]byte `json:"key_base64"`
		}
		ev, ok := s.Next()
		if !ok {
			t.Fatal("no event")
		}
		if err := json.Unmarshal(ev.JSON, &got); err != nil || len(got.Base64) != 2 || string(got.Base64[1]) != key || got.Key[1] != "/\uFFFD" {
			t.Errorf("%q is told as %s (%v)", key, ev.JSON, err)
		}
	}
}
