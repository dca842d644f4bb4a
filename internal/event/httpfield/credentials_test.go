package httpfield

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

func userOf(lines ...string) string {
	buf, user := appendUser([]byte("x"), lines)
	if buf[0] != 'x' {
		panic("appendUser changed what was in its buffer")
	}
	return string(user)
}

func TestUser(t *testing.T) {
	for line, want := range map[string]string{
		"":                                "",
		"Bearer YWRhOnNlY3JldA==":         "",
		"Digest username=\"ada\"":         "",
		"Basic YWRhOnNlY3JldA==":          "ada",
		"bAsIc YWRhOnNlY3JldA==":          "ada",
		"Basic  \t YWRhOnNlY3JldA==":      "ada",
		"  Basic YWRhOnNlY3JldA==":        "ada",
		"Basic YWRhOnNlY3JldA":            "ada", // without padding
		"Basic YWRhOnNlY3JldA=====":       "ada",
		"Basic YWRh=OnNlY3JldA==":         "ada",
		"Basic Y.W.R.h.OnNlY3JldA==":      "ada",
		"Basic ~YWRhOnNlY3JldA==":         "ada",
		"Basic YWRhOnNlY3JldA== and more": "ada",
		"Basic 4oKsOj8/Pz4+":              "\u20ac",
		"Basic YWRhOj8_Pz4-":              "ada",         // '_' and '-' are in the password, whoever reads
		"Basic -YWRhOng=":                 malformedUser, // ada, or not
		"Basic fn5-OnB3":                  malformedUser, // "~~~", or not
		"Basic":                           malformedUser,
		"Basic ":                          malformedUser,
		"BasicYWRhOnNlY3JldA==":           malformedUser,
		"Basic YWRh":                      malformedUser, // no password
		"Basic OnB3":                      malformedUser, // no name
		"Basic \xff":                      malformedUser,
	} {
		var lines []string
		if line != "" {
			lines = []string{line}
		}
		if got := userOf(lines...); got != want {
			t.Errorf("%q: the user is %q; want %q", line, got, want)
		}
	}
	if got := userOf("Bearer x", "Basic YWRhOnB3"); got != malformedUser {
		t.Errorf("of two headers the user is %q", got)
	}
	if got := userOf("Bearer x", "Bearer y"); got != "" {
		t.Errorf("of two headers without Basic the user is %q", got)
	}
}

// hostileCredentials returns Authorization headers for users that some server
// accepts and others do not.
func hostileCredentials(t *testing.T, n int) (lines []string, seed uint64) {
	seed = randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	odd := []string{"", "=", "==", ".", "~", "-", "_", "-_", " ", "=A", "*", "==YQ=="}
	for range n {
		name := make([]byte, 1+rng.IntN(6))
		for i := range name {
			name[i] = "adaBC12~?>"[rng.IntN(10)]
		}
		encoding := []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}[rng.IntN(4)]
		text := encoding.EncodeToString(fmt.Appendf(nil, "%s:%s", name, []string{"pw", "?>?>", ""}[rng.IntN(3)]))
		for range rng.IntN(3) {
			at := rng.IntN(len(text) + 1)
			text = text[:at] + odd[rng.IntN(len(odd))] + text[at:]
		}
		space := []string{" ", " ", "  ", "   "}[rng.IntN(4)]
		lines = append(lines, []string{"Basic", "basic", "BASIC"}[rng.IntN(3)]+space+text)
	}
	return lines, seed
}

// checkUser fails unless the user of a header is the one that a server accepted, or
// the fixed one.
func checkUser(t *testing.T, seed uint64, line, server, accepted string) {
	t.Helper()
	if got := userOf(line); got != accepted && got != malformedUser {
		t.Fatalf("seed %d: %q: the user is %q; %s has %q", seed, line, got, server, accepted)
	}
}

// Values accepted by net/http are accepted.
func TestUserAgainstGo(t *testing.T) {
	lines, seed := hostileCredentials(t, 20_000)
	accepted := 0
	for _, line := range lines {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", line)
		user, _, ok := r.BasicAuth()
		if !ok || user == "" {
			continue
		}
		accepted++
		checkUser(t, seed, line, "net/http", user)
		if got := userOf(line); got != user {
			t.Fatalf("seed %d: %q: the user is %q; net/http has %q", seed, line, got, user)
		}
	}
	if accepted < 1000 {
		t.Errorf("seed %d: net/http accepted %d of %d, too few to mean anything", seed, accepted, len(lines))
	}
}

