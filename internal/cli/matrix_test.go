package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/internal/server/enforce"
	logs "github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// A matrixRow is an example of one command, route or verb, and its answer in each mode.
type matrixRow struct {
	call    string
	want    string // in the answer, in a mode with '.'
	outcome string // one byte for each mode: '.', or a key of refusals
}

// matrixTable reads rows of the form "outcomes call -> want".
func matrixTable(t *testing.T, text string) (all []matrixRow) {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		outcome, rest, ok := strings.Cut(line, " ")
		call, want, ok2 := strings.Cut(rest, " -> ")
		if !ok || !ok2 || len(outcome) != len(matrixModes) {
			t.Fatalf("%q: must be %d outcomes, a call, -> and an answer", line, len(matrixModes))
		}
		all = append(all, matrixRow{strings.TrimSpace(call), strings.TrimSpace(want), outcome})
	}
	return all
}

// TestMatrix sends an example of every RESP command, every HTTP route and every command of the command line to
// a server in every mode. Each works as documented, or is refused with a sentence of docs/server.md. The names
// come from the tables of the program, so a new verb without an example fails the test.
func TestMatrix(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(was) }) // which lately serve sets
	tables := map[string][]matrixRow{"RESP": matrixTable(t, matrixRESP), "HTTP": matrixTable(t, matrixHTTP), "CLI": matrixTable(t, matrixCLI)}
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "server.md")))(t)
	used := map[byte]bool{}
	for _, rows := range tables {
		for _, r := range rows {
			for _, c := range []byte(r.outcome) {
				used[c] = true
			}
		}
	}
	for c, sentence := range matrixRefusals {
		if !strings.Contains(string(page), "`"+sentence+"`") {
			t.Errorf("docs/server.md does not have the refusal %q", sentence)
		}
		if !used[c] {
			t.Errorf("no cell has the refusal %q", sentence)
		}
	}
	modes := slices.Clone(matrixModes)
	for _, mode := range matrixModes {
		if mode.name == "memory" || mode.name == "tokens" { // again, on Unix sockets
			mode.name, mode.like, mode.sockets = mode.name+"-on-sockets", mode.name, true
			modes = append(modes, mode)
		}
		if mode.like == "tokens" { // and by the name of a certificate instead of the token
			mode.name, mode.sockets, mode.certificate = "certificates", false, true
			modes = append(modes, mode)
		}
	}
	for i, mode := range modes {
		if mode.like != "" {
			i = slices.IndexFunc(matrixModes, func(one matrixMode) bool { return one.name == mode.like })
		}
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			m := newMatrixServer(t, mode)
			if mode.name == "memory" {
				if missing := m.missing(tables); len(missing) > 0 {
					t.Errorf("the matrix has no example of\n%s", strings.Join(missing, "\n"))
				}
				m.findsMissing(tables)
			}
			for _, kind := range []string{"RESP", "HTTP", "CLI"} {
				ask := map[string]func(string, string) (string, bool){"RESP": m.askRESP, "HTTP": m.askHTTP, "CLI": m.askCLI}[kind]
				for _, r := range tables[kind] {
					m.cell(kind, r, r.outcome[i], ask)
				}
			}
		})
	}
}

// cell makes one call, and compares the answer with what the table has for the mode.
func (m *matrixServer) cell(kind string, r matrixRow, outcome byte, ask func(call, want string) (answer string, ok bool)) {
	m.Helper()
	if outcome == 'x' {
		return
	}
	if listener := map[string]string{"RESP": m.resp, "HTTP": m.http, "CLI": "it needs none"}[kind]; outcome == '-' || listener == "" {
		if outcome != '-' || listener != "" {
			m.Errorf("%s: the mode has the listener %q and the table %q", r.call, listener, outcome)
		}
		return
	}
	want, refused := matrixRefusals[outcome]
	if !refused {
		want = m.fill.Replace(r.want)
	}
	answer, ok := ask(m.fill.Replace(r.call), want)
	if ok == refused || !strings.Contains(answer, want) {
		m.Errorf("%s %s\n answers %.600q\n want    %q, refused: %v", kind, r.call, answer, want, refused)
	}
}

