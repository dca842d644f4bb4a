package httpapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// lists are usual, too.
var lists = []string{
	`{"events":[{"event":{"client":"203.0.113.9"},"cost":2},{"event":{"client":"203.0.113.9"}}]}`,
	" {\t\"events\" : [ { \"event\" : { } } , { \"cost\" : 7 , \"event\" : { \"a\" : \"b\" } } ] } ",
	`{"events":[]}`,
	`{"takes":[{"rule":"login","key":["192.0.2.1","ada"],"cost":3},{"rule":"login","key":"ada"}]}`,
	`{"takes":[]}`,
}

var usual = []string{
	`{"event":{"client":"203.0.113.9","path":"/x"},"cost":1}`,
	`{"event":{"client":"203.0.113.9"}}`,
	`{"event":{"client":"203.0.113.9"},"outcome_ms":60000}`,
	`{"for_ms":5,"event":{},"outcome_ms":86400000}`,
	`{"id":"k3nZ-_","event":{"status":"404"},"cost":2}`,
	`{"id":"","event":{}}`,
	` { "cost" : 5 , "event" : { } } `,
	"\t{\"event\":\n{\"client\":\"\",\"é\":\"ü\"}\r}",
	`{"event":{"a":"1","a":"2"},"cost":2147483648}`,
	`{"rule":"login","key":"ada","cost":1}`,
	`{"rule":"login","key":["192.0.2.1","ada"]}`,
	`{"rule":"login","limit":600,"key":"ada","cost":2}`,
	`{"key":[ "a" , "b" ],"cost":1,"rule":"r"}`,
	`{"rule":"login","key":"ada","for_ms":1,"outcome_ms":1,"id":""}`,
}

// The usual bodies take the fast path: otherwise the checks below would prove nothing.
func TestScanTakesTheUsual(t *testing.T) {
	for _, text := range slices.Concat(usual, lists) {
		if _, ok := scanned([]byte(text)); !ok {
			t.Errorf("%s is not taken", text)
		}
	}
}

// A scannedItem is an item with its own event.
type scannedItem struct {
	item
	event match.Event
}

// scanned reads a body with one or several items, as judge does: lists are scanned twice.
func scanned(body []byte) (list []scannedItem, ok bool) {
	one := scannedItem{}
	s := scan{b: body}
	if one.item, ok = s.item(&one.event, nil); ok && s.atEnd() {
		return []scannedItem{one}, true
	}
	for _, kind := range []string{eventList, takeList} {
		s := scan{b: body}
		n, ok := s.many(kind, func() bool {
			it, ok := s.item(new(match.Event), nil)
			return ok && it.kind() == kind
		})
		if !ok {
			continue
		}
		list = make([]scannedItem, n)
		for i := range list {
			s.next()
			list[i].item, _ = s.item(&list[i].event, nil)
		}
		return list, true
	}
	return nil, false
}

var unusual = []string{
	``, `{`, `{}`, `[]`, `null`, `{"event":null}`, `{"event":{"a":1}}`, `{"event":{"a":"\u0041"}}`, `{"event":{"a":"\n"}}`, "{\"event\":{\"a\":\"\n\"}}",
	`{"event":{}} x`, `{"event":{}}{}`, `{"event":{},}`, `{,"event":{}}`, `{"event":{},"cost":01}`, `{"event":{},"cost":-1}`, `{"event":{},"cost":1.5}`,
	`{"event":{},"cost":1e3}`, `{"event":{},"cost":"1"}`, `{"event":{},"cost":null}`, `{"event":{},"cost":9999999999999999999999}`, `{"event":{},"at":1}`,
	`{"event":{},"event":{}}`, `{"Event":{}}`, `{"event":{"":"x"}}`, `{"event":{"a":"b"`, `{"event":{"a":"b"}`, `{"event" {}}`, `{"event":{"a":"b" "c":"d"}}`,
	`{"rule":"r","key":[]}`, `{"rule":"r","key":["a",]}`, `{"rule":"r","key":["a" "b"]}`, `{"rule":"r","key":[1]}`, `{"rule":"r","key":"a\tb"}`,
	`{"event":{},"id":1}`, `{"event":{},"id":"a","id":"b"}`, `{"event":{},"outcome_ms":"1"}`, `{"event":{},"outcome_ms":-1}`, `{"id":"a"}`,
	`{"event":{},"cost":0}`, `{"event":{},"cost":2147483649}`, `{"event":{},"for_ms":0}`, `{"event":{},"outcome_ms":86400001}`, `{"rule":"r","key":"k","limit":0}`,
	`{"rule":"r"}`, `{"key":"k"}`, `{"rule":"","key":"k"}`, `{"rule":"r","key":"k","x":1}`, `{"rule":"r","key":["1","2","3","4","5","6","7","8","9"]}`,
}

