//go:build linux

package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/redistest"
)

// A Finding is something that must not be.
type Finding struct {
	Invariant string
	Text      string
	History   string // of what it is about
}

// A run is one seed in progress.
type run struct {
	Config *Config

	program   string
	help      string // of serve
	dir       string
	store     *redistest.Server
	servers   []*server
	history   *History
	pulse     pulse
	processes sync.WaitGroup

	lines        int      // written to the followed log
	names, paths []string // the commands and routes of the program
	unknown      []string // those that no traffic has

	token, tokenFile, certFile, keyFile string

	mu       sync.Mutex
	findings []Finding
}

// now returns the time since the run began.
func (r *run) now() time.Duration { return r.history.now() }

// knows reports whether the program has a setting: storm runs older versions too.
func (r *run) knows(setting string) bool { return strings.Contains(r.help, "--"+setting+" ") }

// fail records a finding. about selects the calls that are printed with it.
func (r *run) fail(invariant, text string, about func(*Call) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := Finding{Invariant: invariant, Text: text}
	if about == nil {
		about = func(*Call) bool { return false }
	}
	r.history.mu.Lock()
	f.History = r.history.print(about)
	r.history.mu.Unlock()
	r.findings = append(r.findings, f)
}

// Run runs a seed with a program and returns what it found.
func Run(t testing.TB, c *Config, program string) []Finding {
	t.Helper()
	r := &run{Config: c, program: program, dir: t.TempDir(), history: newHistory()}
	help, err := exec.Command(program, "serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	r.help = string(help)
	if err := r.prepare(t); err != nil {
		t.Fatal(err)
	}
	defer r.clean()
	ctx, cancel := context.WithCancel(context.Background())
	var measuring sync.WaitGroup
	measuring.Go(func() { r.pulse.run(ctx, r.now) })
	if r.begin() {
		r.names, r.paths = r.programs()
		r.weather()
		if len(r.findings) == 0 {
			r.settle()
		}
		r.end()
	}
	cancel()
	measuring.Wait()
	r.judgeAll()
	if len(r.unknown) > 0 {
		r.fail("verbs", fmt.Sprintf("not in the traffic: %v: add them to the tables in internal/test/storm/verbs.go", r.unknown), nil)
	}
	return r.findings
}

// prepare makes what the servers need.
func (r *run) prepare(t testing.TB) error {
	c := r.Config
	if c.Tokens {
		r.token, r.tokenFile = strings.Repeat("storm", 8), filepath.Join(r.dir, "tokens")
		if err := os.WriteFile(r.tokenFile, []byte("admin "+r.token+"\n"), 0o600); err != nil {
			return err
		}
	}
	if c.TLS {
		if err := r.makeCertificate(); err != nil {
			return err
		}
	}
	if c.Store {
		redistest.Needs(t)
		var err error
		if r.store, err = redistest.Start(); err != nil {
			return err
		}
	}
	// On an address of its own no other program takes the ports of a server between its end and its next start.
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	for i := range c.Servers {
		s := &server{run: r, index: i, dir: filepath.Join(r.dir, fmt.Sprint("server", i)), client: newHTTPClient()}
		s.resp, s.http = fmt.Sprint(host, ":", 15_000+2*i), fmt.Sprint(host, ":", 15_001+2*i)
		if c.Socket && r.knows("socket-mode") {
			s.resp = "unix:" + filepath.Join(s.dir, "resp.sock")
		}
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return err
		}
		if r.servers = append(r.servers, s); c.Store {
			p, err := newProxy(r.store, source(c.Seed, s.dir))
			if err != nil {
				return err
			}
			s.proxy = p
		}
		if err := appendTo(s.logPath(), ""); err != nil {
			return err
		}
		r.writeRules(s, 0)
		r.history.inForce(i)
	}
	return nil
}

// clean ends all processes.
func (r *run) clean() {
	for _, s := range r.servers {
		s.kill()
		s.client.CloseIdleConnections()
		if s.proxy != nil {
			s.proxy.close()
		}
	}
	if r.store != nil {
		r.store.Stop()
	}
	r.processes.Wait()
}

