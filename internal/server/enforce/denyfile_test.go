//go:build unix

package enforce

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
)

// networks returns changes by which networks are banned.
func networks(t *testing.T, clients ...string) (changes []change) {
	t.Helper()
	c := config(t)
	c.DenyFile.Path = filepath.Join(t.TempDir(), "unused")
	e := must.Get(New(c))(t)
	for _, client := range clients {
		b := banOf(client, time.Hour)
		e.Add(&b)
	}
	changes, _ = e.bans.after(0, 0)
	return changes
}

// The file has all networks in order, is replaced as a whole and keeps its permissions. The
// command runs when it has changed, and again when it failed.
func TestDenyFile(t *testing.T) {
	dir := t.TempDir()
	path, ran, fails := filepath.Join(dir, "deny"), filepath.Join(dir, "ran"), filepath.Join(dir, "fails")
	d := newDenyFile(DenyFile{Path: path, Command: fmt.Sprintf("echo >> %s; if test -e %s; then echo 'it is broken' >&2; exit 3; fi", ran, fails)})
	apply := func(clients ...string) error {
		t.Helper()
		return d.apply(context.Background(), true, networks(t, clients...))
	}
	want := func(lines string, runs int) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil || string(text) != denyHeader+lines {
			t.Errorf("the file is %q, %v; want %q", text, err, lines)
		}
		if log, _ := os.ReadFile(ran); len(log) != runs {
			t.Errorf("the command ran %d times, want %d", len(log), runs)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*lately-new*")); err != nil || len(left) > 0 {
			t.Errorf("%q is left, %v", left, err)
		}
	}
	for _, step := range []struct {
		clients []string
		lines   string
		runs    int
	}{
		{nil, "", 1},
		{[]string{"2001:db8::/64", "192.0.2.2", "192.0.2.0/24", "192.0.2.1"}, "192.0.2.0/24 1;\n192.0.2.1/32 1;\n192.0.2.2/32 1;\n2001:db8::/64 1;\n", 2},
		{[]string{"192.0.2.0/24", "192.0.2.1", "192.0.2.2", "2001:db8::/64"}, "192.0.2.0/24 1;\n192.0.2.1/32 1;\n192.0.2.2/32 1;\n2001:db8::/64 1;\n", 2},
		{[]string{"192.0.2.2"}, "192.0.2.2/32 1;\n", 3},
	} {
		must.Do(t, apply(step.clients...))
		want(step.lines, step.runs)
	}
	must.Do(t, os.Chmod(path, 0o640))
	must.Do(t, os.WriteFile(fails, nil, 0o600))
	for runs := 4; runs < 6; runs++ {
		if err := apply("192.0.2.3"); err == nil || !strings.Contains(err.Error(), "deny-command: exit status 3: it is broken") {
			t.Errorf("the error is %v", err)
		}
		want("192.0.2.3/32 1;\n", runs)
	}
	must.Do(t, os.Remove(fails))
	if err := apply("192.0.2.3"); err != nil {
		t.Error(err)
	}
	want("192.0.2.3/32 1;\n", 6)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the permissions are %v, %v; want 0640", info.Mode(), err)
	}

	if err := d.verify(context.Background()); err != nil {
		t.Error(err)
	}
	must.Do(t, os.WriteFile(path, []byte("192.0.2.4/32 1;\n"), 0o640))
	if d.verify(context.Background()) == nil {
		t.Error("what somebody else wrote was not found")
	}
	if err := apply("192.0.2.3"); err != nil {
		t.Error(err)
	}
	want("192.0.2.3/32 1;\n", 7)
}

// A link to the file stays one, and a directory that is missing is an error that names it.
func TestDenyFilePaths(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	must.Do(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must.Do(t, os.Symlink("file", link))
	must.Do(t, newDenyFile(DenyFile{Path: link, Format: "haproxy"}).apply(context.Background(), true, networks(t, "192.0.2.1")))
	if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != denyHeader+"192.0.2.1/32\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	missing := filepath.Join(dir, "missing", "deny")
	if err := newDenyFile(DenyFile{Path: missing}).apply(context.Background(), true, nil); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("without a directory, the error is %v", err)
	}
	for _, f := range []DenyFile{{Format: "nginx"}, {Command: "true"}, {Path: "p", Format: "apache"}, {Path: "p", Every: time.Second}, {Path: "p", Command: "true", Every: 1}} {
		c := config(t)
		c.DenyFile = f
		if _, err := New(c); err == nil || !strings.HasPrefix(err.Error(), "deny-") {
			t.Errorf("%+v: the error is %v", f, err)
		}
	}
}