// TestScanLeavesTheUnusual has the decoder read unusual bodies, alone and in lists.
func TestScanLeavesTheUnusual(t *testing.T) {
	for _, text := range slices.Concat(unusual, unusualLists) {
		bodies := []string{text}
		if text != "" { // an empty list is usual
			bodies = append(bodies, `{"events":[`+text+`]}`, `{"events":[{"event":{}},`+text+`]}`, `{"takes":[`+text+`]}`, `{"takes":[{"rule":"r","key":"k"},`+text+`]}`)
		}
		for _, body := range bodies {
			if _, ok := scanned([]byte(body)); ok {
				t.Errorf("taken: %s", body)
			}
		}
	}
}

var unusualLists = []string{
	`{"events":[{"event":{}},]}`, `{"events":[,{"event":{}}]}`, `{"events":[{"event":{}}{"event":{}}]}`, `{"events":[{"event":{}}]`, `{"events":[{"event":{}}]}}`,
	`{"events":[{"event":{}}],"cost":1}`, `{"events":[{"event":{}}],"events":[]}`, `{"events":{}}`, `{"events":null}`, `{"events":[[]]}`, `{"events":[{"event":{}}`,
	`{"takes":[{"rule":"r","key":"k"},]}`, `{"takes":[{"rule":"r","key":"k"}],"rule":"r"}`, `{"takes":[{"rule":"r","key":"k"}]} x`,
}

// Bodies that the scan accepts are accepted by encoding/json as well, with the same values.
func FuzzScan(f *testing.F) {
	for _, text := range slices.Concat(usual, unusual, lists, unusualLists) {
		f.Add([]byte(text))
	}
	server := newServer(f, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		list, ok := scanned(body)
		if !utf8.Valid(body) || !ok { // no scan sees other bytes
			return
		}
		var req judgeRequest
		c := call{s: server, session: server.Engine.Session(), body: body}
		if err := c.decode(&req); err != nil {
			t.Fatalf("%q is accepted; error of encoding/json: %v", body, err)
		}
		want := slices.Concat(req.Events, req.Takes)
		if one := reflect.ValueOf(req.judgeItem).IsZero(); one == (len(list) == 1 && req.Events == nil && req.Takes == nil) {
			t.Fatalf("%q is taken; encoding/json has %+v", body, req)
		} else if !one {
			want = append(want, req.judgeItem)
		}
		same := slices.EqualFunc(list, want, func(x scannedItem, want judgeItem) bool {
			it, err := c.decoded(&want, x.kind())
			got := x.item
			if it.ev != nil && got.ev != nil {
				fields := maps.Collect(it.ev.Fields())
				it.ev, got.ev = nil, nil
				for name, value := range x.event.Fields() {
					if string(fields[name]) != string(value) {
						return false
					}
				}
			}
			return err == nil && reflect.DeepEqual(got, it)
		})
		if !same {
			t.Fatalf("%q: %+v; encoding/json has %+v", body, list, req)
		}
	})
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
		long := must.Get(json.Marshal(engine.DecisionOf(&d)))(t)
		must.Do(t, json.Unmarshal(long, &want))
		one, _ := json.Marshal(got)
		two, _ := json.Marshal(want)
		if !bytes.Equal(one, two) {
			t.Fatalf("%s; encoding/json writes %s", one, two)
		}
	})
}
