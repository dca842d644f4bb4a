package eventlist

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// TestRoundTrip reads written events with any names and values of any bytes.
func TestRoundTrip(t *testing.T) {
	rnd := randtest.New(t)
	names := []string{"client", "path", "user_agent", "x", strings.Repeat("n", 255)}
	var written []byte
	var events []match.Event
	for range 500 {
		var ev match.Event
		ev.Time = time.Unix(0, rnd.Int64()-rnd.Int64()).UTC()
		for _, i := range rnd.Perm(len(names))[:rnd.IntN(len(names))] {
			value := make([]byte, rnd.IntN(10)*rnd.IntN(100))
			for j := range value {
				value[j] = byte(rnd.Uint32())
			}
			ev.SetNamed(names[i], value)
		}
		before := len(written)
		written = Append(written, ev.Time, &ev)
		if n, ok := Size(&ev); !ok || len(written)-before > n {
			t.Fatalf("the size is %d, %t, for %d bytes", n, ok, len(written)-before)
		}
		events = append(events, ev)
	}
	var r Reader
	rest, ok := written, true
	for i := range events {
		if rest, ok = r.Next(rest); !ok || !equal(&r.Event, &events[i]) {
			t.Fatalf("event %d is %v, %t", i, &r.Event, ok)
		}
	}
	if _, ok := r.Next(rest); ok || len(rest) > 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
}

func equal(a, b *match.Event) bool {
	fields := func(ev *match.Event) map[string]string {
		all := make(map[string]string)
		for name, value := range ev.Fields() {
			all[name] = string(value)
		}
		return all
	}
	return maps.Equal(fields(a), fields(b)) && a.Time.Equal(b.Time)
}

// TestSize rejects what the form cannot have.
func TestSize(t *testing.T) {
	var ev match.Event
	ev.SetNamed(strings.Repeat("n", 256), []byte("v"))
	if _, ok := Size(&ev); ok {
		t.Error("a name of 256 bytes is accepted")
	}
}

// FuzzReader reads any bytes. What is read can be written, and is then read again.
func FuzzReader(f *testing.F) {
	var ev match.Event
	ev.Time = time.Unix(1700000000, 5)
	ev.Set(match.Client, []byte("192.0.2.1"))
	ev.SetNamed("x", []byte("\xff"))
	whole := Append(nil, ev.Time, &ev)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(bytes.Repeat([]byte{0}, 8), 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1))
	f.Add(append(bytes.Repeat([]byte{0}, 8), 2, 1, 'a', 1, 'b', 1, 'a', 1, 'c'))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r, again Reader
		for rest, ok := r.Next(data); ok; rest, ok = r.Next(rest) {
			if _, fits := Size(&r.Event); !fits {
				t.Fatalf("%v was read, and cannot be written", &r.Event)
			}
			text := Append(nil, r.Event.Time, &r.Event)
			if left, ok := again.Next(text); !ok || len(left) > 0 || !equal(&again.Event, &r.Event) {
				t.Fatalf("%v is read again as %v", &r.Event, &again.Event)
			}
		}
	})
}
