package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/replay"
)

func TestInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	must.Do(t, os.WriteFile(path, []byte("1,a\n"), 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	silent, writer := io.Pipe()
	for name, args := range map[string][]string{
		"reading a file":        {"replay", "--format", "csv:time=1@s,client=2", path},
		"waiting for the input": {"replay", "-"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(ctx, args, silent, &stdout, &stderr)
		if code != 130 || stdout.Len() > 0 || stderr.String() != "lately: interrupted\n" {
			t.Errorf("%s: exit code %d, output %q, error %q", name, code, stdout.Bytes(), stderr.Bytes())
		}
	}
	// The command that was left behind ends when its input does.
	must.Do(t, writer.Close())
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("nobody listens") }

// TestReportNotWritten has an output that fails: the exit status is not that of a wrong command line.
func TestReportNotWritten(t *testing.T) {
	for _, args := range [][]string{{"replay", "-"}, {"replay", "--json", "-"}} {
		var stderr bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), brokenPipe{}, &stderr)
		if code != 1 || stderr.String() != "lately: the report cannot be written: nobody listens\n" {
			t.Errorf("%v: exit code %d, error %q", args, code, stderr.Bytes())
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	must.Do(t, os.WriteFile(file, []byte("version: 1\nallow: [10.0.0.1]\n"), 0o600))
	for _, args := range [][]string{{"validate", file}, {"validate", "--json", file}, {"version"}, {"version", "--json"}} {
		var stderr bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), brokenPipe{}, &stderr)
		if code != 1 || stderr.String() != "lately: the output cannot be written: nobody listens\n" {
			t.Errorf("%v: exit code %d, error %q", args, code, stderr.Bytes())
		}
	}
}

func TestProgressLine(t *testing.T) {
	var p replay.Progress
	p.Read.Store(2_500_000)
	p.Lines.Store(1_500_000)
	check := func(want string) {
		t.Helper()
		if got := progressLine(&p, 3*time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check("reading: 2.5 MB, 0.50 M lines/s")
	p.Total.Store(10_000_000)
	check("reading: [#######.......................]  25 %, 0.50 M lines/s, 9s left")
	p.Read.Store(20_000_000) // the file grew
	check("reading: [##############################] 100 %, 0.50 M lines/s, 0s left")
	p.Judging.Store(4)
	p.Judged.Store(3)
	check("judging: 3 of 4")
}

// TestNoTerminal writes to files: the output has neither colour nor a bar.
func TestNoTerminal(t *testing.T) {
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "out")))(t)
	defer file.Close()
	if isTerminal(file) || isTerminal(new(bytes.Buffer)) {
		t.Error("a file and a buffer are terminals")
	}
	stop := showProgress(file, new(replay.Progress))
	stop()
	if st, err := file.Stat(); err != nil || st.Size() > 0 {
		t.Errorf("a bar in a file: %v, %v", st.Size(), err)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 日本 \"quoted\" \\": "plain é 日本 \"quoted\" \\",
		"a\x1b[31m\"":              `a\x1b[31m"`,
		"\xff\u202e\u0085\n":       `\xff\u202e\u0085\n`,
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
}
