//go:build unix

package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dockerfile returns what the Dockerfile has after each of its instructions.
func dockerfile(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			all[name] = append(all[name], rest)
		}
	}
	return all
}

// words returns the words of an instruction with a list.
func words(t *testing.T, instruction []string) (list []string) {
	t.Helper()
	if len(instruction) != 1 || json.Unmarshal([]byte(instruction[0]), &list) != nil {
		t.Fatalf("%q is no list of words", instruction)
	}
	return list
}

// The container's command line is one that the server takes: open to its network by
// name, with its data where its user may write.
func TestContainerSettings(t *testing.T) {
	file := dockerfile(t)
	cmd := words(t, file["CMD"])
	if entry := words(t, file["ENTRYPOINT"]); len(entry) != 1 || entry[0] != "/lately" || cmd[0] != "serve" {
		t.Errorf("the command is %q %q", entry, cmd)
	}
	var c Config
	settings := Settings()
	for args := cmd[1:]; len(args) > 0; {
		i := slices.IndexFunc(settings, func(s Setting) bool { return "--"+s.Name == args[0] })
		if i < 0 {
			t.Fatalf("%s is no flag", args[0])
		}
		value := "true"
		if args = args[1:]; !settings[i].Bool {
			value, args = args[0], args[1:]
		}
		if err := settings[i].SetText(&c, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Insecure = false
	if err := c.Validate(); err == nil {
		t.Error("without --insecure it is taken too: this test cannot fail")
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
	if c.Drain <= 0 || c.Drain >= 10*time.Second {
		t.Errorf("drain is %v; docker stop waits for 10 s", c.Drain)
	}
}

// What the Dockerfile builds says its version, runs with the container's arguments,
// but for the addresses and the directory, and ends in order when it is told.
func TestContainerRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	file, dir := dockerfile(t), t.TempDir()
	i := slices.IndexFunc(file["RUN"], func(line string) bool { return strings.Contains(line, "go build") })
	build, _, _ := strings.Cut(file["RUN"][i], " && ")
	program := filepath.Join(dir, "lately")
	cmd := exec.Command("sh", "-c", strings.Replace(build, "-o /lately", "-o '"+program+"'", 1))
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "VERSION=1.2.3")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	if out, err := exec.Command(program, "version").Output(); err != nil || !strings.HasPrefix(string(out), "lately 1.2.3 ") {
		t.Errorf("version says %q, %v", out, err)
	}
	// An empty image has no time zone database.
	if binary, err := os.ReadFile(program); err != nil || !bytes.Contains(binary, []byte("Pacific/Chatham")) {
		t.Errorf("the program has no time zones, %v", err)
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	args := words(t, file["CMD"])
	for i, arg := range args {
		args[i] = strings.NewReplacer("0.0.0.0:7379", "127.0.0.1:0", "0.0.0.0:7380", "127.0.0.1:0", "/data", data).Replace(arg)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd = exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{} // as in an empty image
	cmd.Dir = dir
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "console ") {
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%q: %v\n%s", args, err, log.String())
	}
	if snapshots, err := filepath.Glob(filepath.Join(data, "snapshot-*")); err != nil || len(snapshots) != 1 {
		t.Errorf("snapshots: %q, %v", snapshots, err)
	}
}

// The build finds all that it needs: nothing of it is left out of the context.
func TestContainerContext(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	var ignored []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			ignored = append(ignored, line)
		}
	}
	cmd := exec.Command("go", "list", "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}
{{end}}{{end}}{{end}}`, "./cmd/lately")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	needed := strings.Fields(string(out))
	if len(needed) < 100 || !slices.Contains(needed, filepath.Join(root, "server", "console", "ui", "index.html")) {
		t.Fatalf("the build needs only %q", needed)
	}
	for _, name := range append(needed, filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum")) {
		rel, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
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