// missing returns the verbs of the program that lack an example in a mode.
func (m *matrixServer) missing(tables map[string][]matrixRow) (all []string) {
	m.Helper()
	need := func(kind, verb string, is func(call string) bool) {
		for i, mode := range matrixModes {
			if !slices.ContainsFunc(tables[kind], func(r matrixRow) bool { return is(r.call) && r.outcome[i] != 'x' }) {
				all = append(all, verb+" in mode "+mode.name)
			}
		}
	}
	firstCell := regexp.MustCompile("(?m)^\\| `([^`]*)`")
	for _, found := range firstCell.FindAllStringSubmatch(commandTable(m.T, m.resp), -1) {
		name, _, _ := strings.Cut(found[1], " ")
		need("RESP", name, func(call string) bool {
			return strings.HasPrefix(call[strings.LastIndex("; "+call, "; "):]+" ", name+" ")
		})
	}
	for _, found := range firstCell.FindAllStringSubmatch(routeTable(m.T, "http://"+m.http), -1) {
		methods, path, _ := strings.Cut(strings.ReplaceAll(found[1], ", ", ","), " ")
		pattern := regexp.MustCompile("^" + regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/ ?]+`) + `([ ?]|$)`)
		for method := range strings.SplitSeq(methods, ",") {
			need("HTTP", method+" "+path, func(call string) bool {
				rest, ok := strings.CutPrefix(call, method+" ")
				return ok && pattern.MatchString(rest)
			})
		}
	}
	for _, name := range commandPaths(Root(), "") {
		need("CLI", "lately "+name, func(call string) bool { return strings.HasPrefix(call+" ", name+" ") })
	}
	return all
}

// findsMissing is the control of missing: it must name a verb of each kind when its rows are removed.
func (m *matrixServer) findsMissing(tables map[string][]matrixRow) {
	m.Helper()
	for kind, row := range map[string]string{"RESP": "BANS", "HTTP": "GET /v1/bans", "CLI": "bans"} {
		less := maps.Clone(tables)
		less[kind] = slices.DeleteFunc(slices.Clone(tables[kind]), func(r matrixRow) bool { return strings.Contains(r.call, row) })
		if len(m.missing(less)) == 0 {
			m.Errorf("nobody misses %s", row)
		}
	}
}

// commandPaths returns the commands under c that run something.
func commandPaths[Command interface {
	Commands() []Command
	HasSubCommands() bool
	Name() string
}](c Command, before string) (all []string) {
	for _, sub := range c.Commands() {
		name := strings.TrimSpace(before + " " + sub.Name())
		if sub.HasSubCommands() {
			all = append(all, commandPaths(sub, name)...)
		} else {
			all = append(all, name)
		}
	}
	return all
}

// A matrixServer is a server of the matrix, in this process.
type matrixServer struct {
	*testing.T
	resp, http string // addresses, "" without the listener
	token      string
	session    string // of the feed that was opened last
	dir        string
	web        *http.Transport
	tls        *tls.Config // of a client with a certificate, or nil
	fill       *strings.Replacer
}

// newMatrixServer starts a server in a mode, with a ban and a hot key where it takes them.
func newMatrixServer(t *testing.T, mode matrixMode) *matrixServer {
	t.Helper()
	m := &matrixServer{T: t, dir: t.TempDir()}
	for name, text := range matrixFiles {
		m.write(name, text)
	}
	rules := filepath.Join(m.dir, "rules.yaml")
	c := server.Config{
		RESP: "127.0.0.1:0", HTTP: "127.0.0.1:0", RulesFiles: []string{rules}, RulesPoll: -1, ShutdownDelay: -1, KeepEvents: 1 << 20,
		Enforce:        enforce.Targets{CrowdSec: true},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}
	var redis *redistest.Server
	if mode.store {
		redis = redistest.Own(t)
		c.Store, c.StoreTimeout = "unix://"+redis.Socket()+"?dial_timeout=1m&write_timeout=1m", 10*time.Second
	}
	if mode.change != nil {
		mode.change(m, &c)
	}
	if mode.sockets {
		dir := must.Get(os.MkdirTemp("", "lately"))(t) // with a path that is short enough
		t.Cleanup(func() { os.RemoveAll(dir) })
		c.RESP, c.HTTP, c.TrustUnix = "unix:"+dir+"/resp.sock", "unix:"+dir+"/http.sock", true
	}
	if mode.certificate {
		m.certify(&c)
	}
	m.run(&c)
	addr := m.http
	switch {
	case m.http == "":
		addr = "http://127.0.0.1:1" // nothing listens there
	case mode.certificate:
		addr = "https://" + m.http
	case !mode.sockets:
		addr = m.url("")
	}
	m.fill = strings.NewReplacer("$HTTP", addr, "$DIR", m.dir, "$NOW", time.Now().UTC().Format(time.RFC3339))
	m.begin(mode, redis)
	return m
}

// begin prepares the server for all rows: a ban, a hot key, and in some modes a follower, or a Redis that has stopped.
func (m *matrixServer) begin(mode matrixMode, redis *redistest.Server) {
	m.Helper()
	if mode.store {
		m.until("the store is up", func() bool { _, ok := m.askHTTP("GET /readyz", "ok"); return ok })
	}
	if mode.live && m.resp != "" {
		for _, call := range []string{"BAN login mallory 1h by-hand", "BAN login oscar 1h", "HOT.REPORT product /product/1 100 0", "ADD hits ada 3"} {
			if answer, ok := m.askRESP(call, ""); !ok {
				m.Fatalf("%s: %s", call, answer)
			}
		}
	} else if mode.live {
		for _, call := range []string{`POST /v1/bans {"rule":"login","key":"mallory","for":"1h","reason":"by"}`, `POST /v1/hot {"rule":"product","key":"/product/1"}`, `POST /v1/counters/hits/add {"key":"ada","n":3}`} {
			if answer, ok := m.askHTTP(call, ""); !ok {
				m.Fatalf("%s: %s", call, answer)
			}
		}
	}
	if mode.feed {
		log := m.dir + "/access.log"
		ctx, stop := context.WithCancel(m.Context())
		var feeding sync.WaitGroup
		feeding.Go(func() {
			run(ctx, []string{"follow", "--addr", "http://" + m.http, "--name", "edge", log}, strings.NewReader(""), io.Discard, io.Discard)
		})
		m.Cleanup(func() { stop(); feeding.Wait() })
		m.until("the follower is known", func() bool { _, ok := m.askHTTP("GET /v1/status", "edge:"); return ok })
	}
	if mode.away {
		m.until("the ban is mirrored", func() bool {
			answer, _ := m.askRESP("TAKE login mallory", "")
			return strings.HasPrefix(answer, "[0 ")
		})
		redis.Kill()
		m.until("the server misses its store", func() bool { answer, _ := m.askHTTP("GET /readyz", ""); return strings.HasPrefix(answer, "503") })
	}
}

func (m *matrixServer) until(what string, ok func() bool) {
	m.Helper()
	if !eventually(ok) {
		m.Fatalf("%s: not within a minute", what)
	}
}

// run runs the server until the test ends.
func (m *matrixServer) run(c *server.Config) {
	m.Helper()
	var log lines
	s := must.Get(server.New(*c, "1.2.3", slog.New(slog.NewTextHandler(&log, nil))))(m)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	m.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			m.Error(err)
		}
		if m.Failed() {
			m.Log(log.String())
		}
	})
	m.resp, m.http = s.Addresses()
	m.web = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return m.dial(ctx, m.http) }}
	m.Cleanup(m.web.CloseIdleConnections)
}

// dial connects to a listener: HOST:PORT or unix:PATH.
func (m *matrixServer) dial(ctx context.Context, addr string) (net.Conn, error) {
	if m.tls != nil {
		return (&tls.Dialer{Config: m.tls}).DialContext(ctx, "tcp", addr)
	}
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// certify gives the server a certificate, which its client uses as well and which makes the client an administrator.
func (m *matrixServer) certify(c *server.Config) {
	m.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(m)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"matrix.internal"}, IsCA: true, BasicConstraintsValid: true,
	}
	cert := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(m)
	private := must.Get(x509.MarshalPKCS8PrivateKey(key))(m)
	c.TLSCert = m.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	c.TLSKey = m.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	c.TLSClientCA = c.TLSCert
	c.TokenFile = m.write("tokens", "admin "+m.token+"\nadmin cert:matrix.internal\n")
	pair := must.Get(tls.LoadX509KeyPair(c.TLSCert, c.TLSKey))(m)
	m.tls = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: x509.NewCertPool()}
	m.tls.RootCAs.AddCert(pair.Leaf)
}

// url returns the URL of a path of the server.
func (m *matrixServer) url(path string) string {
	if strings.HasPrefix(m.http, "unix:") {
		return "http://localhost" + path
	}
	return "http://" + m.http + path
}

// A matrixMode is how a server of the matrix runs.
type matrixMode struct {
	name        string
	live        bool   // takes bans and adds
	store, away bool   // Redis, and that it is unavailable
	feed        bool   // a follower sends it the events of a log
	sockets     bool   // it listens on Unix sockets
	certificate bool   // it uses TLS, and the name of the client's certificate has the role
	like        string // the mode of the table whose column it has
	change      func(m *matrixServer, c *server.Config)
}

// write writes a file of the server's directory and returns its path.
func (m *matrixServer) write(name, text string) string {
	m.Helper()
	path := filepath.Join(m.dir, name)
	must.Do(m, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	return path
}

// follows has the server follow its log.
func (m *matrixServer) follows(c *server.Config) {
	c.Follow = []logs.Log{{Path: filepath.Join(m.dir, "access.log")}}
}
