package httpapi

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/server/engine"
)

// A counterInfo is one counter.
type counterInfo struct {
	Name     string   `json:"name"`
	Fields   []string `json:"fields" doc:"of its key"`
	Spans    []int64  `json:"spans_ms" doc:"of its windows"`
	Made     bool     `json:"made" doc:"by adding to it, not by the rules file"`
	Sentence string   `json:"sentence"`
	Keys     int      `json:"keys"`
	Bytes    int64    `json:"bytes"`
}

type counterList struct {
	Counters []counterInfo `json:"counters"`
}

func listCounters(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	return c.answer(counterList{c.s.counters()})
}

func (s *Server) counters() []counterInfo {
	list := []counterInfo{}
	for i := range s.engine.Counters() {
		info := counterInfo{
			Name: i.Name, Fields: i.Fields, Spans: []int64{}, Made: i.Made, Sentence: i.Sentence, Keys: i.Keys, Bytes: i.Stats.Bytes,
		}
		for _, span := range i.Spans {
			info.Spans = append(info.Spans, span.Milliseconds())
		}
		list = append(list, info)
	}
	return list
}

// An addRequest adds to a key of a counter.
type addRequest struct {
	Key    keyArg   `json:"key,omitempty"`
	Base64 [][]byte `json:"key_base64,omitempty"`
	N      *uint64  `json:"n,omitempty" range:"cost" doc:"how many; 1 if it is left out"`
}

func add(c *call) error {
	var req addRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	n, err := amount(req.N)
	if err != nil {
		return err
	}
	values, err := req.Key.values(req.Base64)
	if err != nil {
		return err
	}
	key, err := c.counterKey(values)
	if err != nil {
		return err
	}
	if err := c.caller.Add(c.name, key, n); err != nil {
		return err
	}
	return c.answer(nothing{})
}

// The parts of a query about a key.
var (
	keyQuery  = parameter{name: "key", about: "the key; once for each field of the counter's key, in order", example: "203.0.113.9", many: true, needed: true}
	spanQuery = parameter{name: "span", about: "a span that ends now; the counter's longest if it is left out", example: "1m"}
)

type bounds struct {
	Lo uint64 `json:"lo" doc:"the true count is not below"`
	Hi uint64 `json:"hi" doc:"nor above"`
}

// keySpan returns the key and the span of the query.
func (c *call) keySpan() (key string, d time.Duration, err error) {
	q, err := c.query()
	if err != nil {
		return "", 0, err
	}
	if d, err = span(q, 0); err != nil {
		return "", 0, err
	}
	key, err = c.counterKey(q["key"])
	return key, d, err
}

// counterKey returns the key of the counter that the path names. It holds until the
// next call.
func (c *call) counterKey(values []string) (string, error) {
	if len(values) > 1 {
		if err := c.s.engine.CheckCounterKey(c.name, len(values)); err != nil {
			return "", err
		}
	}
	return c.joined(values)
}

func sum(c *call) error {
	key, d, err := c.keySpan()
	if err != nil {
		return err
	}
	lo, hi, err := c.caller.Sum(c.name, key, d)
	if err != nil {
		return err
	}
	return c.answer(bounds{lo, hi})
}

type rateAnswer struct {
	PerSecond float64 `json:"per_second"`
}

func rate(c *call) error {
	key, d, err := c.keySpan()
	if err != nil {
		return err
	}
	r, err := c.caller.Rate(c.name, key, d)
	if err != nil {
		return err
	}
	return c.answer(rateAnswer{r})
}

// A keyText is the values of a key for an answer. JSON has no bytes that are not
// UTF-8: where there are some, Base64 has the values as they are.
type keyText struct {
	Key    []string `json:"key"`
	Base64 [][]byte `json:"key_base64,omitempty" doc:"the key as it is, where key shows U+FFFD for what is not UTF-8"`
}

func keyTextOf(values []string) keyText {
	t := keyText{Key: values}
	for _, v := range values {
		if utf8.ValidString(v) {
			continue
		}
		t.Key = nil
		for _, v := range values {
			t.Key = append(t.Key, strings.ToValidUTF8(v, "\uFFFD"))
			t.Base64 = append(t.Base64, []byte(v))
		}
		return t
	}
	return t
}

type topKey struct {
	keyText
	bounds
}

type topList struct {
	Top []topKey `json:"top"`
}

func top(c *call) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	n, err := number(q, "n", 20, 1, 1000)
	if err != nil {
		return err
	}
	d, err := span(q, 0)
	if err != nil {
		return err
	}
	filter, err := engine.ParseKeyFilter(q.Get("pattern"), q.Get("network"))
	if err != nil {
		return err
	}
	keys, err := c.s.engine.Top(c.name, n, d, filter)
	if err != nil {
		return err
	}
	list := topList{[]topKey{}}
	for _, k := range keys {
		list.Top = append(list.Top, topKey{keyTextOf(k.Key), bounds{k.Lo, k.Hi}})
	}
	return c.answer(list)
}