// status returns the status with which a proxy answers a client, whose address it takes
// from X-Real-IP; 0 if it does not answer.
func status(proxy, client string) int {
	r, err := http.NewRequest("GET", "http://"+proxy+"/", nil)
	if err != nil {
		return 0
	}
	r.Header.Set("X-Real-IP", client)
	r.Close = true
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer w.Body.Close()
	_, _ = io.Copy(io.Discard, w.Body)
	return w.StatusCode
}

// testProxy has a proxy, which program starts in a directory with the file deny, refuse banned clients and no others.
func testProxy(t *testing.T, format, program, command string, write func(dir, listen string) (args []string)) {
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip("SKIP:", err)
	}
	dir, listen := t.TempDir(), freeport.Addr(t)
	c := config(t)
	c.DenyFile = DenyFile{Path: filepath.Join(dir, "deny"), Format: format, Every: minDenyEvery, Command: strings.NewReplacer("DIR", dir, "PROGRAM", path).Replace(command)}
	e := must.Get(New(c))(t)
	must.Do(t, e.Replace(all(banOf("192.0.2.1", time.Hour), banOf("2001:db8::/64", time.Hour))))
	args := write(dir, listen)
	if err := e.runners[0].follow(t.Context()); err == nil {
		t.Error("the command succeeds before there is a proxy: this test cannot fail")
	}
	cmd := exec.Command(path, args...)
	log := must.Get(os.Create(filepath.Join(dir, "log")))(t)
	cmd.Stdout, cmd.Stderr = log, log
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // the workers end with it
		_ = cmd.Wait()
		log.Close()
	})
	want := func(client string, code int) {
		t.Helper()
		eventually(t, func() error {
			if got := status(listen, client); got != code {
				text, _ := os.ReadFile(log.Name())
				return fmt.Errorf("%s gets %d, want %d; the target is %+v\n%s", client, got, code, e.Status().Targets[0], text)
			}
			return nil
		})
	}
	want("192.0.2.2", 200)
	run(t, e)
	want("192.0.2.1", 403)
	want("2001:db8::77", 403)
	want("2001:db8:0:1::77", 200)
	b := banOf("192.0.2.0/28", time.Hour)
	e.Add(&b)
	want("192.0.2.2", 403)
	want("192.0.2.16", 200)
	for _, client := range []string{"192.0.2.0/28", "192.0.2.1", "2001:db8::/64"} {
		e.Remove("client", []string{client})
	}
	for _, client := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::77"} {
		want(client, 200)
	}
	eventually(t, func() error {
		if s := e.Status().Targets[0]; s.Error != "" || s.Lag != 0 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

// A real nginx with the file of the documentation.
func TestNginxRefuses(t *testing.T) {
	testProxy(t, "nginx", "nginx", "PROGRAM -p DIR -e stderr -c DIR/nginx.conf -s reload", func(dir, listen string) []string {
		conf := filepath.Join(dir, "nginx.conf")
		text := fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log stderr; worker_processes 1;
events {}
http {
	access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	geo $lately_banned { default 0; include %[1]s/deny; }
	server {
		listen %[2]s;
		set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
		if ($lately_banned) { return 403; }
		return 200;
	}
}
`, dir, listen)
		must.Do(t, os.WriteFile(conf, []byte(text), 0o600))
		return []string{"-p", dir, "-e", "stderr", "-c", conf}
	})
}

// A real HAProxy with the file of the documentation.
func TestHAProxyRefuses(t *testing.T) {
	// HAProxy ignores the signal while it starts and while it reloads.
	const command = `workers() { grep -c "Loading success" DIR/log; }
before=$(workers)
until [ "$(workers)" -gt "$before" ]; do kill -USR2 "$(cat DIR/pid)" || exit; sleep 0.2; done`
	testProxy(t, "haproxy", "haproxy", command, func(dir, listen string) []string {
		conf := filepath.Join(dir, "haproxy.cfg")
		text := fmt.Sprintf(`defaults
	mode http
	timeout client 5s
	timeout server 5s
	timeout connect 5s
frontend web
	bind %[2]s
	http-request set-src hdr(x-real-ip)
	http-request deny deny_status 403 if { src -f %[1]s/deny }
	http-request return status 200
`, dir, listen)
		must.Do(t, os.WriteFile(conf, []byte(text), 0o600))
		return []string{"-W", "-db", "-f", conf, "-p", filepath.Join(dir, "pid")}
	})
}

// A command that does not end is killed when the server ends, and delays no other for longer.
func TestDenyCommandHangs(t *testing.T) {
	d := newDenyFile(DenyFile{Path: filepath.Join(t.TempDir(), "deny"), Command: "sleep 600"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.apply(ctx, true, nil) }()
	eventually(t, func() error { return d.exists() })
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a command that was killed has succeeded")
		}
	case <-time.After(time.Minute):
		t.Error("the command goes on")
	}
}

func (d *denyFile) exists() error {
	_, err := os.Stat(d.Path)
	return err
}
