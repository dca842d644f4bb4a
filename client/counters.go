package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"
)

// A Counter is what a server counts for charts and top lists.
type Counter struct {
	Name     string
	Fields   []string        // of its key
	Spans    []time.Duration // of its windows
	Made     bool            // by adding to it, not by the rules file
	Sentence string          // what it counts
	Keys     int             // that it knows now
	Bytes    int64           // that it takes
}

// UnmarshalJSON reads a counter as servers write it.
func (c *Counter) UnmarshalJSON(b []byte) error {
	var wire struct {
		Name     string   `json:"name"`
		Fields   []string `json:"fields"`
		Spans    []int64  `json:"spans_ms"`
		Made     bool     `json:"made"`
		Sentence string   `json:"sentence"`
		Keys     int      `json:"keys"`
		Bytes    int64    `json:"bytes"`
	}
	if err := json.Unmarshal(b, &wire); err != nil {
		return err
	}
	*c = Counter{Name: wire.Name, Fields: wire.Fields, Made: wire.Made, Sentence: wire.Sentence, Keys: wire.Keys, Bytes: wire.Bytes}
	for _, ms := range wire.Spans {
		c.Spans = append(c.Spans, milliseconds(ms))
	}
	return nil
}

// Counters returns the server's counters, those of the rules file first.
func (c *Client) Counters(ctx context.Context) ([]Counter, error) {
	var out struct {
		Counters []Counter `json:"counters"`
	}
	err := c.get(ctx, "/v1/counters", nil, &out)
	return out.Counters, err
}

// Add adds n to a key of a counter. A counter that is not there is made, if the
// server has room for it.
func (c *Client) Add(ctx context.Context, counter string, n uint64, key ...string) error {
	in := struct {
		keyText
		N uint64 `json:"n"`
	}{wireKey(key), n}
	return c.post(ctx, counterPath(counter, "add"), in, nil)
}

// Sum returns the bounds of a key's count over a span that ends now: the true count
// lies in [lo, hi]. Span 0 is the counter's longest.
func (c *Client) Sum(ctx context.Context, counter string, span time.Duration, key ...string) (lo, hi uint64, err error) {
	query := spanQuery(span)
	query["key"] = key
	var out struct {
		Lo uint64 `json:"lo"`
		Hi uint64 `json:"hi"`
	}
	err = c.get(ctx, counterPath(counter, "sum"), query, &out)
	return out.Lo, out.Hi, err
}

// A KeyCount is a key with its bounds: the true count lies in [Lo, Hi].
type KeyCount struct {
	Key    []string // the values of its fields
	Lo, Hi uint64
}

// UnmarshalJSON reads a key with its bounds as servers write it.
func (k *KeyCount) UnmarshalJSON(b []byte) error {
	var wire struct {
		keyText
		Lo uint64 `json:"lo"`
		Hi uint64 `json:"hi"`
	}
	if err := json.Unmarshal(b, &wire); err != nil {
		return err
	}
	*k = KeyCount{wire.values(), wire.Lo, wire.Hi}
	return nil
}

// Top returns the n keys of a counter with the largest counts over a span that ends
// now, the largest first. Span 0 is the counter's longest. It costs the server one
// pass over the counter's keys.
func (c *Client) Top(ctx context.Context, counter string, n int, span time.Duration) ([]KeyCount, error) {
	query := spanQuery(span)
	query.Set("n", strconv.Itoa(n))
	var out struct {
		Top []KeyCount `json:"top"`
	}
	err := c.get(ctx, counterPath(counter, "top"), query, &out)
	return out.Top, err
}

func counterPath(counter, verb string) string {
	return "/v1/counters/" + url.PathEscape(counter) + "/" + verb
}

func spanQuery(span time.Duration) url.Values {
	if span == 0 {
		return url.Values{}
	}
	return url.Values{"span": {spanText(span)}}
}
