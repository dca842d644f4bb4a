package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
)

// A script answers the n-th request for the stream, without a network, so that time
// can be had at will.
type script func(n int, r *http.Request) (*http.Response, error)

// A transport is a script with the times of its requests.
type transport struct {
	script script
	asked  []time.Time
}

// RoundTrip answers one request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.asked = append(t.asked, time.Now())
	return t.script(len(t.asked), r)
}

// streaming is an answer with this body.
func streaming(body io.ReadCloser) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
}

func text(s string) (*http.Response, error) { return streaming(io.NopCloser(strings.NewReader(s))) }

func scripted(t *testing.T, s script) (*Client, *transport) {
	t.Helper()
	tr := &transport{script: s}
	c := must.Get(New("http://127.0.0.1:7380", Config{HTTPClient: &http.Client{Transport: tr}}))(t)
	return c, tr
}

// told writes events and errors as one line each, up to a number.
func told(ctx context.Context, c *Client, most int) []string {
	var lines []string
	for e, err := range c.Events(ctx) {
		line := string(e.Type)
		switch {
		case err != nil:
			line = "error: " + err.Error()
		case e.Ban != nil:
			line += fmt.Sprintf(" %s %q", e.Ban.Rule, e.Ban.Values())
		case e.Type == api.RatesTick:
			line += fmt.Sprintf(" %d %d", e.All.Allowed, e.Totals.Allowed)
		case e.Values() != nil:
			line += fmt.Sprintf(" %s %q", e.Rule, e.Values())
		}
		if lines = append(lines, line); len(lines) == most {
			break
		}
	}
	return lines
}

const aBan = `{"type":"ban","time":"2026-01-02T03:04:05Z","ban":{"rule":"r","key_base64":["Yf8="],"since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:05:05Z"}}`

func TestEventsOfOneStream(t *testing.T) {
	for _, tt := range []struct{ name, stream, want string }{
		{"every type", ": lately\n\nevent: ban\ndata: " + aBan + "\n\nevent: rates\ndata: {\"all\":{\"allowed\":2},\"totals\":{\"allowed\":9}}\n\n: ping\n\n" +
			"event: unban\ndata: {\"rule\":\"r\",\"key\":[\"k\"]}\n\nevent: hot\ndata: {\"rule\":\"h\",\"key\":[\"k\"],\"until\":\"2026-01-02T03:05:05Z\"}\n\nevent: rules\ndata: {}\n\n", "connected\nban r [\"a\\xff\"]\nrates 2 9\nunban r [\"k\"]\nhot h [\"k\"]\nrules"},
		{"bytes that are not UTF-8", "event: unban\ndata: {\"rule\":\"r\",\"key\":[\"a\uFFFD\"],\"key_base64\":[\"Yf8=\"]}\n\n", "connected\nunban r [\"a\\xff\"]"},
		{"CRLF, no blanks, two data lines", "event:unban\r\ndata:{\"rule\":\"r\",\r\ndata:\"key\":[\"k\"]}\r\n\r\n", "connected\nunban r [\"k\"]"},
		{"of no type, without data, cut off, unknown", "data: {}\n\nevent: ban\n\nid: 4\nevent: new\ndata: {}\n\nevent: ban\ndata: " + aBan, "connected\nnew"},
		{"resync", "event: resync\ndata: {}\n\nevent: rules\ndata: {}\n\n", "connected\nerror: the stream of events has ended: events came faster than they were read"},
		{"no JSON", "event: ban\ndata: {\n\nevent: rules\ndata: {}\n\n", "connected\nerror: the stream of events has ended: the data of event \"ban\" is not JSON: unexpected end of JSON input"},
		{"a line without end", "data: " + strings.Repeat("x", maxEvent+1), "connected\nerror: the stream of events has ended: a line is longer than 1 MiB"},
		{"an event without end", strings.Repeat("data: "+strings.Repeat("x", 1<<16)+"\n", 20), "connected\nerror: the stream of events has ended: an event is longer than 1 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := scripted(t, func(int, *http.Request) (*http.Response, error) { return text(tt.stream) })
			want := strings.Split(tt.want, "\n")
			if !strings.Contains(tt.want, "error") {
				want = append(want, "error: "+errLost.Error())
			}
			if got := told(t.Context(), c, len(want)); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("received\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestEventsBackOff loses every connection: waits grow to a bound, and begin again after a connection that has delivered
// something.
func TestEventsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const failures = 12
		c, tr := scripted(t, func(n int, _ *http.Request) (*http.Response, error) {
			if n == failures {
				return text("event: rules\ndata: {}\n\n")
			}
			return nil, errors.New("away")
		})
		lines := told(t.Context(), c, failures+4) // connected, rules, lost, and two more failures
		if lines[failures-1] != "connected" || lines[failures] != "rules" {
			t.Fatalf("told %q", lines)
		}
		var sum time.Duration
		for i := 1; i < len(tr.asked); i++ {
			n := i
			if i >= failures {
				n = i - failures + 1
			}
			bound, waited := longestWait(n), tr.asked[i].Sub(tr.asked[i-1])
			if waited < 0 || waited > bound {
				t.Errorf("wait %d is %v, bound %v", i, waited, bound)
			}
			if i < failures {
				sum += waited
			}
		}
		// Without jitter they were 90.75 s; all near 0 would be no backoff.
		if sum < 5*time.Second || sum > 88*time.Second {
			t.Errorf("all waits together are %v", sum)
		}
	})
}

// TestEventsRefused has a server that refuses the stream: only failures that may pass are tried again, and not before
// Retry-After.
func TestEventsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tr := scripted(t, func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 {
				return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"30"}}, Body: http.NoBody}, nil
			}
			return &http.Response{
				StatusCode: 401, Header: http.Header{"Content-Type": {"application/problem+json"}},
				Body: io.NopCloser(strings.NewReader(`{"detail":"no token","code":"NOAUTH"}`)),
			}, nil
		})
		lines := told(t.Context(), c, 99)
		if len(lines) != 2 || lines[1] != "error: NOAUTH no token" {
			t.Errorf("told %q", lines)
		}
		if waited := tr.asked[1].Sub(tr.asked[0]); waited < 30*time.Second {
			t.Errorf("tried again after %v", waited)
		}
	})
}

