//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// A following is a process of `lately follow --addr`.
type following struct {
	cmd *exec.Cmd
	log logFile
}

// followTo starts a process that sends the events of a log to a server.
func followTo(t *testing.T, server string, args ...string) *following {
	t.Helper()
	f := &following{log: logFile(filepath.Join(t.TempDir(), "follow"))}
	log := must.Get(os.Create(string(f.log)))(t)
	defer log.Close()
	f.cmd = exec.Command("lately", append([]string{"follow", "--addr", server}, args...)...)
	f.cmd.Stderr, f.cmd.Stdout = log, log
	must.Do(t, f.cmd.Start())
	t.Cleanup(f.kill)
	return f
}

func (f *following) kill() {
	if f.cmd.ProcessState == nil {
		_ = f.cmd.Process.Kill()
		_ = f.cmd.Wait() // ends with the error of a killed process
	}
}

// TestFollowServerKilled kills a server, and the process that follows a log for it, at any moment. The log
// is written to and rotated meanwhile. In the end the server has counted each line once, also if events wait for older ones.
func TestFollowServerKilled(t *testing.T) {
	rounds := 5
	if os.Getenv("LATELY_LONG") != "" {
		rounds = 100
	}
	rnd := randtest.New(t)
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.yaml")
	appendTo(t, rules, killRules)
	log := &rotatedLog{t: t, rnd: rnd, path: filepath.Join(dir, "access.log"), counts: map[string]int{}}
	addr := freeport.Addr(t)
	args := []string{"--http", addr, "--rules", rules, "--data", filepath.Join(dir, "data"), "--snapshot-every", "1s"}
	clients := []string{"192.0.2.1", "192.0.2.2", "198.51.100.7", "2001:db8::"}
	log.write(1000, clients...)
	server := serve(t, args...)
	follow := func() *following {
		args := []string{log.path + "=clf"}
		if rnd.IntN(2) == 0 {
			args = append(args, "--lateness", "1s")
		}
		return followTo(t, addr, args...)
	}
	follower := follow()
	marks := 0
	caughtUp := func() {
		t.Helper()
		marks++
		mark := fmt.Sprintf("mark%d", marks)
		log.write(1, mark)
		c := server.dial()
		for deadline := time.Now().Add(2 * time.Minute); c.say("SUM", "requests", mark) != "1"; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the last line is not counted\n%s\n%s", server.log.String(), follower.log.String())
			}
		}
		for client, want := range log.counts {
			if got := c.say("SUM", "requests", client); got != strconv.Itoa(want) {
				t.Errorf("%s: %s lines are counted, want %d\n%s\n%s", client, got, want, server.log.String(), follower.log.String())
			}
		}
	}
	caughtUp()
	for range rounds {
		for range 1 + rnd.IntN(5) {
			log.write(rnd.IntN(4000), clients...)
			if rnd.IntN(3) == 0 {
				log.rotate()
				log.write(rnd.IntN(10), clients...)
			}
			time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
		}
		if which := rnd.IntN(3); which > 0 {
			server.kill()
			if which == 2 {
				log.write(rnd.IntN(1000), clients...)
			}
			server = serve(t, args...)
		}
		if rnd.IntN(3) > 0 {
			follower.kill()
			log.write(rnd.IntN(1000), clients...)
			follower = follow()
		}
		if rnd.IntN(2) == 0 {
			caughtUp()
		}
	}
	caughtUp()
	t.Logf("%d rounds, %d lines", rounds, log.lines)
}

// TestFollowServerOrder sends a log whose lines are not in the order of time: the server judges them in
// that order, by a rule about this log.
func TestFollowServerOrder(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	appendTo(t, path("rules.yaml"), "version: 1\nbans:\n  - {name: flood, key: client, when: {log: "+path("*.log")+", format: clf}, after: 2 hits in 1m, for: 1h}\n")
	s := serve(t, "--rules", path("rules.yaml"))
	at := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	for _, second := range []time.Duration{3, 0, 0, 1} {
		appendTo(t, path("access.log"), requests("192.0.2.1", at.Add(second*time.Second), 1))
	}
	follower := followTo(t, s.http, "--lateness", "5s", path("access.log")+"=clf")
	bans := func() string { return string(get(t, s.http+"/v1/bans")) }
	want := at.Add(time.Hour + time.Second).UTC().Format(time.RFC3339)
	if !eventually(func() bool { return strings.Contains(bans(), want) }) {
		t.Errorf("no ban ends at %s: %s\n%s", want, bans(), follower.log.String())
	}
}

// TestFollowServerHangup sends SIGHUP, as scripts that rotate logs do: the follower prints that it has nothing to reload,
// and goes on until SIGTERM ends it.
func TestFollowServerHangup(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access.log")
	appendTo(t, log, requests("192.0.2.1", time.Now(), 1))
	s := serve(t)
	f := followTo(t, s.http, "--name", "web-1", log+"=clf")
	follows := func(lines int) bool {
		return eventually(func() bool {
			return strings.Contains(string(get(t, s.http+"/v1/status")), fmt.Sprintf(`"lines":%d,`, lines))
		})
	}
	signal := func(s syscall.Signal) {
		t.Helper()
		must.Do(t, f.cmd.Process.Signal(s))
	}
	if !follows(1) {
		t.Fatalf("the log is not read:\n%s", f.log.String())
	}
	for n := range 3 {
		signal(syscall.SIGHUP)
		if !eventually(func() bool { return strings.Count(f.log.String(), "nothing to reload") > n }) {
			t.Fatalf("no message that there is nothing to reload:\n%s", f.log.String())
		}
		appendTo(t, log, requests("192.0.2.1", time.Now(), 1))
		if !follows(n + 2) {
			t.Fatalf("the log is not read after SIGHUP:\n%s", f.log.String())
		}
	}
	signal(syscall.SIGTERM)
	if err := f.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, f.log.String())
	}
}

