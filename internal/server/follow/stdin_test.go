package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// eventually polls until as many names are new as in names, and compares them.
func (r *testReader) eventually(names ...string) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); len(r.names) < len(names) && time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.now = r.now.Add(discover)
		r.poll(context.Background(), r.now)
	}
	if !slices.Equal(r.names, names) {
		r.t.Fatalf("read %q, want %q", r.names, names)
	}
	r.names = nil
}

// lineOf returns a line with a name.
func lineOf(name string) string { return "1700000000," + name + "\n" }

// writeTo writes text, which the other end has read when it returns.
func writeTo(t *testing.T, w io.Writer, text ...string) {
	t.Helper()
	must.Get(io.WriteString(w, strings.Join(text, "")))(t)
}

// TestStdin follows the standard input to its end, whose last line need not be whole. The second Follower goes on
// where the first one has stopped.
func TestStdin(t *testing.T) {
	in, out := io.Pipe()
	c := Config{Stdin: NewInput(in), Lateness: time.Minute}
	first := newReader(t, c, "-")
	first.want()
	writeTo(t, out, lineOf("a"), "1700000000,b")
	first.eventually("a")
	second := newReader(t, c, "-")
	go func() {
		_, err := io.WriteString(out, "b\nx,bad\n"+strings.Repeat("x", 3*blockSize)+"\n"+lineOf("c")+fmt.Sprintf("%d,last", time.Now().Unix()))
		out.CloseWithError(err) // nil ends the input
	}()
	if err := second.Run(t.Context()); err != nil || !slices.Equal(second.names, []string{"bb", "c", "last"}) {
		t.Errorf("%v: read %q", err, second.names)
	}
	if s := second.Stats()[0]; s.File != "-" || s.Lines != 5 || s.Bad != 2 || s.Unread != 0 || s.Problem != "" {
		t.Errorf("%+v", s)
	}
}

// TestStdinOfAnOldLog puts the lines of an old log in the order of time, though the reader is faster than the writer. At the end of
// the input, or when no line has come for as long as events may be late, none waits.
func TestStdinOfAnOldLog(t *testing.T) {
	in, out := io.Pipe()
	r := newReader(t, Config{Stdin: NewInput(in), Lateness: time.Minute}, "-")
	r.want()
	writeTo(t, out, "1700000030,c\n")
	for r.Stats()[0].Lines < 1 {
		r.poll(t.Context(), r.now)
	}
	writeTo(t, out, "1700000020,b\n", "1700000010,a\n")
	for r.Stats()[0].Lines < 3 {
		r.poll(t.Context(), r.now)
	}
	r.poll(t.Context(), r.now.Add(time.Minute-1))
	if r.names != nil {
		t.Errorf("%q did not wait", r.names)
	}
	r.now = r.now.Add(time.Minute)
	r.want("a", "b", "c")
	out.Close()
}

// TestStdinMany reads more than may wait, without a poll for each part.
func TestStdinMany(t *testing.T) {
	const lines = 200_000
	r := newReader(t, Config{Stdin: NewInput(strings.NewReader(strings.Repeat(lineOf("a"), lines)))}, "-")
	if err := r.Run(t.Context()); err != nil || len(r.names) != lines {
		t.Errorf("%v: %d lines are read, want %d", err, len(r.names), lines)
	}
}

// TestStdinFails reports why the standard input cannot be read, and that there is none.
func TestStdinFails(t *testing.T) {
	r := newReader(t, Config{Stdin: NewInput(io.MultiReader(strings.NewReader(lineOf("a")), iotest.ErrReader(errors.New("it is torn"))))}, "-", t.TempDir())
	r.eventually("a")
	for end := time.Now().Add(time.Minute); r.Stats()[0].Problem != "it is torn" && time.Now().Before(end); {
		r.want()
	}
	if s := r.Stats()[0]; s.Problem != "it is torn" {
		t.Errorf("%+v", s)
	}
	if _, err := New(Config{Logs: []Log{{Path: "-"}}}); err == nil || !strings.Contains(err.Error(), "there is no standard input") {
		t.Error(err)
	}
}