// TestEventsQuiet has a connection that stays open without data, which only a timeout detects, and one that sends a little
// now and then, which stays.
func TestEventsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tr := scripted(t, func(n int, r *http.Request) (*http.Response, error) {
			body, w := io.Pipe()
			go func() {
				for range 10 {
					if n > 1 {
						break
					}
					time.Sleep(40 * time.Second)
					io.WriteString(w, ": ping\n")
				}
				<-r.Context().Done()
				w.CloseWithError(r.Context().Err())
			}()
			return streaming(body)
		})
		began := time.Now()
		lines := told(t.Context(), c, 4)
		want := "connected\nerror: the stream of events has ended: nothing came for 45s"
		if got := strings.Join(lines[:2], "\n"); got != want || lines[2] != "connected" {
			t.Errorf("told %q", lines)
		}
		if took := tr.asked[1].Sub(began); took < 445*time.Second || took > 446*time.Second {
			t.Errorf("given up after %v, want 10 pings and 45 s", took)
		}
	})
}

// TestEventsEnd has the caller break off, and ctx end during a wait and during a stream: no error is reported, and no
// goroutine stays.
func TestEventsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := func(int, *http.Request) (*http.Response, error) { return nil, errors.New("away") }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		c, _ := scripted(t, away)
		lines := told(ctx, c, 0)
		if ctx.Err() == nil || len(lines) == 0 || lines[len(lines)-1] != "error: away" {
			t.Errorf("told %q", lines)
		}
		cancel()
		if lines := told(ctx, c, 0); len(lines) > 0 {
			t.Errorf("received %q after the end", lines)
		}
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "event: rules\ndata: {}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	c := must.Get(New(s.URL, Config{}))(t)
	defer c.Close()
	for _, most := range []int{1, 2} {
		if lines := told(t.Context(), c, most); len(lines) != most {
			t.Errorf("told %q", lines)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for e, err := range c.Events(ctx) {
		if n++; err != nil {
			t.Errorf("event %d: %v", n, err)
		}
		if e.Type == api.RulesChanged {
			cancel()
		}
	}
	if n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

// TestEventsOfAnother has an answer that is not a stream.
func TestEventsOfAnother(t *testing.T) {
	c, _ := scripted(t, func(int, *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader("event: rules\ndata: {}\n\n"))}, nil
	})
	lines := told(t.Context(), c, 1)
	if !strings.Contains(lines[0], `not a lately server: its events are "text/html"`) {
		t.Errorf("told %q", lines)
	}
}
