package httpapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// lists are usual, too.
var lists = []string{
	`{"events":[{"event":{"client":"203.0.113.9"},"cost":2},{"event":{"client":"203.0.113.9"}}]}`,
	" {\t\"events\" : [ { \"event\" : { } } , { \"cost\" : 0 , \"event\" : { \"a\" : \"b\" } } ] } ",
	`{"events":[]}`,
	`{"takes":[{"rule":"login","key":["192.0.2.1","ada"],"cost":3},{"rule":"login","key":"ada"}]}`,
	`{"takes":[]}`,
}

var usual = []string{
	`{"event":{"client":"203.0.113.9","path":"/x"},"cost":1}`,
	`{"event":{"client":"203.0.113.9"}}`,
	`{"event":{"client":"203.0.113.9"},"outcome_ms":60000}`,
	`{"for_ms":5,"event":{},"outcome_ms":0}`,
	`{"id":"k3nZ-_","event":{"status":"404"},"cost":2}`,
	`{"id":"","event":{}}`,
	` { "cost" : 0 , "event" : { } } `,
	"\t{\"event\":\n{\"client\":\"\",\"é\":\"ü\"}\r}",
	`{"event":{"a":"1","a":"2"},"cost":999999999999999}`,
	`{"rule":"login","key":"ada","cost":1}`,
	`{"rule":"login","key":["192.0.2.1","ada"]}`,
	`{"rule":"login","limit":600,"key":"ada","cost":2}`,
	`{"key":[ "a" , "b" ],"cost":0,"rule":""}`,
}

// The usual bodies are read the fast way: else nothing below would say anything.
func TestScanTakesTheUsual(t *testing.T) {
	for _, text := range usual {
		var ev match.Event
		one, other := scan{b: []byte(text)}, scan{b: []byte(text)}
		_, ok := one.check(&ev)
		_, _, _, ok2 := other.take(nil)
		if (!ok || !one.atEnd()) && (!ok2 || !other.atEnd()) {
			t.Errorf("%s is not taken", text)
		}
	}
	for _, text := range lists {
		_, ok := eventsOf([]byte(text))
		_, ok2 := takesOf([]byte(text))
		if !ok && !ok2 {
			t.Errorf("%s is not taken", text)
		}
	}
}

// check reads an event, as the route check does.
func (s *scan) check(ev *match.Event) (it item, ok bool) {
	it, ok = s.item(ev, nil)
	return it, ok && it.kind() == eventList
}

// take reads a key and its rule, as the route take does.
func (s *scan) take(dst []string) (rule string, key []string, cost uint64, ok bool) {
	it, ok := s.item(new(match.Event), dst)
	return it.rule, it.key, it.cost, ok && it.kind() == takeList
}

// eventsOf reads a list of events with two scans of it, as decideMany does.
func eventsOf(body []byte) (list []scannedEvent, ok bool) {
	s := scan{b: body}
	n, ok := s.many("events", func() bool {
		_, ok := s.check(new(match.Event))
		return ok
	})
	for range n {
		var e scannedEvent
		s.next()
		e.item, _ = s.check(&e.event)
		list = append(list, e)
	}
	return list, ok
}

type scannedEvent struct {
	event match.Event
	item
}

// takesOf is eventsOf for takes.
func takesOf(body []byte) (list []scannedTake, ok bool) {
	s := scan{b: body}
	n, ok := s.many("takes", func() bool {
		_, _, _, ok := s.take(nil)
		return ok
	})
	for range n {
		var e scannedTake
		s.next()
		e.rule, e.key, e.cost, _ = s.take(nil)
		list = append(list, e)
	}
	return list, ok
}

type scannedTake struct {
	rule string
	key  []string
	cost uint64
}

