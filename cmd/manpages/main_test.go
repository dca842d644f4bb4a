package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// Each command has a page with its flags, in which the formatter finds nothing wrong.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, write(dir))
	for _, page := range []string{"lately", "lately-serve", "lately-replay", "lately-suggest", "lately-diff", "lately-explain", "lately-test", "lately-top", "lately-check", "lately-validate", "lately-version"} {
		text, err := os.ReadFile(filepath.Join(dir, page+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range []string{`.TH "` + strings.ToUpper(page), ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q", page, want)
			}
		}
		if _, err := exec.LookPath("man"); err == nil {
			said, err := exec.Command("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", filepath.Join(dir, page+".1")).CombinedOutput()
			if err != nil || strings.Contains(string(said), "warning") {
				t.Errorf("%s: %v\n%.500s", page, err, said)
			}
		}
	}
	serve, _ := os.ReadFile(filepath.Join(dir, "lately-serve.1"))
	if !strings.Contains(string(serve), `\fB--trusted-proxy\fP \fInetwork\fP`) {
		t.Error("the page of serve does not have its flags")
	}
	ban, _ := os.ReadFile(filepath.Join(dir, "lately-ban.1"))
	for _, want := range []string{`\fB--for\fP \fID\fP`, `\fB--json\fP` + "\nprint", `\fB-h\fP, \fB--help\fP` + "\nhelp", "unix:PATH (default http://127.0.0.1:7380)"} {
		if !strings.Contains(string(ban), want) {
			t.Errorf("the page of ban has no %q", want)
		}
	}
}
