package match

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// hostileTargets returns request targets that servers read differently, in
// printable ASCII, and the seed they were made with.
func hostileTargets(t *testing.T, n int) (targets []string, seed uint64) {
	seed = randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	parts := []string{
		"/", "/", "//", ".", "..", "...", "/../", "/./", "login", "x", "%2e", "%2E%2e", "%2F", "%5c", "%25", "%6c", "%2565",
		"\\", "\\..\\", "\\\\", "#", "%23", "?", "%3f", ";", "@", ":", "a:b", "%20", "+", "&=", "*", "~", "%7C",
	}
	for range n {
		var b strings.Builder
		if rng.IntN(10) == 0 {
			b.WriteString("http://host.example")
		}
		b.WriteByte('/')
		for range rng.IntN(9) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		targets = append(targets, b.String())
	}
	return targets, seed
}

// readings returns all readings of a target, CleanPath first.
func readings(target string) []string {
	var e Event
	e.SetTarget(target)
	all := []string{string(e.CleanPath())}
	for _, p := range e.otherPaths() {
		all = append(all, string(p))
	}
	return all
}

func TestReadings(t *testing.T) {
	for _, c := range []struct {
		target string
		want   []string
	}{
		{"/login", []string{"/login"}},
		{"/caf%C3%A9?x=1", []string{"/caf\u00e9"}},
		{"/login#x", []string{"/login", "/login#x"}},
		{"/x#/../login", []string{"/x", "/login"}},
		{`/x\..\login`, []string{`/x\..\login`, "/login", "/x/../login"}},
		{"//host/login", []string{"/host/login", "/login", "//host/login"}},
		{"/\\host\\login", []string{"/\\host\\login", "/login", "//host/login"}},
		{"/a//../login", []string{"/login", "/a/login", "/a//../login"}},
		{"/users/x%2F..%2F..%2Flogin", []string{"/login", "/users/x%2F..%2F..%2Flogin", "/users/x%2F..%2F..%2Flogin"}},
		{"/users/..", []string{"/", "/users/.."}},
		{"http://h/login", []string{"/login"}},
		{"*", []string{"*"}},
		{"host:443", []string{"host:443"}},
		{"", []string{""}},
	} {
		got := slices.Compact(readings(c.target))
		if want := slices.Compact(c.want); !slices.Equal(got, want) {
			t.Errorf("the readings of %q are %q; want %q", c.target, got, want)
		}
	}
}

// A condition holds for every spelling that a server behind the limit reads as
// the path of the condition.
func TestConditionHoldsForEveryReading(t *testing.T) {
	login := must.Get(When{Path: []string{"/login"}}.Compile())(t)
	user := must.Get(When{Path: []string{"/users/*"}}.Compile())(t)
	for _, target := range []string{
		"/login", "/login?x", "/login#x", "/login#?x", "/%6cogin", "//login", "/./login", "/a/../login", "/a/%2e%2e/login",
		`/x\..\login`, `\login`, `/\h\login`, "//h/login", `/x\.%2E\login`, "/x#/../login", "/x%2Fy/../login", "http://h/login", `http://h\login`,
	} {
		var e Event
		e.SetTarget(target)
		if !login.Holds(&e) {
			t.Errorf("/login does not hold for %q, which is read as %q", target, readings(target))
		}
	}
	for _, target := range []string{"/users/1", "/users/1#x", "/users/a%2F..%2F..", "/users/..", `/users\1`, "/users/%2e%2e"} {
		var e Event
		e.SetTarget(target)
		if !user.Holds(&e) {
			t.Errorf("/users/* does not hold for %q, which is read as %q", target, readings(target))
		}
	}
	for _, target := range []string{"/", "/logi", "/login/", "/login2", "/x?/../login", "/%256cogin", "/LOGIN"} {
		var e Event
		e.SetTarget(target)
		if login.Holds(&e) {
			t.Errorf("/login holds for %q, which is read as %q", target, readings(target))
		}
	}
}

// CleanPath is what a real nginx calls $uri, wherever it answers at all.
func TestCleanPathAgainstNginx(t *testing.T) {
	nginx := startNginx(t)
	targets, seed := hostileTargets(t, 4000)
	accepted := 0
	for _, target := range targets {
		uri, status := nginx.uri(target)
		if status != 200 {
			continue
		}
		accepted++
		if got := readings(target)[0]; got != uri {
			t.Fatalf("seed %d: CleanPath of %q is %q; nginx has %q", seed, target, got, uri)
		}
	}
	t.Logf("seed %d: nginx answered %d of %d", seed, accepted, len(targets))
	if accepted < len(targets)/4 {
		t.Errorf("seed %d: nginx answered %d of %d, too few to mean anything", seed, accepted, len(targets))
	}
}

// One of the readings is the pathname of Node's URL, and one that of its older url.parse, with which Express finds its
// routes.
func TestReadingsAgainstNode(t *testing.T) {
	targets, seed := hostileTargets(t, 4000)
	const script = `
const lines = require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean).map(l => JSON.parse(l));
process.noDeprecation = true;
const legacy = require('url').parse;
const attempt = f => { try { return f() } catch { return null } };
for (const t of lines) console.log(JSON.stringify([attempt(() => new URL(t, 'http://host').pathname), attempt(() => legacy(t).pathname)]));`
	answers := runNode(t, script, targets)
	compared := 0
	for i, target := range targets {
		var names [2]*string
		must.Do(t, json.Unmarshal([]byte(answers[i]), &names))
		for n, name := range names {
			if n == 1 && len(target) > 1 && isSlash(target[1]) && strings.Contains(target, "@") {
				continue // url.parse takes "//user@" for credentials, new URL "//" for a host
			}
			if name == nil || !strings.HasPrefix(*name, "/") { // no URL, or no path
				continue
			}
			compared++
			if want := decodedButSlashes(*name); !slices.Contains(readings(target), want) {
				t.Fatalf("seed %d: %q is read as %q; Node has %q", seed, target, readings(target), want)
			}
		}
	}
	if compared < len(targets) {
		t.Errorf("seed %d: Node answered %d of %d, too few to mean anything", seed, compared, 2*len(targets))
	}
}