var unusual = []string{
	``, `{`, `{}`, `[]`, `null`, `{"event":null}`, `{"event":{"a":1}}`, `{"event":{"a":"\u0041"}}`, `{"event":{"a":"\n"}}`, "{\"event\":{\"a\":\"\n\"}}",
	`{"event":{}} x`, `{"event":{}}{}`, `{"event":{},}`, `{,"event":{}}`, `{"event":{},"cost":01}`, `{"event":{},"cost":-1}`, `{"event":{},"cost":1.5}`,
	`{"event":{},"cost":1e3}`, `{"event":{},"cost":"1"}`, `{"event":{},"cost":null}`, `{"event":{},"cost":9999999999999999999999}`, `{"event":{},"at":1}`,
	`{"event":{},"event":{}}`, `{"Event":{}}`, `{"event":{"":"x"}}`, `{"event":{"a":"b"`, `{"event":{"a":"b"}`, `{"event" {}}`, `{"event":{"a":"b" "c":"d"}}`,
	`{"rule":"r","key":[]}`, `{"rule":"r","key":["a",]}`, `{"rule":"r","key":["a" "b"]}`, `{"rule":"r","key":[1]}`, `{"rule":"r","key":"a\tb"}`,
	`{"event":{},"id":1}`, `{"event":{},"id":"a","id":"b"}`, `{"event":{},"outcome_ms":"1"}`, `{"event":{},"outcome_ms":-1}`, `{"id":"a"}`,
	`{"rule":"r","key":"k","id":"a"}`, `{"rule":"r","key":"k","outcome_ms":1}`,
	`{"rule":"r"}`, `{"key":"k"}`, `{"rule":"r","key":"k","x":1}`, `{"rule":"r","key":["1","2","3","4","5","6","7","8","9"]}`,
}

func TestScanLeavesTheUnusual(t *testing.T) {
	for _, text := range unusual {
		var ev match.Event
		one, other := scan{b: []byte(text)}, scan{b: []byte(text)}
		if _, ok := one.check(&ev); ok && one.atEnd() {
			t.Errorf("check takes %s", text)
		}
		if _, _, _, ok := other.take(nil); ok && other.atEnd() {
			t.Errorf("take takes %s", text)
		}
		if text == "" {
			continue // a list of none is usual
		}
		for _, list := range []string{`{"events":[` + text + `]}`, `{"events":[{"event":{}},` + text + `]}`, text} {
			if _, ok := eventsOf([]byte(list)); ok {
				t.Errorf("check takes %s", list)
			}
		}
		for _, list := range []string{`{"takes":[` + text + `]}`, `{"takes":[{"rule":"r","key":"k"},` + text + `]}`, text} {
			if _, ok := takesOf([]byte(list)); ok {
				t.Errorf("take takes %s", list)
			}
		}
	}
}

var unusualLists = []string{
	`{"events":[{"event":{}},]}`, `{"events":[,{"event":{}}]}`, `{"events":[{"event":{}}{"event":{}}]}`, `{"events":[{"event":{}}]`, `{"events":[{"event":{}}]}}`,
	`{"events":[{"event":{}}],"cost":1}`, `{"events":[{"event":{}}],"events":[]}`, `{"events":{}}`, `{"events":null}`, `{"events":[[]]}`, `{"events":[{"event":{}}`,
	`{"takes":[{"rule":"r","key":"k"},]}`, `{"takes":[{"rule":"r","key":"k"}],"rule":"r"}`, `{"takes":[{"rule":"r","key":"k"}]} x`,
}

func TestScanLeavesUnusualLists(t *testing.T) {
	for _, text := range unusualLists {
		if _, ok := eventsOf([]byte(text)); ok {
			t.Errorf("check takes %s", text)
		}
		if _, ok := takesOf([]byte(text)); ok {
			t.Errorf("take takes %s", text)
		}
	}
}