// Values accepted by Node programs that decode with Buffer, with the pattern of the package basic-auth or without any, are
// accepted or counted as malformed.
func TestUserAgainstNode(t *testing.T) {
	lines, seed := hostileCredentials(t, 5000)
	const script = `
for (const l of require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean).map(l => JSON.parse(l))) {
  const text = Buffer.from(l.slice(6), 'base64').toString('latin1');
  console.log(JSON.stringify(text.includes(':') ? text.slice(0, text.indexOf(':')) : null));
}`
	checkAnswers(t, "node", []string{"-e", script}, lines, seed)
}

// The same for Python's base64.b64decode, with which its frameworks decode.
func TestUserAgainstPython(t *testing.T) {
	lines, seed := hostileCredentials(t, 5000)
	const script = `
import base64, json, sys
for line in sys.stdin:
    try:
        text = base64.b64decode(json.loads(line)[6:]).decode('latin1')
    except Exception:
        text = ''
    print(json.dumps(text.split(':')[0] if ':' in text else None))
`
	checkAnswers(t, "python3", []string{"-c", script}, lines, seed)
}

// checkAnswers compares with a program that reads headers as lines of JSON, and
// answers each with a line: the user, or null.
func checkAnswers(t *testing.T, program string, args, lines []string, seed uint64) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("SKIP: there is no %s here; credentials are not compared with what it accepts", program)
	}
	var in strings.Builder
	for _, line := range lines {
		text, _ := json.Marshal(line)
		in.Write(text)
		in.WriteByte('\n')
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), os.Stderr
	out := must.Get(cmd.Output())(t)
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != len(lines) {
		t.Fatalf("%s gave %d answers to %d headers", program, len(answers), len(lines))
	}
	accepted := 0
	for i, answer := range answers {
		var user *string
		must.Do(t, json.Unmarshal([]byte(answer), &user))
		if user == nil || *user == "" {
			continue
		}
		accepted++
		raw := make([]byte, 0, len(*user)) // the answer is Latin-1, one character a byte
		for _, c := range *user {
			raw = append(raw, byte(c))
		}
		checkUser(t, seed, lines[i], program, string(raw))
	}
	if accepted < len(lines)/4 {
		t.Errorf("seed %d: %s accepted %d of %d, too few to mean anything", seed, program, accepted, len(lines))
	}
}

// Values that a real nginx accepts for $remote_user are accepted or counted as malformed.
func TestUserAgainstNginx(t *testing.T) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("SKIP: there is no nginx here; credentials are not compared with what it accepts")
		}
	}
	listen, dir := freeport.Addr(t), t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	conf := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log /dev/null;
events {}
http {
access_log off; keepalive_requests 1000000;
client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
server { listen %[2]s; location / { default_type text/plain; return 200 "$remote_user"; } }
}
`, dir, listen)
	must.Do(t, os.WriteFile(file, []byte(conf), 0o600))
	cmd := exec.Command(program, "-p", dir, "-e", "stderr", "-c", file)
	cmd.Stderr = os.Stderr
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var conn net.Conn
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if conn, err = net.Dial("tcp", listen); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	lines, seed := hostileCredentials(t, 3000)
	accepted := 0
	for _, line := range lines {
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: %s\r\n\r\n", line)
		w, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("seed %d: %q: %v", seed, line, err)
		}
		user, _ := io.ReadAll(w.Body)
		w.Body.Close()
		if len(user) == 0 {
			continue
		}
		accepted++
		checkUser(t, seed, line, "nginx", string(user))
	}
	if accepted < len(lines)/4 {
		t.Errorf("seed %d: nginx accepted %d of %d, too few to mean anything", seed, accepted, len(lines))
	}
}

func FuzzUser(f *testing.F) {
	for _, line := range []string{"Basic YWRhOnB3", "Basic  YW.Rh=OnB3", "Basic -_", "Bearer x", "Basic"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := userOf(line)
		if strings.Contains(got, ":") && got != malformedUser {
			t.Errorf("%q: the user is %q, with a ':'", line, got)
		}
		r := &http.Request{Header: http.Header{"Authorization": {line}}}
		if user, _, ok := r.BasicAuth(); ok && user != "" && user != got {
			t.Errorf("%q: the user is %q; net/http has %q", line, got, user)
		}
	})
}
