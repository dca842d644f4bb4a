//go:build unix

package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// dockerfile returns the text after each instruction of the Dockerfile.
func dockerfile(t *testing.T) map[string][]string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "Dockerfile")))(t)
	all := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			all[name] = append(all[name], rest)
		}
	}
	return all
}

// TestContainerHasPacks compares the packs in the image with those in docs/packs.md.
func TestContainerHasPacks(t *testing.T) {
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "packs.md")))(t)
	if dir := "/usr/share/lately/packs"; !bytes.Contains(page, []byte("`"+dir+"`")) || !slices.Contains(dockerfile(t)["COPY"], "--from=build /src/examples/packs "+dir) {
		t.Errorf("docs/packs.md or the Dockerfile does not have the packs in %s", dir)
	}
	ignored, err := os.ReadFile(filepath.Join("..", "..", ".dockerignore"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if strings.Contains(string(ignored), "examples") {
		t.Errorf(".dockerignore leaves the packs out:\n%s", ignored)
	}
}

// words returns the words of an instruction with a list.
func words(t *testing.T, instruction []string) (list []string) {
	t.Helper()
	if len(instruction) != 1 || json.Unmarshal([]byte(instruction[0]), &list) != nil {
		t.Fatalf("%q is not a list of words", instruction)
	}
	return list
}

// variables returns what ENV sets, without variables that extra sets, and extra.
func variables(file map[string][]string, extra ...string) []string {
	var set []string
	for _, line := range file["ENV"] {
		set = append(set, strings.Fields(line)...)
	}
	set = slices.DeleteFunc(set, func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.ContainsFunc(extra, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	})
	return append(set, extra...)
}

// The image's settings are ones that the server takes, with its data where its user
// may write; tokens are needed, and switched off by their own setting only.
func TestContainerSettings(t *testing.T) {
	file := dockerfile(t)
	if entry, cmd := words(t, file["ENTRYPOINT"]), words(t, file["CMD"]); !slices.Equal(append(entry, cmd...), []string{"/lately", "serve"}) {
		t.Errorf("the command is %q %q", entry, cmd)
	}
	var c Config
	if err := errors.Join(ReadEnvironment(&c, variables(file)), c.Validate()); err != nil {
		t.Error(err)
	}
	without := c
	without.NoTLS = false
	if err := without.Validate(); err == nil {
		t.Error("without no-tls it is taken, too: this test cannot fail")
	}
	if c.NoTokens || c.TokenFile != c.Data+"/tokens" {
		t.Errorf("the image has the tokens %q, no-tokens %v; want a token file in %s", c.TokenFile, c.NoTokens, c.Data)
	}
	if want := []string{c.Data}; !slices.Equal(file["VOLUME"], want) {
		t.Errorf("the volume is %q; want %q", file["VOLUME"], want)
	}
	user := file["USER"][0]
	if !slices.Contains(file["COPY"], "--from=build --chown="+user+" /data "+c.Data) {
		t.Errorf("%s is not made for the user %s: %q", c.Data, user, file["COPY"])
	}
	ports := strings.Fields(file["EXPOSE"][0])
	if !strings.HasSuffix(c.RESP, ":"+ports[0]) || !strings.HasSuffix(c.HTTP, ":"+ports[1]) {
		t.Errorf("the ports are %q", ports)
	}
	if d, err := c.withDefaults(); err != nil || d.ShutdownDelay+d.ShutdownTimeout >= 10*time.Second {
		t.Errorf("shutdown delay %v and drain %v, %v; docker stop waits for 10 s", d.ShutdownDelay, d.ShutdownTimeout, err)
	}
	if c.ShutdownTimeout <= 0 || c.ShutdownTimeout >= 10*time.Second {
		t.Errorf("drain is %v; docker stop waits for 10 s", c.ShutdownTimeout)
	}
}

// An image is the root file system that the Dockerfile builds.
type image struct {
	file map[string][]string
	root string
	user uint32
}

// built returns the image, made without Docker: the binary is built by the command of
// the Dockerfile, and /data belongs to the user.
func built(t *testing.T) image {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the binary")
	}
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("SKIP the container's file system: only root on Linux can run a program in it")
	}
	m := image{file: dockerfile(t), root: t.TempDir()}
	i := slices.IndexFunc(m.file["RUN"], func(line string) bool { return strings.Contains(line, "go build") })
	build, _, _ := strings.Cut(m.file["RUN"][i], " && ")
	cmd := exec.Command("sh", "-c", strings.Replace(build, "-o /lately", "-o '"+filepath.Join(m.root, "lately")+"'", 1))
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "VERSION=1.2.3")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	uid, gid, _ := strings.Cut(m.file["USER"][0], ":")
	user, err := strconv.ParseUint(uid, 10, 32)
	if err != nil || uid != gid {
		t.Fatalf("the user is %s", m.file["USER"])
	}
	m.user = uint32(user)
	must.Do(t, errors.Join(os.Mkdir(m.data(), 0o755), os.Chown(m.data(), int(m.user), int(m.user)), os.Chmod(m.root, 0o755)))
	return m
}

