package cli

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
)

// A step is a command of a document and the output that it shows.
type step struct{ command, want string }

// steps returns the commands of the ```console blocks of a document, in order.
func steps(text string) (all []step) {
	for _, block := range regexp.MustCompile("(?s)\n```console\n(.*?)\n```\n").FindAllStringSubmatch(text, -1) {
		for _, part := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			all = append(all, step{command, strings.TrimSpace(want)})
		}
	}
	return all
}

// shows reports whether an output has the lines of want, in their order. Without a
// line "..." in want it must have no other lines.
func shows(output, want string, shortened bool) bool {
	if !shortened && !strings.Contains(want, "...") {
		return strings.TrimSpace(output) == want
	}
	rest := "\n" + output + "\n"
	for line := range strings.Lines(want) {
		if line = strings.TrimRight(line, "\n"); line == "..." || line == "" {
			continue
		}
		_, after, ok := strings.Cut(rest, "\n"+line+"\n")
		if !ok {
			return false
		}
		rest = "\n" + after
	}
	return true
}

// documents are the pages whose commands a test runs, with the fewest that each has.
var documents = map[string]int{"README.md": 2, "docs/getting-started.md": 6, "docs/replay.md": 4, "docs/log-to-rule.md": 9, "docs/follow.md": 2, "docs/guides/slow-morning.md": 7, "docs/guides/fail2ban.md": 7, "docs/server.md": 12, "docs/hot-keys.md": 2, "docs/troubleshooting.md": 5, "docs/is-it-working.md": 7, "docs/privacy.md": 3}

// The commands of each document are run in a directory of its own, with the demo's log, the rules of examples/rules.yaml,
// and a server that enforces them. The output of a command is what the document shows; the report of a replay is shortened
// there.
func TestDocumentedCommands(t *testing.T) {
	for _, tool := range []string{"redis-cli", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIP commands of the documentation: there is no %s here", tool)
		}
	}
	root := filepath.Join("..", "..")
	for page, least := range documents {
		t.Run(strings.ReplaceAll(page, "/", "-"), func(t *testing.T) {
			text := must.Get(os.ReadFile(filepath.Join(root, filepath.FromSlash(page))))(t)
			dir := t.TempDir()
			example, err := os.ReadFile(filepath.Join(root, "examples", "rules.yaml"))
			tests, err2 := os.ReadFile(filepath.Join(root, "examples", "rules.test.yaml"))
			if err = errors.Join(err, err2, os.WriteFile(filepath.Join(dir, "rules.yaml"), example, 0o600),
				os.WriteFile(filepath.Join(dir, "rules.test.yaml"), tests, 0o600), demoLog(filepath.Join(dir, "access.log.gz"))); err != nil {
				t.Fatal(err)
			}
			followSteps(t, string(text), dir, serve(t, "--rules", filepath.Join(dir, "rules.yaml")), least)
		})
	}
}

// followSteps runs the commands of a document, of which there must be at least a number, in dir, where s is the server.
func followSteps(t *testing.T, text, dir string, s *serving, least int) {
	host, port, _ := net.SplitHostPort(s.resp)
	real := strings.NewReplacer("redis-cli -p 7379", "redis-cli --no-raw -h "+host+" -p "+port, "localhost:7380", strings.TrimPrefix(s.http, "http://"))
	all := steps(text)
	for _, step := range all {
		cmd := exec.Command("sh", "-c", real.Replace(step.command))
		cmd.Dir = dir
		output, err := cmd.CombinedOutput()
		if err != nil || !shows(string(output), step.want, strings.HasPrefix(step.command, "lately replay")) {
			t.Errorf("%s: %v\ngot\n%s\nwant\n%s", step.command, err, output, step.want)
		}
	}
	if len(all) < least {
		t.Errorf("%d commands found, want at least %d", len(all), least)
	}
}