// A badNetwork is a server before another one, which loses requests and answers, and repeats requests.
type badNetwork struct {
	mu     sync.Mutex
	rnd    *rand.Rand
	to     string
	faults []int // of the next requests: each fault comes once in eight
	broken int   // requests that were lost or repeated, or whose answer was
}

func (n *badNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	send := func() (*http.Response, error) {
		return http.Post("http://"+n.to+r.URL.Path, r.Header.Get("Content-Type"), bytes.NewReader(body))
	}
	if len(n.faults) == 0 {
		n.faults = n.rnd.Perm(8)
	}
	fault := n.faults[0]
	n.faults = n.faults[1:]
	if fault < 4 {
		n.broken++
	}
	if fault == 0 {
		panic(http.ErrAbortHandler)
	}
	if fault == 1 {
		if first, err := send(); err == nil {
			first.Body.Close()
		}
	}
	answer, err := send()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	switch fault {
	case 2:
		panic(http.ErrAbortHandler)
	case 3:
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// TestFollowServerBadNetwork sends a log through a network that fails: each line is counted once, and at the end the
// command prints what it has sent.
func TestFollowServerBadNetwork(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	appendTo(t, path("rules.yaml"), killRules)
	s := serve(t, "--rules", path("rules.yaml"))
	rnd := randtest.New(t)
	network := &badNetwork{rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0)), to: strings.TrimPrefix(s.http, "http://")}
	front := httptest.NewServer(network)
	defer front.Close()
	log := &rotatedLog{t: t, rnd: rnd, path: path("access.log"), counts: map[string]int{}}
	log.write(20000, "192.0.2.1", "192.0.2.2")
	ctx, interrupt := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"follow", "--addr", front.URL, "--name", "web-1", "--json", log.path + "=clf"}, nil, &stdout, &stderr)
	}()
	c := s.dial()
	count := func(client string) func() bool {
		return func() bool { return c.say("SUM", "requests", client) == strconv.Itoa(log.counts[client]) }
	}
	for range 10 {
		log.write(100, "192.0.2.1", "192.0.2.2")
		if !eventually(count("192.0.2.1")) || !eventually(count("192.0.2.2")) {
			t.Fatalf("%v are written, %s and %s counted", log.counts, c.say("SUM", "requests", "192.0.2.1"), c.say("SUM", "requests", "192.0.2.2"))
		}
	}
	status := string(get(t, s.http+"/v1/status"))
	interrupt()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	network.mu.Lock()
	broken := network.broken
	network.mu.Unlock()
	var report feedReport
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || report.Events == 0 || report.Sessions == 0 || broken == 0 {
		t.Errorf("%v, %+v, %d requests failed", err, report, broken)
	}
	if !strings.Contains(status, `"file":"web-1:`+log.path+`"`) {
		t.Errorf("the status is %s", status)
	}
}

// TestFollowServerLosesAnswer counts a batch that the server has judged, and whose answer is lost.
func TestFollowServerLosesAnswer(t *testing.T) {
	state := []byte("{}")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/feeds/open" {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		must.Do(t, json.NewEncoder(w).Encode(api.Feed{Session: "s", State: state}))
	}))
	defer front.Close()
	c := must.Get(client.New(front.URL, client.Config{}))(t)
	defer c.Close()
	f := &feeder{client: c, log: slog.New(slog.DiscardHandler)}
	until := time.Now().UTC()
	must.Do(t, f.send(t.Context(), &api.FeedBatch{State: state, Until: until}))
	if want := (feedReport{Sessions: 1, AnswersLost: 1}); f.report != want || f.until != until {
		t.Errorf("%+v until %v, want %+v until %v", f.report, f.until, want, until)
	}
}

// TestFollowServerEnds has a second process of a name, which ends the first one.
func TestFollowServerEnds(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access.log")
	appendTo(t, log, requests("192.0.2.1", time.Now(), 1))
	s := serve(t)
	first := followTo(t, s.http, "--name", "web-1", log+"=clf")
	known := func(text string) func() bool {
		return func() bool { return strings.Contains(string(get(t, s.http+"/v1/status")), text) }
	}
	if !eventually(known(`"lines":1,`)) {
		t.Fatalf("the log is not read:\n%s", first.log.String())
	}
	second := followTo(t, s.http, "--name", "web-1", log+"=clf")
	if !eventually(func() bool {
		return strings.Contains(s.log.String(), "feed opened") && strings.Count(s.log.String(), "feed opened") > 1
	}) {
		t.Fatalf("it does not begin:\n%s", second.log.String())
	}
	appendTo(t, log, requests("192.0.2.1", time.Now(), 1))
	err := first.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitInput || !strings.Contains(first.log.String(), "another process has opened the feed") {
		t.Errorf("%v\n%s", err, first.log.String())
	}
}
