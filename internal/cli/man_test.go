package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each command has a page with its flags, and nothing in a text is a command to the
// formatter.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	var out, errs lines
	if code := run(t.Context(), []string{"man", dir}, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatal(errs.String())
	}
	for _, page := range []string{"lately", "lately-serve", "lately-replay", "lately-top", "lately-validate", "lately-version"} {
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
	if !strings.Contains(string(serve), `\-\-trusted\-proxy network`) {
		t.Error("the page of serve does not have its flags")
	}
	replay, _ := os.ReadFile(filepath.Join(dir, "lately-replay.1"))
	if s := string(replay); strings.Contains(s, "(default 0") || !strings.Contains(s, `(default "sliding")`) {
		t.Errorf("the page of replay has not the defaults of its help:\n%s", s)
	}
}

func TestRoff(t *testing.T) {
	if got, want := roff(".a\n'b -c \\d"), "\\&.a\n\\&'b \\-c \\ed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