// What the scan takes, encoding/json takes as well, and for the same.
func FuzzScan(f *testing.F) {
	for _, text := range slices.Concat(usual, unusual, lists, unusualLists) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return // no scan sees it
		}
		var one scannedEvent
		s := scan{b: body}
		if it, ok := s.check(&one.event); ok && s.atEnd() {
			one.item = it
			req := strictly[judgeRequest](t, body)
			if req.Events != nil || !one.is(&req.judgeEvent) {
				t.Fatalf("%q: %+v; encoding/json has %+v", body, it, req)
			}
		}
		s = scan{b: body}
		if rule, key, cost, ok := s.take(nil); ok && s.atEnd() {
			req := strictly[judgeRequest](t, body)
			if got := (scannedTake{rule, key, cost}); req.Takes != nil || !got.is(&api.TakeItem{Rule: req.Rule, Key: req.Key, Cost: req.Cost}) {
				t.Fatalf("%q: %+v; encoding/json has %+v", body, got, req)
			}
		}
		if list, ok := eventsOf(body); ok {
			req := strictly[judgeRequest](t, body)
			same := slices.EqualFunc(list, req.Events, func(e scannedEvent, want judgeEvent) bool { return e.is(&want) })
			if req.Events == nil || req.Event != nil || req.Cost != nil || !same {
				t.Fatalf("%q: %d events; encoding/json has %+v", body, len(list), req)
			}
		}
		if list, ok := takesOf(body); ok {
			req := strictly[judgeRequest](t, body)
			same := slices.EqualFunc(list, req.Takes, func(e scannedTake, want api.ReserveTake) bool { return e.is(&want.TakeItem) })
			if req.Takes == nil || req.Rule != "" || given(req.Key) || req.Cost != nil || !same {
				t.Fatalf("%q: %+v; encoding/json has %+v", body, list, req)
			}
		}
	})
}

// strictly decodes a body that the scan has taken as the slow way does.
func strictly[T any](t *testing.T, body []byte) *T {
	t.Helper()
	var v T
	c := call{body: body}
	if err := c.decode(&v); err != nil {
		t.Fatalf("%q is taken; encoding/json says %v", body, err)
	}
	return &v
}

func (e *scannedEvent) is(want *judgeEvent) bool {
	if e.holds != (want.For != nil) || e.reports != (want.Outcome != nil) || e.byID != (want.ID != nil) ||
		e.holds && e.hold != *want.For || e.reports && e.report != *want.Outcome || e.byID && e.id != *want.ID {
		return false
	}
	for name, value := range want.Event {
		if string(e.event.GetNamed(name)) != value {
			return false
		}
	}
	return want.Event != nil && e.cost == costSaid(want.Cost)
}

func (e *scannedTake) is(want *api.TakeItem) bool {
	return want.Base64 == nil && e.rule == want.Rule && slices.Equal(e.key, want.Text) && e.cost == costSaid(want.Cost)
}

func costSaid(n *uint64) uint64 {
	if n == nil {
		return 1
	}
	return *n
}

// No body of any bytes does anything but be answered.
func FuzzBodies(f *testing.F) {
	for _, text := range append(usual, unusual...) {
		f.Add([]byte(text), uint8(0))
	}
	s := newServer(f, nil)
	var posts []string
	for _, r := range s.routes {
		if r.method == "POST" && r.path != rulesCheckPath && r.path != "/v1/rules/reload" {
			posts = append(posts, strings.Replace(r.path, "{name}", "c", 1))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, which uint8) {
		w := ask(s, request{method: "POST", path: posts[int(which)%len(posts)], body: string(body)})
		if w.Code >= 500 && w.Code != 503 || !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%q: %d %s", body, w.Code, w.Body)
		}
	})
}

// appendDecision writes what encoding/json would, for any rule's name.
func FuzzAppendDecision(f *testing.F) {
	f.Add(true, uint64(60), uint64(59), int64(0), int64(1), "per-client", int64(0))
	f.Add(false, uint64(1<<63), uint64(0), int64(-1), int64(1e6+1), "\"\\\x00\x1f\xff\u2028é", int64(1))
	f.Fuzz(func(t *testing.T, allowed bool, limit, remaining uint64, retry, reset int64, rule string, banned int64) {
		d := ratelimit.Decision{
			Allowed: allowed, Limit: limit, Remaining: remaining, RetryAfter: time.Duration(retry), ResetAfter: time.Duration(reset), Rule: rule,
		}
		if banned > 0 {
			d.BannedUntil = time.Unix(0, banned)
		}
		var got, want any
		b := appendDecision(nil, &d)
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		long, err := json.Marshal(engine.DecisionOf(&d))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(long, &want); err != nil {
			t.Fatal(err)
		}
		one, _ := json.Marshal(got)
		two, _ := json.Marshal(want)
		if !bytes.Equal(one, two) {
			t.Fatalf("%s; encoding/json writes %s", one, two)
		}
	})
}
