package respapi

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
	"github.com/lately-go/lately/rules"
)

const testRules = `version: 1
fields: {x-tenant: {header: X-Tenant}}
counters:
  requests: {key: client, spans: [1s, 1m, 1h]}
  tenants: {key: x-tenant, spans: [1m]}
limits:
  - {name: login, key: user, limit: 3 per 10m}
  - {name: pair, key: [client, user], limit: 2 per 1h}
  - {name: per-client, key: client, limit: 1000000000 per 1h}
  - {name: uploads, key: user, when: {path: /upload}, limit: 2 at once for 30s, algorithm: in-flight}
  - {name: plan, key: user, when: {path: /plan}, limit: {default: 2 per 1h, at_most: 5 per 1h}}
  - {name: queue, key: user, when: {path: /queue}, limit: 60 per 1m burst 3, algorithm: leaky-bucket}
bans:
  - {name: flood, key: client, after: 5 hits in 1m, for: 1h, when: {path: /flood}}
hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 3 per 1m, hold: 60s} # a minute, for a slow machine
`

// newEngine returns an engine that judges by testRules.
func newEngine(t testing.TB) *engine.Engine {
	t.Helper()
	return newEngineOf(t, engine.Config{})
}

// newEngineOf returns an engine of c with the rules of the tests.
func newEngineOf(t testing.TB, c engine.Config) *engine.Engine {
	t.Helper()
	file := must.Get(rules.Parse("rules.yaml", []byte(testRules)))(t)
	c.Rules = file
	e := must.Get(engine.New(c))(t)
	t.Cleanup(e.Close)
	return e
}

// Config is short for the configuration of a Server.
type Config = listen.Config

// A pipeListener is a listener on net.Pipe.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial() net.Conn {
	a, b := net.Pipe()
	l.conns <- b
	return a
}

// A running is a server that serves.
type running struct {
	*Server
	t    testing.TB
	addr string
	pipe *pipeListener // or nil
	stop func()
}

// start starts a server of c on loopback, or on a pipe. It ends with the test.
func start(t testing.TB, c Config, pipe bool) *running {
	t.Helper()
	if c.Engine == nil {
		c.Engine = newEngine(t)
	}
	s := New(c)
	r := &running{Server: s, t: t}
	var l net.Listener
	if pipe {
		r.pipe = newPipeListener()
		l = r.pipe
	} else {
		l = must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		r.addr = l.Addr().String()
	}
	r.stop = serving(t, s, l)
	t.Cleanup(r.stop)
	return r
}

// serving has s serve l until the function is called that it returns.
func serving(t testing.TB, s *Server, l net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// long reports whether tests take the time for their long form.
func long() bool { return os.Getenv("LATELY_LONG") == "1" }

// A caller is a client of a server.
type caller struct {
	t    testing.TB
	conn net.Conn
	r    *resptest.Reader
}

func (r *running) dial() *caller {
	r.t.Helper()
	var c net.Conn
	if r.pipe != nil {
		c = r.pipe.dial()
	} else {
		var err error
		if c, err = net.Dial("tcp", r.addr); err != nil {
			r.t.Fatal(err)
		}
	}
	r.t.Cleanup(func() { c.Close() })
	return &caller{r.t, c, resptest.NewReader(c)}
}

// send sends a line of words; '~' in a word stands for a blank, '^' for a tab.
func (c *caller) send(line string) {
	c.t.Helper()
	if _, err := c.conn.Write(encode(line)); err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
}

func encode(line string) []byte {
	words := strings.Fields(line)
	for i, w := range words {
		words[i] = strings.NewReplacer("~", " ", "^", "\t").Replace(w)
	}
	return resp.AppendCommand(nil, words...)
}

func (c *caller) next() string {
	c.t.Helper()
	v, err := c.r.Next()
	if err != nil {
		c.t.Fatalf("no reply: %v", err)
	}
	return show(v)
}

// do sends a line and returns the reply as text.
func (c *caller) do(line string) string {
	c.t.Helper()
	c.send(line)
	return c.next()
}

// want does a line and compares. A want that ends with … is a beginning.
func (c *caller) want(line, want string) {
	c.t.Helper()
	got := c.do(line)
	if head, ok := strings.CutSuffix(want, "…"); ok && strings.HasPrefix(got, head) {
		return
	}
	if got != want {
		c.t.Errorf("%s\n answers %s\n want    %s", line, got, want)
	}
}

// wantEnd sees that the connection is closed.
func (c *caller) wantEnd() {
	c.t.Helper()
	if v, err := c.r.Next(); err == nil {
		c.t.Errorf("there is %s; want the end of the connection", show(v))
	}
}

// show returns a reply as text.
func show(v resptest.Value) string {
	switch v.Kind {
	case ':':
		return v.Text
	case '+', '-', ',':
		return string(v.Kind) + v.Text
	case '_':
		return "nil"
	case '$':
		return fmt.Sprintf("%q", v.Text)
	case '=':
		return fmt.Sprintf("%q", strings.TrimPrefix(v.Text, "txt:"))
	}
	var b strings.Builder
	open := map[byte]string{'*': "[", '%': "%[", '~': "~[", '>': ">["}[v.Kind]
	b.WriteString(open)
	for i, e := range v.Elems {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(show(e))
	}
	return b.String() + "]"
}

// The tokens of testTokens.
const (
	readToken  = "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr-read"
	checkToken = "cccccccccccccccccccccccccccccccc-check"
	adminToken = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-admin"
)

func testTokens(t testing.TB, extra string) *access.Tokens {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	text := "read " + readToken + " ro\ncheck " + checkToken + " svc\nadmin " + adminToken + " ops\n" + extra
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return must.Get(access.Load(path))(t)
}
