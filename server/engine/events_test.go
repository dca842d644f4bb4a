package engine

import (
	"testing"
	"time"
)

// Where nobody listens, an event costs nothing but its number.
func TestPublishToNobody(t *testing.T) {
	var h hub
	ev := Event{Type: Lifted, Time: time.Unix(1, 0), Rule: "r", Key: []string{"k"}}
	if n := testing.AllocsPerRun(100, func() { h.publish(ev) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := h.told.Load(); n != 101 { // one to warm up
		t.Errorf("%d events", n)
	}
	s := h.add()
	h.publish(ev)
	if got := <-s.C; string(got.JSON) != `{"type":"lift","time":"`+time.Unix(1, 0).Format(time.RFC3339)+`","rule":"r","key":["k"]}` {
		t.Errorf("told: %s", got.JSON)
	}
}
