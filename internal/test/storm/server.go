//go:build linux

package storm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Settings of all servers.
const (
	memory          = 256 // MiB: --memory
	besideMemory    = 150 // MiB more that may be resident, see docs/operations.md
	shutdownTimeout = 2 * time.Second
	startTimeout    = time.Minute
)

// A server is one process of the program at a time, on the same addresses.
type server struct {
	run        *run
	index      int
	dir        string
	resp, http string
	proxy      *proxy // nil without a store
	client     *http.Client

	// file is held by what writes the rules file, and by a start.
	file sync.Mutex

	// lifecycle is held by what stops, ends or starts the process.
	lifecycle sync.Mutex

	mu       sync.Mutex
	life     int // how many times it was started
	cmd      *exec.Cmd
	exited   chan struct{}
	err      error // of the process
	expected bool  // the process is to end
	resident int   // the most MiB that were resident
	answers  bool  // the process has answered, and is not to end
}

// args returns the command line.
func (s *server) args() []string {
	c, r := s.run.Config, s.run
	args := []string{
		"serve", "--resp", s.resp, "--http", s.http, "--rules", s.rulesPath(), "--memory", fmt.Sprint(memory, "MiB"),
		"--shutdown-timeout", shutdownTimeout.String(), "--shutdown-delay", "50ms", "--snapshot-every", "1s",
	}
	with := func(on bool, name string, value ...string) {
		if on && r.knows(name) {
			args = append(append(args, "--"+name), value...)
		}
	}
	with(c.Poll, "rules-poll", "100ms")
	with(!c.Poll, "rules-poll", "never")
	with(c.Store, "store", "redis://"+s.storeAddr())
	with(c.Store && c.StoreTimeout > 0, "store-timeout", c.StoreTimeout.String())
	with(c.Batched, "store-batched")
	with(c.Store, "store-nodes", strconv.Itoa(c.Servers))
	with(c.Data, "data", filepath.Join(s.dir, "data"))
	with(c.Follow, "follow", s.logPath())
	with(c.DenyFile, "deny-file", s.denyPath())
	with(c.Tokens, "token-file", r.tokenFile)
	with(c.TLS, "tls-cert", r.certFile)
	with(c.TLS, "tls-key", r.keyFile)
	return args
}

func (s *server) storeAddr() string {
	if s.proxy == nil {
		return ""
	}
	return s.proxy.addr
}

func (s *server) rulesPath() string { return filepath.Join(s.dir, "rules.yaml") }
func (s *server) denyPath() string  { return filepath.Join(s.dir, "deny.conf") }
func (s *server) logPath() string   { return filepath.Join(s.dir, "access.log") }
func (s *server) stderr() string    { return filepath.Join(s.dir, "stderr") }

// start starts the process and waits until it answers.
func (s *server) start() error {
	log, err := os.OpenFile(s.stderr(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.run.program, s.args()...)
	cmd.Stderr = log
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LATELY_") }) // of the tests
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.mu.Lock()
	s.cmd, s.exited, s.expected, s.err = cmd, exited, false, nil
	s.life++
	life := s.life
	s.mu.Unlock()
	s.run.processes.Go(func() {
		err := cmd.Wait()
		s.mu.Lock()
		s.err = err
		expected := s.expected
		s.mu.Unlock()
		close(exited)
		if !expected {
			s.run.fail("alive", fmt.Sprintf("server %d life %d ended by itself: %v\n%s", s.index, life, err, s.lastLines()), nil)
		}
	})
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if code, _, err := s.get("/healthz"); err == nil && code == http.StatusOK {
			s.mu.Lock()
			s.answers = true
			s.mu.Unlock()
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("server %d does not start: %v\n%s", s.index, cmd.ProcessState, s.lastLines())
		default:
		}
	}
	return fmt.Errorf("server %d does not answer within %v of its start\n%s", s.index, startTimeout, s.lastLines())
}

// signal sends a signal to the process.
func (s *server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil && s.cmd.Process != nil {
		s.cmd.Process.Signal(sig)
	}
}

