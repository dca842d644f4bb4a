// Package journaltest has a journal of systemd for tests, and a journalctl that prints it.
package journaltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// directory is the variable with the directory of the journal.
const directory = "FAKE_JOURNAL"

// The files of a journal.
const (
	entriesFile = "entries"
	killsFile   = "kills"   // its size is how often journalctl was killed
	messageFile = "message" // what journalctl writes to its standard error
	brokenFile  = "broken"  // journalctl fails while this file exists
	startsFile  = "starts"  // the arguments of each start
)

// A Journal is a journal whose journalctl is in the PATH of the test.
type Journal struct {
	t   testing.TB
	dir string
	n   int // entries so far
}

// An Entry is an entry of a journal.
type Entry struct {
	Cursor     string `json:"__CURSOR"`
	Time       string `json:"__REALTIME_TIMESTAMP"`
	Identifier string `json:"SYSLOG_IDENTIFIER"`
	Unit       string `json:"_SYSTEMD_UNIT,omitempty"`
	Message    string `json:"MESSAGE"`
}

// New returns a journal without entries. The TestMain of the package must call [Main].
func New(t testing.TB) *Journal {
	t.Helper()
	j := &Journal{t: t, dir: t.TempDir()}
	self, err := os.Executable()
	j.must(err)
	bin := filepath.Join(j.dir, "bin")
	j.must(os.Mkdir(bin, 0o700))
	if err := os.Symlink(self, filepath.Join(bin, "journalctl")); err != nil {
		t.Skipf("SKIP the journal: %v", err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv(directory, j.dir)
	j.write(entriesFile, "")
	return j
}

func (j *Journal) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// write appends to a file.
func (j *Journal) write(name, text string) {
	j.t.Helper()
	f, err := os.OpenFile(filepath.Join(j.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	j.must(err)
	_, err = f.WriteString(text)
	j.must(errors.Join(err, f.Close()))
}

// Add adds an entry of a program, with the unit of the same name.
func (j *Journal) Add(at time.Time, program, message string) {
	j.t.Helper()
	j.n++
	line, err := json.Marshal(Entry{
		Cursor: fmt.Sprintf("s=f00;i=%x;b=b00;m=%x;t=%x;x=%x", j.n, j.n, at.UnixMicro(), j.n), Time: strconv.FormatInt(at.UnixMicro(), 10),
		Identifier: program, Unit: program + ".service", Message: message,
	})
	j.must(err)
	j.write(entriesFile, string(line)+"\n")
}

// Vacuum deletes all entries but the last ones.
func (j *Journal) Vacuum(keep int) {
	j.t.Helper()
	data, err := os.ReadFile(filepath.Join(j.dir, entriesFile))
	j.must(err)
	lines := bytes.SplitAfter(data, []byte{'\n'})
	lines = lines[:len(lines)-1]
	next := filepath.Join(j.dir, "next")
	j.must(os.WriteFile(next, bytes.Join(lines[max(0, len(lines)-keep):], nil), 0o600))
	j.must(os.Rename(next, filepath.Join(j.dir, entriesFile)))
}

// Kill ends the journalctl that runs, in the middle of the next line that it prints, if there is one.
func (j *Journal) Kill() {
	j.t.Helper()
	j.write(killsFile, "x")
}

// Complain has journalctl write text to its standard error when it starts, and fail if broken is set.
func (j *Journal) Complain(text string, broken bool) {
	j.t.Helper()
	j.must(os.WriteFile(filepath.Join(j.dir, messageFile), []byte(text), 0o600))
	if err := os.Remove(filepath.Join(j.dir, brokenFile)); !errors.Is(err, fs.ErrNotExist) {
		j.must(err)
	}
	if broken {
		j.write(brokenFile, "")
	}
}

// Starts returns the arguments of each journalctl that was started.
func (j *Journal) Starts() []string {
	data, _ := os.ReadFile(filepath.Join(j.dir, startsFile)) // none if it is not there
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
