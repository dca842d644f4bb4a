package httpapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// strictly decodes b as the slow way does.
func strictly(b []byte, v any) error {
	c := call{body: b}
	return c.decode(v)
}

var usual = []string{
	`{"event":{"client":"203.0.113.9","path":"/x"},"cost":1}`,
	`{"event":{"client":"203.0.113.9"}}`,
	` { "cost" : 0 , "event" : { } } `,
	"\t{\"event\":\n{\"client\":\"\",\"é\":\"ü\"}\r}",
	`{"event":{"a":"1","a":"2"},"cost":999999999999999}`,
	`{"rule":"login","key":"ada","cost":1}`,
	`{"rule":"login","key":["192.0.2.1","ada"]}`,
	`{"key":[ "a" , "b" ],"cost":0,"rule":""}`,
}

// The usual bodies are read the fast way: else nothing below would say anything.
func TestScanTakesTheUsual(t *testing.T) {
	for _, text := range usual {
		var ev match.Event
		one, other := scan{b: []byte(text)}, scan{b: []byte(text)}
		_, ok := one.check(&ev)
		_, _, _, ok2 := other.take(new(call))
		if !ok && !ok2 {
			t.Errorf("%s is not taken", text)
		}
	}
}

var unusual = []string{
	``, `{`, `{}`, `[]`, `null`, `{"event":null}`, `{"event":{"a":1}}`, `{"event":{"a":"\u0041"}}`, `{"event":{"a":"\n"}}`, "{\"event\":{\"a\":\"\n\"}}",
	`{"event":{}} x`, `{"event":{}}{}`, `{"event":{},}`, `{,"event":{}}`, `{"event":{},"cost":01}`, `{"event":{},"cost":-1}`, `{"event":{},"cost":1.5}`,
	`{"event":{},"cost":1e3}`, `{"event":{},"cost":"1"}`, `{"event":{},"cost":null}`, `{"event":{},"cost":9999999999999999999999}`, `{"event":{},"at":1}`,
	`{"event":{},"event":{}}`, `{"Event":{}}`, `{"event":{"":"x"}}`, `{"event":{"a":"b"`, `{"event":{"a":"b"}`, `{"event" {}}`, `{"event":{"a":"b" "c":"d"}}`,
	`{"rule":"r","key":[]}`, `{"rule":"r","key":["a",]}`, `{"rule":"r","key":["a" "b"]}`, `{"rule":"r","key":[1]}`, `{"rule":"r","key":"a\tb"}`,
	`{"rule":"r"}`, `{"key":"k"}`, `{"rule":"r","key":"k","x":1}`, `{"rule":"r","key":["1","2","3","4","5","6","7","8","9"]}`,
}

func TestScanLeavesTheUnusual(t *testing.T) {
	for _, text := range unusual {
		var ev match.Event
		one, other := scan{b: []byte(text)}, scan{b: []byte(text)}
		if _, ok := one.check(&ev); ok {
			t.Errorf("check takes %s", text)
		}
		if _, _, _, ok := other.take(new(call)); ok {
			t.Errorf("take takes %s", text)
		}
	}
}

// What the scan takes, encoding/json takes as well, and for the same.
func FuzzScan(f *testing.F) {
	for _, text := range append(usual, unusual...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return // no scan sees it
		}
		var ev match.Event
		s := scan{b: body}
		if cost, ok := s.check(&ev); ok {
			var req checkRequest
			if err := strictly(body, &req); err != nil {
				t.Fatalf("%q is taken; encoding/json says %v", body, err)
			}
			if req.Event == nil || req.Events != nil || req.At != nil || req.Cost == nil && cost != 1 || req.Cost != nil && *req.Cost != cost {
				t.Fatalf("%q: cost %d; encoding/json has %+v", body, cost, req)
			}
			for name, value := range req.Event {
				if got := string(ev.GetNamed(name)); got != value {
					t.Fatalf("%q: %q is %q; encoding/json has %q", body, name, got, value)
				}
			}
		}
		s = scan{b: body}
		if rule, key, cost, ok := s.take(new(call)); ok {
			var req takeRequest
			if err := strictly(body, &req); err != nil {
				t.Fatalf("%q is taken; encoding/json says %v", body, err)
			}
			want, err := new(call).joined(req.Key)
			if err != nil || req.Rule != rule || want != key || req.Takes != nil || req.Cost == nil && cost != 1 || req.Cost != nil && *req.Cost != cost {
				t.Fatalf("%q: %q %q %d; encoding/json has %+v (%v)", body, rule, key, cost, req, err)
			}
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
	for _, r := range s.router.routes {
		if r.body == jsonBody && r.path != "/v1/rules/reload" {
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
		long, err := json.Marshal(decisionOf(&d))
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