func (m *image) data() string { return filepath.Join(m.root, "data") }

// command returns `docker run` with these variables: the image's program, in its file
// system, as its user, with nothing else around it. Ports are free ones.
func (m *image) command(t *testing.T, extra ...string) *exec.Cmd {
	args := append(words(t, m.file["ENTRYPOINT"]), words(t, m.file["CMD"])...)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(stop)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = variables(m.file, append(extra, "LATELY_RESP=0.0.0.0:0", "LATELY_HTTP=0.0.0.0:0")...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.root, Credential: &syscall.Credential{Uid: m.user, Gid: m.user}}
	return cmd
}

// A container is a started image.
type container struct {
	cmd        *exec.Cmd
	resp, http string // addresses on loopback
	log        bytes.Buffer
}

// start runs the image until the test ends, or stop is called.
func (m *image) start(t *testing.T, extra ...string) *container {
	t.Helper()
	c := &container{cmd: m.command(t, extra...)}
	c.cmd.Stderr = &c.log
	said := must.Get(c.cmd.StdoutPipe())(t)
	must.Do(t, c.cmd.Start())
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "console ") {
		port := regexp.MustCompile(`:([0-9]+)`).FindStringSubmatch(lines.Text())
		switch {
		case port == nil:
		case strings.HasPrefix(lines.Text(), "RESP "):
			c.resp = "127.0.0.1:" + port[1]
		case strings.HasPrefix(lines.Text(), "HTTP "):
			c.http = "127.0.0.1:" + port[1]
		}
	}
	if c.resp == "" || c.http == "" {
		t.Fatalf("it did not start: %v\n%s", c.cmd.Wait(), c.log.String())
	}
	return c
}

// stop ends the container as `docker stop` does, and returns its log.
func (c *container) stop(t *testing.T) string {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, c.log.String())
	}
	return c.log.String()
}

// status requests the caller's identity from the HTTP listener with a token, and returns the status and the body.
func (c *container) status(t *testing.T, token string) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequest("GET", "http://"+c.http+"/v1/status", nil))(t)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	body := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(body)
}

// ask sends a RESP command and returns the first line of the answer.
func (c *container) ask(t *testing.T, command string) string {
	t.Helper()
	conn := must.Get(net.Dial("tcp", c.resp))(t)
	defer conn.Close()
	must.Get(io.WriteString(conn, command+"\r\n"))(t)
	return must.Get(bufio.NewReader(conn).ReadString('\n'))(t)
}

