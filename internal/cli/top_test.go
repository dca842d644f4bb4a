package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/must"
)

func runTop(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	code = run(t.Context(), append([]string{"top"}, args...), strings.NewReader(""), &out, &complaints)
	return code, out.String(), complaints.String()
}

func TestTopOnce(t *testing.T) {
	t.Setenv("COLUMNS", "90")
	t.Setenv("LC_ALL", "C.UTF-8")
	s := cannedServer(t, nil)
	code, frame, stderr := runTop(t, "--once", "--addr", s.URL)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	fits(t, strings.TrimSuffix(frame, "\n"), 90, onceHeight)
	for _, want := range []string{"lately v1.2.0  " + s.URL, "● live", "Top keys of requests, last 1m", "203.0.113.9 ", "9,800–10,400", "per-client", "198.51.100.7, ada", "/product/42"} {
		if !strings.Contains(frame, want) {
			t.Errorf("no %q in\n%s", want, frame)
		}
	}
	if strings.Contains(frame, "q quit") || strings.Contains(frame, " \n") {
		t.Errorf("a footer or blanks at line ends in\n%s", frame)
	}
}

func TestTopJSON(t *testing.T) {
	s := cannedServer(t, nil)
	code, text, stderr := runTop(t, "--json", "--addr", s.URL, "--counter", "paths", "--span", "5m")
	if code != exitOK || stderr != "" || strings.Count(text, "\n") != 1 {
		t.Fatalf("exit code %d: %s\n%s", code, stderr, text)
	}
	var got topJSON
	must.Do(t, json.Unmarshal([]byte(text), &got))
	if got.Addr != s.URL || got.Version != "v1.2.0" || got.Uptime != 11640 || got.Counter != "paths" || got.Span != "5m" || got.Held != 1234 || len(got.Minute) != 60 {
		t.Errorf("%+v", got)
	}
	if k := got.Top[0]; k.Text[0] != "/product/42" || k.Lo != 9800 || k.Hi != 10400 {
		t.Errorf("the top key is %+v", k)
	}
	if r := got.Rules[2]; r.Name != "search" || !r.InShadow || r.Shadow != 812 {
		t.Errorf("a rule is %+v", r)
	}
	if len(got.Rules) != 5 || len(got.Bans) != 3 || got.Bans[1].Text[1] != "ada" || got.Hot[0].Rule != "product" {
		t.Errorf("%+v", got)
	}
}

// TestTopRequests has what is sent to the server: the span of the flag, at most that of the
// counter, and the token.
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
	token := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	code, _, stderr := runTop(t, "--once", "--addr", s.URL, "--token-file", token, "--span", "24h")
	if code != exitOK {
		t.Fatal(stderr)
	}
	if got := asked["/v1/counters/requests/top"]; got != "n=100&span=3600000ms;" {
		t.Errorf("top keys asked with %q", got)
	}
	// The server has been up for 3 h 14 min: what it decided in 24 h is what it
	// decided since then.
	if got := asked["/v1/rates"]; !strings.Contains(got, "points=1&rules=1&span=11639000ms;") {
		t.Errorf("rates asked with %q", got)
	}
}

func TestTopTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, cannedAnswer(r)) }))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must.Do(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	s.Config.ErrorLog = nil
	if code, _, stderr := runTop(t, "--once", "--addr", s.URL, "--ca-file", ca); code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A film is the frames of a view, one after each message.
type film struct {
	mu     sync.Mutex
	frames strings.Builder
}

// shoot is a filter of messages that lets all of them pass.
func (f *film) shoot(m tea.Model, msg tea.Msg) tea.Msg {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames.WriteString(m.View().Content + "\n")
	return msg
}

// wait waits until the film has all of these texts, each after the one before.
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
		ended <- topShow(t.Context(), c, topWant{span: time.Minute}, newTopPaint(true),
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
		t.Error("there is no colour: the test of NO_COLOR could not fail")
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
	err := topShow(t.Context(), c, topWant{span: time.Minute}, topPaint{}, options...)
	if failed, ok := errors.AsType[*inputError](err); !ok || !strings.Contains(failed.sentences[0], "NOAUTH the answer is 401") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := topShow(ctx, c, topWant{span: time.Minute}, topPaint{}, options...); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