// One of the readings is Path in net/http, and one the file that its file server would serve.
func TestReadingsAgainstGo(t *testing.T) {
	targets, seed := hostileTargets(t, 20_000)
	for _, target := range targets {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			continue
		}
		want := path.Clean("/" + u.Path)
		if !slices.ContainsFunc(readings(target), func(r string) bool { return path.Clean("/"+r) == want }) {
			t.Fatalf("seed %d: %q is read as %q; Go has %q", seed, target, readings(target), u.Path)
		}
	}
}

func FuzzReadings(f *testing.F) {
	for _, target := range []string{"/login", `/x\..\login`, "/x#/../login", "//h/login", "/a//../b", "/x%2F../y", "http://h/a", "*", "%2e", "?"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		var e Event
		e.SetString(Path, target)
		all := []string{string(e.CleanPath())}
		for _, p := range e.otherPaths() {
			all = append(all, string(p))
		}
		if want := cleanReference(target); all[0] != want || string(e.CleanPath()) != want {
			t.Errorf("CleanPath of %q is %q, and then %q; want %q", target, all[0], e.CleanPath(), want)
		}
		for _, p := range all[1:] {
			if p == all[0] || len(p) > max(len(target), 1) {
				t.Errorf("%q is read as %q", target, all)
			}
		}
		// A plain path is read unchanged, by every reader.
		if formOf([]byte(target)) < pathAmbiguous {
			for _, read := range []func(dst, p []byte) []byte{appendClean, appendAsGo, appendWHATWG, appendAsSent} {
				if got := string(read(nil, []byte(target))); got != all[0] && target != "" {
					t.Errorf("%q is not ambiguous, but read as %q and %q", target, all[0], got)
				}
			}
		}
	})
}

// decodedButSlashes decodes %XX, but not %2F.
func decodedButSlashes(p string) string {
	var d strings.Builder
	for i := 0; i < len(p); i++ {
		if i+2 < len(p) && p[i] == '%' && !strings.EqualFold(p[i:i+3], "%2F") {
			if s, err := url.PathUnescape(p[i : i+3]); err == nil {
				d.WriteString(s)
				i += 2
				continue
			}
		}
		d.WriteByte(p[i])
	}
	return d.String()
}

// runNode runs a script that answers each target, a line of JSON, with a line.
func runNode(t *testing.T, script string, targets []string) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIP: there is no node here; paths are not compared with Node's")
	}
	var lines strings.Builder
	for _, target := range targets {
		text, _ := json.Marshal(target)
		lines.Write(text)
		lines.WriteByte('\n')
	}
	cmd := exec.Command(node, "--no-deprecation", "-e", script)
	cmd.Stdin, cmd.Stderr = strings.NewReader(lines.String()), os.Stderr
	out := must.Get(cmd.Output())(t)
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != len(targets) {
		t.Fatalf("node gave %d answers to %d targets", len(answers), len(targets))
	}
	return answers
}

// An nginx answers with its $uri.
type nginx struct {
	t      *testing.T
	listen string
	conn   net.Conn
	r      *bufio.Reader
}

func startNginx(t *testing.T) *nginx {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("SKIP: there is no nginx here; paths are not compared with nginx's")
		}
	}
	n := &nginx{t: t, listen: freeport.Addr(t)}
	dir := t.TempDir()
	conf := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log /dev/null;
events {}
http {
access_log off; keepalive_requests 1000000;
client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
server { listen %[2]s; location / { default_type text/plain; return 200 "$uri"; } }
}
`, dir, n.listen)
	file := filepath.Join(dir, "nginx.conf")
	must.Do(t, os.WriteFile(file, []byte(conf), 0o600))
	cmd := exec.Command(program, "-p", dir, "-e", "stderr", "-c", file)
	cmd.Stderr = os.Stderr
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		if n.conn != nil {
			n.conn.Close()
		}
		cmd.Process.Kill()
		cmd.Wait()
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if n.conn, err = net.Dial("tcp", n.listen); err == nil {
			n.r = bufio.NewReader(n.conn)
			return n
		}
	}
	t.Fatal(err)
	return nil
}

// uri returns the $uri of a target, and the status of the answer.
func (n *nginx) uri(target string) (uri string, status int) {
	n.t.Helper()
	if n.conn == nil {
		var err error
		if n.conn, err = net.Dial("tcp", n.listen); err != nil {
			n.t.Fatal(err)
		}
		n.r = bufio.NewReader(n.conn)
	}
	must.Get(fmt.Fprintf(n.conn, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", target))(n.t)
	w, err := http.ReadResponse(n.r, nil)
	if err != nil {
		n.t.Fatalf("%q: %v", target, err)
	}
	body := must.Get(io.ReadAll(w.Body))(n.t)
	w.Body.Close()
	if w.Close {
		n.conn.Close()
		n.conn = nil
	}
	return string(body), w.StatusCode
}

// appendAsGo appends p as Go reads it.
func appendAsGo(dst, p []byte) []byte { return appendResolved(dst, cutTarget(p, "?")) }