// hangUp has the process read its files again. Before it answers, the signal would end it.
func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers {
		s.cmd.Process.Signal(syscall.SIGHUP)
	}
}

// expectEnd announces that the process is about to end, and returns a channel that is closed when it has.
func (s *server) expectEnd() <-chan struct{} {
	s.watchMemory()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected, s.answers = true, false
	return s.exited
}

// kill ends the process as a crash would.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	exited := s.expectEnd()
	s.signal(syscall.SIGKILL)
	<-exited
}

// terminate ends the process by SIGTERM and judges how long that takes.
func (s *server) terminate() {
	exited := s.expectEnd()
	begun := s.run.now()
	s.signal(syscall.SIGTERM)
	most := shutdownTimeout + hangs + s.run.pulse.margin(begun)
	select {
	case <-exited:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err != nil {
			s.run.fail("end", fmt.Sprintf("server %d ends after SIGTERM with %v\n%s", s.index, s.err, s.lastLines()), nil)
		}
	case <-time.After(most):
		s.run.fail("end", fmt.Sprintf("server %d life %d has not ended %v after SIGTERM; --shutdown-timeout is %v\n%s", s.index, s.life, most, shutdownTimeout, s.stacks()), nil)
		s.signal(syscall.SIGKILL)
		<-exited
	}
}

// stacks has the process print what its goroutines do, and returns the lines that are in this module.
func (s *server) stacks() string {
	s.mu.Lock()
	s.expected = true
	s.mu.Unlock()
	before, _ := os.ReadFile(s.stderr())
	s.signal(syscall.SIGQUIT)
	select {
	case <-s.exited:
	case <-time.After(10 * time.Second):
	}
	after, _ := os.ReadFile(s.stderr())
	var b strings.Builder
	for line := range bytes.Lines(after[len(before):]) {
		if bytes.Contains(line, []byte("lately-go/lately/")) && !bytes.HasPrefix(line, []byte("\t")) || bytes.HasPrefix(line, []byte("goroutine ")) && bytes.Contains(line, []byte("Lock")) {
			b.Write(line)
		}
	}
	text := b.String()
	return text[:min(len(text), 6000)]
}

// lastLines returns the end of the log.
func (s *server) lastLines() string {
	text, _ := os.ReadFile(s.stderr())
	return string(text[max(0, len(text)-3000):])
}

// watchMemory notes how much memory is resident at most.
func (s *server) watchMemory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if f := strings.Fields(rest); len(f) > 0 {
		kib, _ := strconv.Atoi(f[0])
		s.resident = max(s.resident, kib>>10)
	}
}

// pid returns the number of the process.
func (s *server) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// alive returns which process runs, by number.
func (s *server) alive() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// url returns the URL of a path on the server.
func (s *server) url(path string) string {
	if s.run.Config.TLS {
		return "https://" + s.http + path
	}
	return "http://" + s.http + path
}

// get makes a GET request.
func (s *server) get(path string) (code int, body string, err error) {
	return s.request(http.MethodGet, path, "", nil)
}

// request makes a request with the token of an admin.
func (s *server) request(method, path, contentType string, body []byte) (code int, answer string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url(path), bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if token := s.run.token; token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer w.Body.Close()
	text, err := io.ReadAll(io.LimitReader(w.Body, 1<<20))
	return w.StatusCode, string(text), err
}

// newHTTPClient returns a client that accepts the certificate of the run.
func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 8, // of this test, on loopback
	}}
}

// metric returns the sum of the series of a metric with a text in their labels.
func (s *server) metric(name, label string) (sum float64, err error) {
	code, text, err := s.get("/metrics")
	if err != nil || code != http.StatusOK {
		return 0, errors.Join(err, fmt.Errorf("/metrics: %d", code))
	}
	for line := range strings.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if of, labels, _ := strings.Cut(series, "{"); ok && of == name && strings.Contains(labels, label) {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			sum += v
		}
	}
	return sum, nil
}

// write replaces the rules file by a version.
func (s *server) write(version int) error {
	path := s.rulesPath()
	if err := os.WriteFile(path+".new", []byte(s.run.Config.rulesFile(version)), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
