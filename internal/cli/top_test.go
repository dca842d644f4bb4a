package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/must"
)

// TestTopRequests checks the requests to the server: the span, at most the counter's, and the token.
func TestTopRequests(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]string{}
	s := cannedServer(t, func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer s3cret" || r.Method != http.MethodGet {
			t.Errorf("%s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		asked[r.URL.Path] += r.URL.RawQuery + ";"
		return false
	})
	c := must.Get(client.New(s.URL, client.Config{Token: "s3cret"}))(t)
	defer c.Close()
	must.Get(readTop(t.Context(), c, topWant{span: 24 * time.Hour, whole: true}))(t)
	if got := asked["/v1/counters/requests/top"]; got != "n=100&span=3600000ms;" {
		t.Errorf("request for top keys: %q", got)
	}
	// The server has been up for 3 h 14 min: what it decided in 24 h is what it
	// decided since then.
	if got := asked["/v1/rates"]; !strings.Contains(got, "points=1&rules=1&span=11639000ms;") {
		t.Errorf("request for rates: %q", got)
	}
}

// A film is the frames of a view, one after each message.
type film struct {
	mu     sync.Mutex
	frames strings.Builder
}

// shoot is a filter of messages that passes all of them.
func (f *film) shoot(m tea.Model, msg tea.Msg) tea.Msg {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames.WriteString(m.View().Content + "\n")
	return msg
}

// wait waits until the film has all of these texts, one after the other.
func (f *film) wait(t *testing.T, texts ...string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		f.mu.Lock()
		rest, found := f.frames.String(), true
		f.mu.Unlock()
		for _, text := range texts {
			_, after, ok := strings.Cut(rest, text)
			rest, found = after, found && ok
		}
		if found {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%q did not come", texts)
		case <-tick.C:
		}
	}
}

// A screen is a terminal that keeps its input.
type screen struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

// Write takes what a terminal is sent.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.Write(b)
}

// TestTopLive runs the whole view against a server that goes away and comes back, on
// a terminal that is a buffer.
func TestTopLive(t *testing.T) {
	var streams atomic.Int64
	var lost atomic.Bool
	s := cannedServer(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/events" {
			return false
		}
		n := streams.Add(1)
		if n == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		w.Header().Set("Content-Type", "text/event-stream")
		beat := time.NewTicker(20 * time.Millisecond) // servers take a second
		defer beat.Stop()
		for {
			io.WriteString(w, "event: rates\ndata: {\"all\":{\"allowed\":777},\"totals\":{}}\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return true
			case <-beat.C:
			}
			if n == 1 && lost.Load() {
				return true
			}
		}
	})
	c := must.Get(client.New(s.URL, client.Config{}))(t)
	defer c.Close()
	keyboard, typed := io.Pipe()
	terminal, seen := new(screen), new(film)
	ended := make(chan error, 1)
	go func() {
		ended <- topShow(t.Context(), c, newTopPaint(true),
			tea.WithInput(keyboard), tea.WithOutput(terminal), tea.WithWindowSize(100, 30),
			tea.WithFilter(seen.shoot), tea.WithEnvironment([]string{"TERM=xterm-256color", "CLICOLOR_FORCE=1"}))
	}()
	seen.wait(t, "● live", "203.0.113.9", "777/s")
	io.WriteString(typed, "4")
	seen.wait(t, "Refusals by rule, a second, last 1m", "span: 5m", "Refusals by rule, a second, last 5m")
	lost.Store(true)
	seen.wait(t, "○ lost ", "s: the stream of events has ended", "○ lost", "● live")
	io.WriteString(typed, "q")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(terminal.sent.String(), "\x1b[32m") {
		t.Error("no colour without NO_COLOR: the test could not fail")
	}
}

// TestTopNoColor has a view without colours on a terminal that has them.
func TestTopNoColor(t *testing.T) {
	m := cannedModel(t, newTopPaint(false), 120, 40)
	m.lost = errors.New("x")
	for _, live := range []bool{true, false} {
		m.live = live
		frame := m.View().Content
		for _, code := range []string{"\x1b[3", "\x1b[4", "\x1b[9", "\x1b[1;3", "\x1b[38"} {
			if strings.Contains(frame, code) {
				t.Errorf("%q in %q", code, frame)
			}
		}
	}
	if frame := cannedModel(t, newTopPaint(true), 120, 40).View().Content; !strings.Contains(frame, "\x1b[3") {
		t.Error("the control has no colours either")
	}
}

// TestTopUnauthorized has a server that refuses the token: the view ends with its error.
func TestTopUnauthorized(t *testing.T) {
	s := cannedServer(t, func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	c := must.Get(client.New(s.URL, client.Config{}))(t)
	defer c.Close()
	options := []tea.ProgramOption{tea.WithInput(nil), tea.WithOutput(new(screen)), tea.WithWindowSize(80, 24)}
	err := topShow(t.Context(), c, topPaint{}, options...)
	if failed, ok := errors.AsType[*inputError](err); !ok || !strings.Contains(failed.sentences[0], "NOAUTH the answer is 401") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := topShow(ctx, c, topPaint{}, options...); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
