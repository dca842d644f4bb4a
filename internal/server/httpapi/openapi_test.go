package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/demo"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// validate returns how v differs from the schema s of doc. It implements the keywords that the document uses, and rejects
// any other.
func validate(doc, s object, v any, at string) error {
	for word, arg := range s {
		var err error
		switch word {
		case "description", "contentEncoding":
		case "$ref":
			name := strings.TrimPrefix(arg.(string), "#/components/schemas/")
			err = validate(doc, doc["components"].(object)["schemas"].(object)[name].(object), v, at)
		case "type":
			if got := typeOf(v); got != arg && !(arg == "number" && got == "integer") {
				err = fmt.Errorf("%s is of type %s; %v in the schema", at, got, arg)
			}
		case "oneOf", "anyOf":
			err = validateSome(doc, arg.([]any), v, at, word == "oneOf")
		case "minimum":
			if n, ok := v.(float64); ok && n < arg.(float64) {
				err = fmt.Errorf("%s is %v; the least is %v", at, n, arg)
			}
		case "maximum":
			if n, ok := v.(float64); ok && n > arg.(float64) {
				err = fmt.Errorf("%s is %v; the most is %v", at, n, arg)
			}
		case "minItems":
			if l, ok := v.([]any); ok && len(l) < int(arg.(float64)) {
				err = fmt.Errorf("%s has %d items", at, len(l))
			}
		case "format":
			if _, e := time.Parse(time.RFC3339Nano, v.(string)); arg != "date-time" || e != nil {
				err = fmt.Errorf("%s is %v, want %v", at, v, arg)
			}
		case "items":
			for i, x := range v.([]any) {
				err = errors.Join(err, validate(doc, arg.(object), x, fmt.Sprintf("%s[%d]", at, i)))
			}
		case "properties", "additionalProperties":
			err = validateMembers(doc, s, v, at)
		case "required":
			for _, name := range arg.([]any) {
				if m, ok := v.(object); ok {
					if _, there := m[name.(string)]; !there {
						err = errors.Join(err, fmt.Errorf("%s has no %v", at, name))
					}
				}
			}
		default:
			err = fmt.Errorf("the schema has the keyword %s, which this test does not implement", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func validateSome(doc object, list []any, v any, at string, one bool) error {
	var errs []error
	for _, s := range list {
		if err := validate(doc, s.(object), v, at); err != nil {
			errs = append(errs, err)
		}
	}
	if n := len(list) - len(errs); n == 0 || one && n > 1 {
		return fmt.Errorf("%s is %d of the possible ones: %w", at, n, errors.Join(errs...))
	}
	return nil
}

func validateMembers(doc, s object, v any, at string) error {
	m, ok := v.(object)
	if !ok {
		return fmt.Errorf("%s is not an object", at)
	}
	properties, _ := s["properties"].(object)
	for name, x := range m {
		of, known := properties[name].(object)
		if !known {
			if of, known = s["additionalProperties"].(object); !known {
				return fmt.Errorf("%s has %s, which the schema does not have", at, name)
			}
		}
		if err := validate(doc, of, x, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	}
	return "object"
}

func readDocument(t *testing.T, s *Server) object {
	t.Helper()
	var doc object
	must.Do(t, json.Unmarshal(get(s, "/openapi.json").Body.Bytes(), &doc))
	return doc
}

// The validator finds errors, without which the test below would prove nothing.
func TestValidatorFinds(t *testing.T) {
	doc := readDocument(t, newServer(t, nil))
	decision := doc["components"].(object)["schemas"].(object)["Decision"]
	const good = `{"allowed":true,"limit":1,"remaining":0,"retry_after_ms":0,"reset_after_ms":1,"rule":"","banned_until_ms":0}`
	for text, want := range map[string]string{
		good: "",
		strings.Replace(good, `"limit":1,`, ``, 1):               "has no limit",
		strings.Replace(good, `"limit":1`, `"limit":"1"`, 1):     "type string",
		strings.Replace(good, `"limit":1`, `"limit":1.5`, 1):     "type number",
		strings.Replace(good, `"limit":1`, `"limit":-1`, 1):      "the least is 0",
		strings.Replace(good, `"limit":1`, `"limit":1,"x":1`, 1): "has x",
		`[]`: "no object",
	} {
		var v any
		must.Do(t, json.Unmarshal([]byte(text), &v))
		raw := must.Get(json.Marshal(decision))(t)
		var s object
		must.Do(t, json.Unmarshal(raw, &s))
		// Keywords are checked in any order, so a list may be reported in two ways.
		if err := validate(doc, s, v, "v"); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) && want != "no object" {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// A vector is a request with texts in its answer.
type vector struct {
	method, path, body string
	status             int
	want               string // in the answer
}

// vectors is requests that have every route give every kind of answer it has, on one
// server, in order.
var vectors = []vector{
	{"POST", "/v1/check", `{"event":{"client":"203.0.113.9","path":"/x"},"cost":1}`, 200, `{"allowed":true,"limit":60,"remaining":59,"retry_after_ms":0,"reset_after_ms":60000,"rule":"per-client","banned_until_ms":0}`},
	{"POST", "/v1/check", `{"event":{"client":"203.0.113.9","path":"\/x"},"cost":2}`, 200, `"remaining":57`},
	{"POST", "/v1/check", `{"event":{"client":"203.0.113.9","path":"/x"},"cost":61}`, 200, `"allowed":false,"limit":60,"remaining":57,"retry_after_ms":-1`},
	{"POST", "/v1/check", `{"event":{}}`, 200, `{"allowed":true,"limit":0,"remaining":0,"retry_after_ms":0,"reset_after_ms":0,"rule":"","banned_until_ms":0}`},
	{"POST", "/v1/check", `{"events":[{"event":{"client":"203.0.113.10","path":"/"}},{"event":{"client":"203.0.113.10","path":"/"},"cost":0},{}]}`, 200, `"remaining":59,`},
	{"POST", "/v1/check", `{"events":[]}`, 400, `"BADARG"`},
	{"POST", "/v1/check", `{"event":{"client":"a"},"events":[{"event":{}}]}`, 400, `body: must be one of event`},
	{"POST", "/v1/check", `{"cost":1}`, 400, `event: missing`},
	{"POST", "/v1/check", `{"event":{"client":"a"},"cost":0}`, 400, `cost: 0: must be 1 to 2147483648`},
	{"POST", "/v1/check", `{"event":{"client":"a"},"cost":2147483649}`, 400, `cost: 2147483649: must be`},
	{"POST", "/v1/check", `{"event":{"status":404}}`, 400, `JSON number: must be a string`},
	{"POST", "/v1/check", `{"event":{"client":"a"},"colour":1}`, 400, `\"colour\": unknown`},
	{"POST", "/v1/check", `{"event":{"client":"a"}} {}`, 400, `more than one value`},
	{"POST", "/v1/take", `{"rule":"login","key":["203.0.113.9","ada"]}`, 200, `{"allowed":true,"limit":5,"remaining":4,`},
	{"POST", "/v1/take", `{"rule":"login","key":"203.0.113.9\tada"}`, 200, `"remaining":3,`},
	{"POST", "/v1/take", `{"rule":"per-client","key":"\ud800"}`, 400, `body: half of a surrogate pair at byte 28`},
	{"POST", "/v1/take", `{"rule":"per-client","key":"\udc00\ud800"}`, 400, `half of a surrogate pair`},
	{"POST", "/v1/take", `{"rule":"per-client","key":"\\ud800"}`, 200, `"remaining":`},
	{"POST", "/v1/take", `{"rule":"per-client","key":"\ud83d\ude00"}`, 200, `"remaining":`},
	{"POST", "/v1/take", `{"rule":"per-client","key_base64":["MjAzLjAuMTEzLjEx"],"cost":3}`, 200, `"remaining":57,`},
	{"POST", "/v1/take", `{"takes":[{"rule":"per-client","key":"203.0.113.12"},{"rule":"none","key":"a"},{"rule":"login","key":"a"},{"rule":"login"}]}`, 200, `"error":{"code":"NORULE"`},
	{"POST", "/v1/take", `{"rule":"none","key":"a"}`, 404, `"NORULE"`},
	{"POST", "/v1/take", `{"rule":"login","key":"a"}`, 400, `"BADARG"`},
	{"POST", "/v1/take", `{"rule":"login","key":["a\tb","c"]}`, 200, `"remaining":4`},
	{"POST", "/v1/take", `{"rule":"per-client","key":7}`, 400, `key: 7: must be a string`},
	{"POST", "/v1/take", `{"rule":"per-client","key":"a","cost":true}`, 400, `"cost: JSON bool: must be a`},
	{"POST", "/v1/take", `{"takes":[{"rule":7,"key":"a"}]}`, 400, `"takes.rule: JSON number: must be a string`},
	{"POST", "/v1/take", `{"rule":"per-client","key":[]}`, 400, `key: []: must be a string`},
	{"POST", "/v1/peek", `{"rule":"per-client","key":"203.0.113.11"}`, 200, `"remaining":5`},
	{"POST", "/v1/peek", `{"event":{"client":"203.0.113.9","path":"/x"}}`, 200, `"rule":"per-client"`},
	{"POST", "/v1/peek", `{"takes":[{"rule":"per-client","key":"203.0.113.11"}]}`, 200, `{"decisions":[{"allowed":true`},
	{"POST", "/v1/peek", `{"events":[{"event":{"client":"203.0.113.9","path":"/x"}}]}`, 200, `{"decisions":[{"allowed":true`},
	{"POST", "/v1/peek", `{"event":{},"rule":"a"}`, 400, `body: must be one of event`},
	{"POST", "/v1/outcome", `{"event":{"client":"203.0.113.9","path":"/x","status":"401"}}`, 200, `{"allowed":true,"limit":0`},
	{"POST", "/v1/outcome", `{"events":[{"event":{"client":"203.0.113.9","status":"401"}},{"event":{"client":"203.0.113.9"}}]}`, 200, `"banned_until_ms":0},{"error":{"code":"BADARG","detail":"status, size, duration: all missing`},
	{"POST", "/v1/outcome", `{"event":{"client":"203.0.113.9","status":"600"}}`, 400, `status: \"600\": must be 100 to 599`},
	{"POST", "/v1/outcome", `{"id":"","event":{"status":"401"}}`, 200, `{"allowed":true,"limit":0`},
	{"POST", "/v1/outcome", `{"id":"x","event":{"status":"401"}}`, 404, `BADID`},
	{"POST", "/v1/outcome", `{"events":[{"id":"x","event":{"status":"401"}},{"\u0069d":"","event":{"status":"401"}}]}`, 200, `{"decisions":[{"error":{"code":"BADID"`},
	{"POST", "/v1/outcome", `{"id":"x","events":[{"event":{"status":"401"}}]}`, 400, `must be one of event and events`},
	{"POST", "/v1/check", `{"id":"x","event":{"client":"203.0.113.9"}}`, 400, `id: unknown here: must be part of a request to /v1/outcome`},
	{"POST", "/v1/check", `{"event":{"client":"203.0.113.9"},"outcome_ms":0}`, 400, `outcome_ms: 0: must be 1 to 86400000`},
	{"POST", "/v1/check", `{"event":{"client":"203.0.113.9"},"\u006futcome_ms":86400001}`, 400, `outcome_ms: 86400001: must be 1 to 86400000`},
	{"POST", "/v1/peek", `{"event":{"client":"203.0.113.9"},"outcome_ms":1}`, 400, `outcome_ms: unknown here`},
	{"POST", "/v1/outcome", `{"event":{"client":"203.0.113.9","status":"401"},"outcome_ms":1}`, 400, `outcome_ms: unknown here`},
	{"POST", "/v1/outcome", `{"rule":"per-client","key":"203.0.113.9"}`, 400, `body: must be one of event and events`},
	{"POST", "/v1/refund", `{"rule":"per-client","key":"203.0.113.11","n":2}`, 200, `{"refunded":2}`},
	{"POST", "/v1/refund", `{"rule":"per-client","key":"203.0.113.200"}`, 200, `{"refunded":0}`},
	{"POST", "/v1/take", `{"events":[{"event":{"client":"203.0.113.9"},"cost":null}]}`, 400, `body: must be one of rule with key, and takes`},
	{"POST", "/v1/refund", `{"key":"a"}`, 400, `rule: missing`},
	{"POST", "/v1/take", `{"rule":"queue","key":"203.0.113.12"}`, 200, `"rule":"queue","banned_until_ms":0}`},
	{"POST", "/v1/take", `{"rule":"queue","key":"203.0.113.12"}`, 200, `"rule":"queue","banned_until_ms":0,"delay_ms":`}, // of the clock's time
	{"POST", "/v1/peek", `{"rule":"queue","key":"203.0.113.12"}`, 200, `"delay_ms":`},
	{"GET", "/v1/key?field=client&value=203.0.113.12", "", 200, `"rule":"queue","banned_until_ms":0,"delay_ms":`},
	{"POST", "/v1/take", `{"rule":"under-way","key":"203.0.113.12","cost":2}`, 200, `"allowed":true`},
	{"POST", "/v1/take", `{"rule":"under-way","key":"203.0.113.12"}`, 200, `"allowed":false`},
	{"POST", "/v1/charge", `{"rule":"per-client","key":"203.0.113.31","cost":200}`, 200, `{}`},
	{"POST", "/v1/take", `{"rule":"per-client","key":"203.0.113.31"}`, 200, `"allowed":false`},
	{"POST", "/v1/charge", `{"charges":[{"rule":"per-client","key":"203.0.113.32"},{"rule":"none","key":"a"}]}`, 200, `{"charges":[{},{"error":{"code":"NORULE"`},
	{"POST", "/v1/charge", `{"rule":"per-client","key":"a","charges":[]}`, 400, `must be one of rule with key, and charges`},
	{"POST", "/v1/charge", `{"charges":[]}`, 400, `a list of 0 entries`},
	{"POST", "/v1/charge", `{"rule":"per-client","key":"a","cost":0}`, 400, `cost: 0: must be 1 to`},
	{"POST", "/v1/reserve", `{"rule":"per-client","key":"203.0.113.33","cost":2,"for_ms":1000}`, 200, `"banned_until_ms":0,"id":"`},
	{"POST", "/v1/reserve", `{"rule":"per-client","key":"203.0.113.33","cost":2000}`, 200, `{"allowed":false`},
	{"POST", "/v1/reserve", `{"event":{"client":"203.0.113.34"}}`, 200, `"id":"`},
	{"POST", "/v1/reserve", `{"takes":[{"rule":"per-client","key":"203.0.113.35"},{"rule":"per-client","key":"203.0.113.35","for_ms":0}]}`, 200, `"},{"error":{"code":"BADARG","detail":"for_ms: 0: must be 1 to 86400000"}}]}`},
	{"POST", "/v1/reserve", `{"events":[{"event":{"client":"203.0.113.36"},"for_ms":5}]}`, 200, `"id":"`},
	{"POST", "/v1/reserve", `{"events":[{"event":{"client":"203.0.113.36"}}],"for_ms":5}`, 400, `must be one of`},
	{"POST", "/v1/take", `{"rule":"per-client","key":"203.0.113.37","outcome_ms":1}`, 400, `outcome_ms: unknown here`},
	{"POST", "/v1/take", `{"takes":[{"rule":"per-client","key":"203.0.113.37","\u0069d":"x"}]}`, 400, `takes: entry 1: id: unknown here`},
	{"POST", "/v1/take", `{"takes":[{"rule":"per-client","key":"203.0.113.37","event":{}}]}`, 400, `takes: entry 1: event: unknown here: must be rule with key`},
	{"POST", "/v1/check", `{"events":[{"event":{"client":"203.0.113.9"}},{"event":{"client":"203.0.113.9"},"rule":"per-client"}]}`, 400, `events: entry 2: rule, key and limit: unknown here: must be event`},
	{"POST", "/v1/check", `{"events":[{"event":{"client":"203.0.113.9"},"for_ms":1000}]}`, 400, `events: entry 1: for_ms: unknown here`},
	{"POST", "/v1/check", `{"event":{"client":"203.0.113.9"},"for_ms":0}`, 400, `for_ms: unknown here: must be part of a request to /v1/reserve`},
	{"POST", "/v1/peek", `{"events":[{"event":{"client":"203.0.113.9"},"outcome_ms":0}]}`, 400, `events: entry 1: outcome_ms: unknown here`},
	{"POST", "/v1/take", `{"rule":"per-client","key":"203.0.113.37","for_ms":1000}`, 400, `for_ms: unknown here: must be part of a request to /v1/reserve`},
	{"POST", "/v1/settle", `{"settlements":[{"id":"x","cost":1},{"cost":1},{"id":"x"}]}`, 200, `{"settlements":[{"error":{"code":"BADID"`},
	{"POST", "/v1/settle", `{"id":"x","cost":1}`, 404, `BADID`},
	{"POST", "/v1/settle", `{"id":"x"}`, 400, `cost: missing`},
	{"POST", "/v1/settle", `{"cost":1}`, 400, `id: missing`},
	{"POST", "/v1/settle", `{"id":"x","cost":2147483649}`, 400, `cost: 2147483649: must be 0 to`},
	{"POST", "/v1/settle", `{"id":"x","cost":1,"settlements":[]}`, 400, `must be one of id with cost, and settlements`},
	{"POST", "/v1/release", `{"rule":"under-way","key":"203.0.113.12"}`, 200, `{"released":1}`},
	{"POST", "/v1/release", `{"rule":"under-way","key":"203.0.113.12","n":5}`, 200, `{"released":1}`},
	{"POST", "/v1/release", `{"rule":"under-way","key":"203.0.113.12"}`, 200, `{"released":0}`},
	{"POST", "/v1/release", `{"rule":"per-client","key":"203.0.113.12"}`, 400, `must be in-flight`},
	{"POST", "/v1/release", `{"rule":"none","key":"a"}`, 404, `NORULE`},
	{"POST", "/v1/throttle", `{"key":"user123","burst":15,"count":30,"period_ms":60000,"quantity":1}`, 200, `{"allowed":true,"limit":16,"remaining":15,"retry_after_ms":0,"reset_after_ms":2000}`},
	{"POST", "/v1/throttle", `{"key":"user123","burst":15,"count":30,"period_ms":60000,"quantity":17}`, 200, `{"allowed":false,"limit":16,`},
	{"POST", "/v1/throttle", `{"key":"u","burst":1,"count":1,"period_ms":0}`, 400, `period_ms: 0`},
	{"POST", "/v1/throttle", `{"key":"u","burst":1,"count":1,"period_ms":315360000001}`, 400, `period_ms: 315360000001: must be 1 to 315360000000`},
	{"POST", "/v1/reset", `{"rule":"per-client","key":"203.0.113.9"}`, 200, `{}`},
	{"POST", "/v1/peek", `{"rule":"per-client","key":"203.0.113.9"}`, 200, `"remaining":59`},
	{"POST", "/v1/counters/mine/add", `{"key":"k","n":7}`, 200, `{}`},
	{"POST", "/v1/counters/my/own:one/add", `{"key":["k"]}`, 200, `{}`},
	{"POST", "/v1/counters/mine/add", `{"n":7}`, 400, `key: missing`},
	{"POST", "/v1/counters/no%20name/add", `{"key":"k"}`, 400, `"BADARG"`},
	{"GET", "/v1/counters", "", 200, `"name":"requests","fields":["client"],"spans_ms":[60000,3600000],"dynamic":false`},
	{"GET", "/v1/counters?x=1", "", 400, `must be empty`},
	{"GET", "/v1/counters/mine/sum?key=k", "", 200, `{"lo":7,"hi":7,"estimate":7}`},
	{"GET", "/v1/counters/my/own:one/sum?key=k&span=1m", "", 200, `{"lo":1,"hi":1,"estimate":1}`},
	{"GET", "/v1/counters/mine/sum", "", 400, `key: missing`},
	{"GET", "/v1/counters/mine/sum?key=k&span=soon", "", 400, `span: \"soon\": must be a duration`},
	{"GET", "/v1/counters/none/sum?key=k", "", 400, `counter \"none\": unknown`},
	{"GET", "/v1/counters/mine/rate?key=k&span=1m", "", 200, `{"per_second":0.11`},
	{"GET", "/v1/counters/requests/top?n=2&span=1m", "", 200, `{"top":[{"key":["203.0.113.9"],"lo":3,"hi":3,"estimate":3,"peak_per_second":0.5,"refused":1,"refused_by":"per-client"}`},
	{"GET", "/v1/counters/requests/top?n=0", "", 400, `n: \"0\": must be 1 to 1000`},
	{"POST", "/v1/feeds/open", `{"feed":"web-1","process":"a1"}`, 200, `{"session":"a1.`},
	{"POST", "/v1/feeds/open", `{"feed":"","process":"a1"}`, 400, `feed: 0 bytes: must be 1 to 255`},
	{"POST", "/v1/feeds/events", `{"feed":"web-1","session":"a1.x","number":1,"events":"","state":"AA==","logs":[]}`, 404, `"code":"NOFEED"`},
	{"POST", "/v1/feeds/events", `{"feed":"web-1","session":"b1.x","number":1,"events":"","state":"AA==","logs":[]}`, 409, `another process`},
	{"POST", "/v1/feeds/events", `{"feed":"web-1","session":"a1.x","number":1,"events":"AA==","state":"AA==","logs":[]}`, 400, `index 0: must be whole`},
	{"POST", "/v1/bans", `{"rule":"flood","key":["203.0.113.66"],"for":"10m","reason":"too much"}`, 201, `"reason":"too much","source":"http"`},
	{"POST", "/v1/bans", `{"rule":"login","key_base64":["MTkyLjAuMi4x","/w=="],"for":"10m"}`, 201, `{"rule":"login","key_base64":["MTkyLjAuMi4x","/w=="]`},
	{"POST", "/v1/bans", `{"rule":"flood","key":"0.0.0.0/0","for":"10m"}`, 400, `too many clients: must be /8 or longer`},
	{"POST", "/v1/bans", `{"rule":"flood","key":"a","for":"never"}`, 400, `for: \"never\": must be a duration`},
	{"POST", "/v1/bans", `{"rule":"flood","key":"a","for":"4000d"}`, 400, `must be a duration of 1ms to 3650d`},
	{"POST", "/v1/bans", `{"rule":"none","key":"a","for":"1m"}`, 404, `"NORULE"`},
	{"POST", "/v1/bans?for=1h", `{"rule":"flood","key":"a","for":"1m"}`, 400, `query: \"for\": unknown: must be empty`},
	{"GET", "/v1/bans?rule=flood&q=113.66&limit=10", "", 200, `"total":1}`},
	{"GET", "/v1/bans?limit=1", "", 200, `"total":2,"next":"`},
	{"GET", "/v1/bans?offset=1", "", 400, `must be one of rule, q, limit, cursor`},
	{"GET", "/v1/bans?z=1&y=1&x=1&w=1&v=1&a=1", "", 400, `query: \"a\": unknown`},
	{"GET", "/v1/bans?cursor=x", "", 400, `cursor: \"x\": must be one that came with a page of bans`},
	{"GET", "/v1/decisions?ip=203.0.113.99", "", 200, `,"id":2,"origin":"crowdsec","scenario":"lately/flood","scope":"Ip","type":"ban","value":"203.0.113.99"}]`},
	{"GET", "/v1/decisions?ip=ada", "", 400, `query: ip: `},
	{"GET", "/v1/decisions/stream?startup=true&another=1", "", 200, `{"deleted":[],"new":[{"duration":"`},
	{"GET", "/v1/bans?limit=1001", "", 400, `must be 0 to 1000`},
	{"GET", "/v1/bans?limit=1&limit=2", "", 400, `2 times`},
	{"POST", "/v1/check", `{"event":{"client":"203.0.113.66","path":"/x"}}`, 200, `"rule":"flood","banned_until_ms":1`},
	{"GET", "/v1/refused?n=1&span=1m", "", 200, `{"refused":[{"rule":"flood","key":["203.0.113.66"],"lo":1,"hi":1,"estimate":1,"per_second":0.01`},
	{"GET", "/v1/explain?key=203.0.113.66", "", 200, `"refusals":[{"rule":"flood","sentence":"`},
	{"GET", "/v1/explain?key=nobody", "", 200, `"refusals":[]}`},
	{"GET", "/v1/explain?key=", "", 400, `key: 0 bytes: must be 1 to 1024`},
	{"GET", "/v1/explain", "", 400, `key: missing`},
	{"GET", "/v1/explain?key=203.0.113.66&key=b", "", 200, `{"values":["203.0.113.66","b"],`},
	{"GET", "/v1/refused?span=2h", "", 400, `span: 2h0m0s: must be 1s to 1h`},
	{"GET", "/v1/refused?n=0", "", 400, `n: \"0\": must be 1 to 1000`},
	{"GET", "/v1/key?field=client&value=203.0.113.66", "", 200, `"bans":[{"rule":"flood"`},
	{"GET", "/v1/key?field=client&field=user&value=203.0.113.9&value=ada", "", 200, `{"rule":"login","decision":{"allowed":true,"limit":5,"remaining":2,`},
	{"GET", "/v1/key?field=client", "", 400, `"BADARG"`},
	{"POST", "/v1/bans/unban", `{"rule":"flood","key":"203.0.113.66"}`, 200, `{"unbanned":1}`},
	{"POST", "/v1/bans/unban", `{"rule":"flood","key":"203.0.113.66"}`, 200, `{"unbanned":0}`},
	{"POST", "/v1/bans/unban", `{"rule":"flood","key":[]}`, 400, `key: []: must be a string`},
	{"POST", "/v1/bans/unban", `{"rule":"flood","key":null}`, 400, `key: null: must be a string`},
	{"POST", "/v1/bans/unban", `{"rule":"flood","key_base64":[]}`, 400, `key: missing: must be a string`},
	{"POST", "/v1/bans/unban", `{"rule":"flood","key":"a","network":"192.0.2.0/24"}`, 400, `key: must not be combined`},
	{"POST", "/v1/bans/unban", `{"rule":"flood","network":"203.0.113.0/24"}`, 200, `{"unbanned":0}`},
	{"POST", "/v1/bans/unban", `{}`, 400, `{"type":"about:blank","title":"Bad Request","status":400,"detail":"filter: missing: must be a rule, a pattern or a network; the pattern * selects every ban","code":"BADARG"}`},
	{"POST", "/v1/check", `{"event":{"path":"/product/1"},"cost":1}`, 200, `"allowed":true`},
	{"POST", "/v1/check", `{"event":{"path":"/product/1"},"cost":1.5}`, 400, `"detail":"cost: JSON number 1.5: must be a whole number in range"`},
	{"POST", "/v1/take", `{"takes":[{"rule":"login","key":"a","cost":"1"}]}`, 400, `"detail":"takes.cost: JSON string: must be a whole number in range"`},
	{"POST", "/v1/settle", `{"id":"a","cost":true}`, 400, `"detail":"cost: JSON bool: must be a whole number in range"`},
	{"POST", "/v1/settle", `[]`, 400, `"detail":"body: JSON array: must be an object"`},
	{"POST", "/v1/check", `{"events":[{"event":{"path":"/product/1"}},{"event":{"path":"/product/1"}},{"event":{"path":"/product/1"}},{"event":{"path":"/product/1"}}]}`, 200, `"allowed":true`},
	{"GET", "/v1/hot", "", 200, `{"hot":[{"rule":"product","key":["/product/1"],"since":"`},
	{"POST", "/v1/hot", `{"rule":"product","key":"/product/by-hand","ttl_ms":60000}`, 201, `{"rule":"product","key":["/product/by-hand"],"since":"`},
	{"POST", "/v1/hot", `{"rule":"product","key":"/p","ttl_ms":-1}`, 400, `must be 1 to 315360000000`},
	{"POST", "/v1/hot", `{"rule":"nosuch","key":"/p"}`, 404, `NORULE`},
	{"POST", "/v1/hot/report", `{"rule":"product","records":[{"key":"/product/r","count":2,"age_ms":5},{"key":["/product/r"]},{"key":"/product/r","age_ms":90000000}]}`, 200, `{"counted":2}`},
	{"POST", "/v1/hot/report", `{"rule":"product","records":[{"key":"/product/r","count":100},{"key":"/product/r","count":0}]}`, 400, `records: record 2: count: 0: must be 1 to`},
	{"POST", "/v1/hot/report", `{"rule":"product","records":[{"key":"/product/r","age_ms":-1}]}`, 400, `record 1: age_ms: -1: must be 0 to`},
	{"POST", "/v1/hot/report", `{"rule":"product","records":[{"key":["a","b"]}]}`, 400, `record 1: `},
	{"POST", "/v1/hot/report", `{"rule":"product","records":[{"count":1}]}`, 400, `record 1: key: missing`},
	{"POST", "/v1/hot/report", `{"rule":"product","records":[]}`, 400, `records: a list of 0 entries: must be 1 to 1000`},
	{"POST", "/v1/hot/report", `{"records":[{"key":"a"}]}`, 400, `rule: missing`},
	{"POST", "/v1/hot/report", `{"rule":"nosuch","records":[{"key":"a"}]}`, 404, `NORULE`},
	{"POST", "/v1/hot/cache", `{"rule":"product","hits":9,"misses":1,"loads":1,"stale":0}`, 200, `{}`},
	{"POST", "/v1/hot/cache", `{"hits":9,"misses":1,"loads":1,"stale":0}`, 400, `rule: missing`},
	{"POST", "/v1/hot/cache", `{"rule":"nosuch","hits":9,"misses":1,"loads":1,"stale":0}`, 404, `NORULE`},
	{"POST", "/v1/hot/cache", `{"rule":"product","hits":-1,"misses":1,"loads":1,"stale":0}`, 400, `must be a whole number in range`},
	{"POST", "/v1/hot/cache", `{"rule":"product","hits":9007199254740993,"misses":1,"loads":1,"stale":0}`, 400, `must be 0 to 9007199254740992`},
	{"GET", "/v1/hot/stats?rule=product", "", 200, `"hits":9,"misses":1,"loads":1,"stale":0,"share":0.9`},
	{"POST", "/v1/hot/changed", `{"rule":"product","key":"/product/by-hand"}`, 200, `{"hot":true}`},
	{"POST", "/v1/hot/remove", `{"rule":"product","key":"/product/by-hand"}`, 200, `{"removed":true}`},
	{"POST", "/v1/hot/remove", `{"rule":"product","key":"/product/by-hand"}`, 200, `{"removed":false}`},
	{"POST", "/v1/hot/ignore", `{"rule":"product","key":"/product/by-hand"}`, 200, `{}`},
	{"POST", "/v1/hot", `{"rule":"product","key":"/product/by-hand"}`, 409, `the key is ignored`},
	{"GET", "/v1/hot/stats?rule=product", "", 200, `"ignored_keys":[{"key":["/product/by-hand"]}]`},
	{"POST", "/v1/hot/ignore", `{"rule":"product","key":"/product/by-hand","off":true}`, 200, `{}`},
	{"GET", "/v1/rates?span=1m&points=60&rules=1", "", 200, `{"rates":[`},
	{"GET", "/v1/rates?span=2d", "", 400, `"BADARG"`},
	{"GET", "/v1/rules", "", 200, `"sentence":`},
	{"POST", "/v1/rules/check", rulesText, 200, `{"ok":true,"sentences":[`},
	{"POST", "/v1/rules/check", "version: 1\nlimits: [{name: a}]\n", 200, `{"ok":false,"errors":[{"line":2,"column":`},
	{"POST", "/v1/rules/try", `{"rules":"version: 1\nlimits: [{name: a}]\n"}`, 200, `{"errors":[{"line":2,"column":`},
	{"POST", "/v1/rules/try", `{"rules":"version: 1"}`, 409, `"code":"CONFLICT"`},
	{"POST", "/v1/rules/reload", `{}`, 200, `{"added":["a"],"removed":[],"changed":[],"bans_dropped":0}`},
	{"POST", "/v1/rules/reload", `{}`, 409, `"detail":"it would drop 7 bans","code":"CONFLICT"`},
	{"POST", "/v1/rules/reload", `{"drop_bans":true}`, 200, `{"added":[],"removed":["a"],"changed":[],"bans_dropped":7}`},
	{"POST", "/v1/rules/reload", `{}`, 422, `"errors":[{"line":2,"column":`},
	{"GET", "/v1/status", "", 200, `"demo":true,"role":"admin"`},
	{"POST", "/v1/demo/stop", `{}`, 200, `{}`},
	{"POST", "/v1/demo/stop", `{}`, 200, `{}`},
	{"GET", "/v1/status", "", 200, `},"role":"admin"`},
	{"POST", "/v1/login", `{"token":"any"}`, 200, `{"role":"admin"}`},
	{"POST", "/v1/logout", `{}`, 200, `{}`},
	{"GET", "/v1/auth", "", 403, `is not a trusted proxy: if it is your proxy, start the server with --trusted-proxy`},
	{"GET", "/metrics", "", 200, "lately_decisions_total"},
	{"GET", "/openapi.json", "", 200, `"openapi":"3.1.0"`},
	{"GET", "/healthz", "", 200, "ok"},
	{"GET", "/readyz", "", 200, "ok"},
	{"GET", "/", "", 200, "<html"},
	{"GET", "/console/index.html", "", 200, "<html"},
}

// Each answer matches the contract and the document, and each route has one.
func TestAnswersAreAsDocumented(t *testing.T) {
	reloads := 0
	s := newServer(t, func(c *Config) {
		c.Enforcer, c.Demo = enforcer(t, c.Engine), demo.New(c.Engine, 1)
		c.Reload = func(dropBans bool) (api.RuleChanges, error) {
			switch reloads++; {
			case reloads == 1:
				return api.RuleChanges{Added: []string{"a"}, Removed: []string{}, Changed: []string{}}, nil
			case dropBans:
				return api.RuleChanges{Added: []string{}, Removed: []string{"a"}, Changed: []string{}, BansDropped: 7}, nil
			case reloads == 2:
				return api.RuleChanges{}, apierror.New(api.Conflict, "it would drop 7 bans")
			}
			_, err := rules.Parse("rules.yaml", []byte("version: 1\nlimits: 3\n"))
			return api.RuleChanges{}, err
		}
	})
	doc := readDocument(t, s)
	asked := map[string]bool{"events": true, "watchHot": true, "forwardAuth": true, "forwardOutcome": true, "judgeFeed": true} // in tests of their own
	for _, v := range vectors {
		r := request{method: v.method, path: v.path, body: v.body}
		if v.path == rulesCheckPath {
			r.media = "application/yaml"
		}
		w := ask(s, r)
		if w.Code != v.status || !strings.Contains(w.Body.String(), v.want) {
			t.Errorf("%s %s %s: %d %s; want %d with %s", v.method, v.path, v.body, w.Code, w.Body, v.status, v.want)
		}
		var c call
		if err := s.find(&c, httptest.NewRequest(v.method, v.path, nil)); err != nil {
			t.Fatalf("%s %s: %v", v.method, v.path, err)
		}
		route := c.route
		if w.Code < 300 {
			asked[route.id] = true
		}
		op, ok := doc["paths"].(object)[strings.TrimSuffix(route.path, "{$}")].(object)[strings.ToLower(v.method)].(object)
		if !ok {
			t.Fatalf("%s %s: the document has no such operation", v.method, v.path)
		}
		responses := op["responses"].(object)
		response, ok := responses[fmt.Sprint(w.Code)].(object)
		if !ok {
			response, ok = responses[fmt.Sprintf("%dXX", w.Code/100)].(object)
		}
		if !ok {
			t.Fatalf("%s %s answers %d, which the document has not", v.method, v.path, w.Code)
		}
		media, ok := response["content"].(object)[w.Header().Get("Content-Type")].(object)
		if !ok && route.id != "consoleFile" {
			t.Errorf("%s: Content-Type is %q; the document has %v", v.path, w.Header().Get("Content-Type"), response["content"])
		}
		if !strings.HasSuffix(w.Header().Get("Content-Type"), "json") {
			continue
		}
		var body any
		must.Do(t, json.Unmarshal(w.Body.Bytes(), &body))
		if err := validate(doc, media["schema"].(object), body, route.id); err != nil {
			t.Errorf("%s %s %s answers %s: %v", v.method, v.path, v.body, w.Body, err)
		}
	}
	for i := range s.routes {
		if id := s.routes[i].id; !asked[id] {
			t.Errorf("no request has the route %s give a good answer", id)
		}
	}
}

// The document has every route, its query, its role, and no id twice.
func TestDocumentHasEveryRoute(t *testing.T) {
	s := newServer(t, nil)
	doc := readDocument(t, s)
	var ids []string
	for i := range s.routes {
		r := &s.routes[i]
		method := strings.ToLower(cmp.Or(r.method, "GET"))
		op, ok := doc["paths"].(object)[strings.TrimSuffix(r.path, "{$}")].(object)[method].(object)
		if !ok {
			t.Fatalf("%s %s is not in the document", r.method, r.path)
		}
		ids = append(ids, op["operationId"].(string))
		params, _ := op["parameters"].([]any)
		want := len(r.query) + strings.Count(r.path, "{name}")
		if len(params) != want || (len(op["security"].([]any)) == 0) != (r.role == access.None) || (op["requestBody"] == nil) != (r.method != "POST") {
			t.Errorf("%s %s: %v", r.method, r.path, op)
		}
	}
	slices.Sort(ids)
	if n := len(ids); len(slices.Compact(ids)) != n {
		t.Errorf("ids are there twice: %v", ids)
	}
}

// TestDocumentIsLinted has the linter of Redocly find nothing in the document, and no
// schema of an object that has no name.
func TestDocumentIsLinted(t *testing.T) {
	doc := readDocument(t, newServer(t, nil))
	schemas := doc["components"].(object)["schemas"].(object)
	for _, name := range []string{"Problem", "Decision", "CheckRequest", "Ban", "Status"} {
		if schemas[name] == nil {
			t.Errorf("no schema %s", name)
		}
	}
	raw, err := json.Marshal(doc["paths"])
	if err != nil || strings.Contains(string(raw), `"properties"`) {
		t.Errorf("an operation has an inline object, %v", err)
	}
	redocly := os.Getenv("LATELY_REDOCLY")
	if redocly == "" {
		redocly = filepath.Join("..", "..", "..", "bin", "node", "node_modules", ".bin", "redocly")
	}
	if _, err := exec.LookPath(redocly); err != nil {
		t.Skip("SKIP redocly lint, which make node-modules installs:", err)
	}
	lint := func(doc object) (string, error) {
		raw := must.Get(json.Marshal(doc))(t)
		path := filepath.Join(t.TempDir(), "openapi.json")
		must.Do(t, os.WriteFile(path, raw, 0o600))
		cmd := exec.Command(redocly, "lint", "--max-problems", "20", path)
		cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := lint(doc); err != nil || !strings.Contains(out, "is valid") || regexp.MustCompile(`[0-9]+ warning`).MatchString(out) {
		t.Errorf("%v\n%s", err, out)
	}
	delete(doc["paths"].(object)["/v1/login"].(object)["post"].(object), "security")
	if out, err := lint(doc); err == nil {
		t.Errorf("a document with a mistake passes: this test cannot fail\n%s", out)
	}
}

// TestCostsOfTheDocument compares the least and the most that the document allows of
// costs and amounts with what the server accepts.
func TestCostsOfTheDocument(t *testing.T) {
	s := newServer(t, nil)
	schemas := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case object:
			if properties, ok := v["properties"].(object); ok {
				for _, name := range []string{"cost", "n"} {
					p, ok := properties[name].(object)
					if !ok || p["type"] != "integer" || p["maximum"] == nil && p["minimum"] == nil {
						continue
					}
					schemas++
					for _, n := range []float64{0, 1, engine.MaxCost, engine.MaxCost + 1} {
						allowed := validate(nil, p, n, name) == nil
						check := checkAmount
						if p["minimum"] == 0.0 { // a reservation may have cost nothing
							check = checkActual
						}
						if accepted := check(name, uint64(n)) == nil; allowed != accepted {
							t.Errorf("%s of %v: accepted is %t, %t in the document", name, n, accepted, allowed)
						}
					}
				}
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(readDocument(t, s))
	if schemas < 5 {
		t.Errorf("%d schemas of a cost or an amount: the test has no teeth", schemas)
	}
}

// A server without a demo answers so.
func TestNoDemo(t *testing.T) {
	w := ask(newServer(t, nil), request{method: "POST", path: "/v1/demo/stop", body: "{}"})
	if w.Code != 400 || !strings.Contains(w.Body.String(), "there is no demo") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
