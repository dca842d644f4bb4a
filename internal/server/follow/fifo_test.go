//go:build unix

package follow

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// TestFIFO follows a named pipe that is made after the start, whose writers come and go, and that is deleted and
// made again.
func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	make := func() {
		t.Helper()
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
	}
	writer := func() *os.File {
		t.Helper()
		w := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t) // which waits for no reader
		return w
	}
	r := newReader(t, Config{}, path)
	r.want() // it is not there yet
	make()
	r.want() // no program writes to it
	first := writer()
	writeTo(t, first, lineOf("a"))
	r.eventually("a")
	second := writer()
	writeTo(t, second, lineOf("b"), "1700000000,c") // which is killed in a line
	second.Close()
	r.eventually("b")
	first.Close()
	r.eventually("c")
	r.want()
	third := writer()
	writeTo(t, third, lineOf("d"))
	r.eventually("d")
	if s := r.Stats()[0]; s.Lines != 4 || s.Problem != "" {
		t.Errorf("%+v", s)
	}

	writeTo(t, third, lineOf("e"))
	third.Close()
	must.Do(t, os.Remove(path))
	r.eventually("e")
	for end := time.Now().Add(time.Minute); r.Stats()[0].Problem == ""; time.Sleep(time.Millisecond) {
		if r.want(); time.Now().After(end) {
			t.Fatalf("%+v, want an error that it is missing", r.Stats()[0])
		}
	}
	make()
	fourth := writer()
	defer fourth.Close()
	writeTo(t, fourth, lineOf("f"))
	r.eventually("f")
	if s := r.Stats()[0]; s.Problem != "" {
		t.Errorf("%+v", s)
	}
}