// shellLines returns the commands of the ```sh blocks of a document, without comments.
func shellLines(text string) (all []string) {
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?)\n```\n").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
			if line = strings.TrimSpace(line); line != "" {
				all = append(all, line)
			}
		}
	}
	return all
}

// elsewhere has, by their beginnings, the commands that need what a test does not have.
var elsewhere = map[string]string{
	"git clone":       "the network",
	"go install":      "the network",
	"docker":          "a Docker daemon",
	"kubectl":         "a cluster",
	"sudo":            "root, and systemd",
	"journalctl":      "systemd",
	"jq":              "lists from the network",
	"redis-cli":       "a running server",
	"curl --unix":     "a running server",
	"curl -si":        "nginx in front of it, which other tests run",
	"chmod ":          "a file of the reader",
	"curl --cacert":   "a running server",
	"lately status":   "a running server",
	"lately validate": "the files of an installed package",
	"for i in":        "a proxy, which other tests run",
	"go mod":          "a program of the reader",
	"systemctl":       "systemd",
	"lately ban":      "a running server",
}

// Each command of a ```sh block has the syntax of a shell, and is run where that is possible: make as a dry run, a server
// with its flags checked only.
func TestShellBlocks(t *testing.T) {
	root := must.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	dir := t.TempDir()
	must.Do(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))))
	must.Do(t, os.Link(filepath.Join(dir, "examples", "rules.yaml"), filepath.Join(dir, "rules.yaml")))
	must.Do(t, demoLog(filepath.Join(dir, "access.log.gz")))
	ran := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/guides/*.md", "docs/recipes/*.md"} {
		pages, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		for _, page := range pages {
			text := must.Get(os.ReadFile(page))(t)
			for _, line := range shellLines(string(text)) {
				t.Run(filepath.Base(page)+" "+line, func(t *testing.T) {
					if out, err := exec.Command("sh", "-n", "-c", line).CombinedOutput(); err != nil {
						t.Fatalf("%s: %v\n%s", line, err, out)
					}
					for beginning, what := range elsewhere {
						if strings.HasPrefix(line, beginning) {
							t.Skipf("SKIP %s: it needs %s", line, what)
						}
					}
					line = strings.ReplaceAll(line, "bin/lately ", "lately ")
					cmd := exec.Command("sh", "-c", line)
					cmd.Dir = dir
					switch {
					case strings.HasPrefix(line, "lately serve "):
						cmd.Args[2] += " --help"
					case strings.HasPrefix(line, "make "):
						cmd.Args[2] = "make --dry-run " + strings.TrimPrefix(line, "make ")
						cmd.Dir = root
					}
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("%s: %v\n%s", line, err, out)
					}
					ran++
				})
			}
		}
	}
	if ran < 10 {
		t.Errorf("%d commands were run, want at least 10", ran)
	}
}

// The control: other output is found, and a line that is missing or out of order.
func TestOtherOutputIsFound(t *testing.T) {
	for _, c := range []struct {
		output, want string
		shortened    bool
		ok           bool
	}{
		{"a\nb\n", "a\nb", false, true},
		{"a\nb\nc\n", "a\nb", false, false},
		{"a\nb\nc\n", "a\n...\nc", false, true},
		{"a\nb\nc\n", "a\nc", true, true},
		{"a\nb\nc\n", "c\na", true, false},
		{"a\nb\nc\n", "a\nx", true, false},
	} {
		if got := shows(c.output, c.want, c.shortened); got != c.ok {
			t.Errorf("output %q as %q: %v, want %v", c.output, c.want, got, c.ok)
		}
	}
}

// demoLog writes the log of make demo, compressed.
func demoLog(name string) error {
	log, err := madeDemoLog()
	return errors.Join(err, os.WriteFile(name, log, 0o600))
}

var madeDemoLog = sync.OnceValues(func() ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := accesslogtest.Write(z, accesslogtest.Config{})
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
})

// A server starts with the rules of examples/rules.yaml, and logs no warning.
func TestExampleRules(t *testing.T) {
	s := serve(t, "--rules", filepath.Join("..", "..", "examples", "rules.yaml"))
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Contains(log, "level=WARN") {
		t.Errorf("it begins with warnings:\n%s", log)
	}
}

// make run starts the demo, which lately top can watch, and no warning is logged.
func TestMakeRun(t *testing.T) {
	recipe := must.Get(os.ReadFile(filepath.Join("..", "..", "Makefile")))(t)
	_, after, _ := strings.Cut(string(recipe), "\nrun: ")
	_, after, _ = strings.Cut(after, "\n\tbin/lately serve ")
	flags, _, _ := strings.Cut(after, "\n")
	s := serve(t, strings.Fields(flags)...)
	if !eventually(func() bool {
		return strings.Contains(string(get(t, s.http+"/v1/hot")), "/product/2718") && strings.Contains(string(get(t, s.http+"/v1/bans")), "203.0.113.20")
	}) {
		t.Error("the page has no hot product and no ban")
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Contains(log, "level=WARN") {
		t.Errorf("make run begins with warnings:\n%s", log)
	}
}