// begin starts the servers, at the same time.
func (r *run) begin() bool {
	var marks []*Mark
	if r.Config.Away {
		for _, s := range r.servers {
			marks = append(marks, r.history.begin(s.index, away, "from the start"))
			s.proxy.set(cuts, 0)
		}
	}
	var all sync.WaitGroup
	for _, s := range r.servers {
		all.Go(func() {
			if err := s.start(); err != nil {
				r.fail("start", err.Error(), nil)
			}
		})
	}
	all.Wait()
	if r.Config.Away {
		r.processes.Go(func() {
			time.Sleep(r.Config.Lasting / 2)
			for i, s := range r.servers {
				s.proxy.set(passes, 0)
				r.history.end(marks[i])
			}
		})
	}
	return len(r.findings) == 0
}

// weather is traffic and faults.
func (r *run) weather() {
	ctx, cancel := context.WithTimeout(context.Background(), r.Config.Lasting)
	defer cancel()
	var all sync.WaitGroup
	begin := func(name string, of func(context.Context, *rand.Rand)) {
		random := source(r.Config.Seed, name)
		all.Go(func() { of(ctx, random) })
	}
	for i := range 3 {
		begin(fmt.Sprint("RESP", i), r.viaRESP)
	}
	begin("HTTP", r.viaHTTP)
	begin("Go", r.viaGo)
	begin("probe", r.probe)
	for _, key := range handKeys {
		begin(key, func(ctx context.Context, random *rand.Rand) { r.operate(ctx, random, key) })
	}
	if len(r.names) > 0 && len(r.paths) > 0 {
		begin("every verb", r.everyVerb)
	}
	for _, s := range r.servers {
		all.Go(func() { r.watch(ctx, s) })
	}
	begin("processes", r.disturbProcesses)
	if r.Config.Floods {
		begin("flood", r.flood)
	}
	if r.Config.Follow {
		begin("log", r.writeLog)
	}
	if r.Config.Reloads {
		begin("rules", r.reload)
	}
	if r.Config.Store && !r.Config.Away {
		begin("store", r.disturbStore)
	}
	all.Wait()
}

// settle waits until all servers are ready again, as they must be after all faults, and has the remaining promises checked.
func (r *run) settle() {
	begun := r.now()
	for _, s := range r.servers {
		for {
			code, text, err := s.get("/readyz")
			if err == nil && code == http.StatusOK {
				break
			}
			if r.now()-begun > hangs+r.pulse.margin(begun) {
				r.fail("ready", fmt.Sprintf("server %d is not ready %v after the last fault: %d %s %v\n%s%s", s.index, r.now()-begun, code, text, err, s.lastLines(), s.stacks()), nil)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	for _, s := range r.servers {
		if n, err := s.metric("lately_request_panics_total", ""); err != nil || n > 0 {
			r.fail("answers", fmt.Sprintf("server %d: lately_request_panics_total is %v (%v)\n%s", s.index, n, err, s.lastLines()), nil)
		}
	}
	if r.Config.Follow {
		r.allLines()
	}
	r.lastBan()
}

// end terminates the servers.
func (r *run) end() {
	var all sync.WaitGroup
	for _, s := range r.servers {
		all.Go(func() {
			s.signal(syscall.SIGCONT)
			s.terminate()
		})
	}
	all.Wait()
	for _, s := range r.servers {
		if s.resident > memory+besideMemory {
			r.fail("memory", fmt.Sprintf("server %d had %d MiB resident; want at most %d", s.index, s.resident, memory+besideMemory), nil)
		}
	}
}

// Report describes findings, with the command that repeats the seed.
func Report(c *Config, findings []Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\nrepeat: make storm SEED=%d\n", c, c.Seed)
	for _, l := range c.Limits {
		fmt.Fprintf(&b, "  %s by %s %s: %v\n", l.Name, l.Key, l.Path, l.Versions)
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return strings.Compare(a.Invariant, b.Invariant) })
	for _, f := range findings {
		fmt.Fprintf(&b, "  %s: %s\n%s", f.Invariant, f.Text, f.History)
	}
	return b.String()
}