// The image runs in an empty file system, as an unprivileged user. The first start creates the token file, which only its
// user can read, and prints its path without a token; requests without a token are refused. A second start uses the same
// tokens.
func TestContainerRuns(t *testing.T) {
	m := built(t)
	if out, err := exec.Command(filepath.Join(m.root, "lately"), "version").Output(); err != nil || !strings.HasPrefix(string(out), "lately 1.2.3 ") {
		t.Errorf("version prints %q, %v", out, err)
	}
	// An empty image has no time zone database.
	if binary, err := os.ReadFile(filepath.Join(m.root, "lately")); err != nil || !bytes.Contains(binary, []byte("Pacific/Chatham")) {
		t.Errorf("the program has no time zones, %v", err)
	}
	var texts [2]string
	for i := range texts {
		c := m.start(t)
		path := filepath.Join(m.data(), "tokens")
		info := must.Get(os.Stat(path))(t)
		if stat := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != 0o600 || stat.Uid != m.user {
			t.Errorf("the token file has mode %v and is of user %d", info.Mode(), stat.Uid)
		}
		text := must.Get(os.ReadFile(path))(t)
		texts[i] = string(text)
		fields := strings.Fields(texts[i])
		admin := fields[slices.Index(fields, "admin")+1]
		if code, body := c.status(t, ""); code != http.StatusUnauthorized || c.ask(t, "RULES")[0] != '-' {
			t.Errorf("without a token: %d %s", code, body)
		}
		if code, body := c.status(t, admin); code != http.StatusOK || !strings.Contains(body, `"role":"admin"`) {
			t.Errorf("with the admin's token: %d %s", code, body)
		}
		if got := c.ask(t, "AUTH "+admin); got != "+OK\r\n" {
			t.Errorf("AUTH with the admin's token answers %q", got)
		}
		log := c.stop(t)
		if created := strings.Contains(log, "token file created"); created != (i == 0) || created && !strings.Contains(log, "file=/data/tokens") {
			t.Errorf("start %d logs:\n%s", i, log)
		}
		for _, word := range fields {
			if len(word) >= 32 && strings.Contains(log, word) {
				t.Error("a token is in the log")
			}
		}
	}
	if texts[0] != texts[1] || texts[0] == "" {
		t.Error("the second start has changed the tokens")
	}
	if snapshots, err := filepath.Glob(filepath.Join(m.data(), "state")); err != nil || len(snapshots) == 0 {
		t.Errorf("snapshots: %q, %v", snapshots, err)
	}

	// Tokens are switched off by their own setting alone.
	c := m.start(t, "LATELY_TOKEN_FILE=", "LATELY_NO_TOKENS=true")
	if code, body := c.status(t, ""); code != http.StatusOK || !strings.Contains(body, `"role":"admin"`) {
		t.Errorf("without tokens: %d %s", code, body)
	}
	c.stop(t)
	for _, x := range []struct {
		variable, want string
	}{
		{"LATELY_TOKEN_FILE=", "without tokens"},
		{"LATELY_NO_TLS=false", "without TLS"},
	} {
		out, err := m.command(t, x.variable).CombinedOutput()
		if err == nil || !strings.Contains(string(out), x.want) {
			t.Errorf("with %s: %v, %s; want an error with %q", x.variable, err, out, x.want)
		}
	}

	// If the tokens cannot be written, it does not start.
	must.Do(t, errors.Join(os.RemoveAll(m.data()), os.Mkdir(m.data(), 0o755)))
	out, err := m.command(t).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "there is no file /data/tokens, and it cannot be created: permission denied") {
		t.Errorf("with a directory that it cannot write: %v, %s", err, out)
	}
}

// The context has everything that the build needs.
func TestContainerContext(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("..", "..", ".dockerignore")))(t)
	var ignored []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			ignored = append(ignored, line)
		}
	}
	cmd := exec.Command("go", "list", "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}
{{end}}{{end}}{{end}}`, "./cmd/lately")
	cmd.Dir = filepath.Join("..", "..")
	out := must.Get(cmd.Output())(t)
	root := must.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	needed := strings.Fields(string(out))
	if len(needed) < 100 || !slices.Contains(needed, filepath.Join(root, "internal", "server", "console", "ui", "index.html")) {
		t.Fatalf("the build needs only %d files, without the console", len(needed))
	}
	for _, name := range append(needed, filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum")) {
		rel := must.Get(filepath.Rel(root, name))(t)
		parts := strings.Split(filepath.ToSlash(rel), "/")
		for _, pattern := range ignored {
			anywhere, deep := strings.CutPrefix(pattern, "**/")
			for i, part := range parts {
				if match, err := filepath.Match(anywhere, part); err != nil || match && (deep || i == 0) {
					t.Errorf("%s is left out by %s, %v", rel, pattern, err)
				}
			}
		}
	}
}
