//go:build unix

package cli

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

const killRules = `version: 1
counters:
  requests: {key: client, spans: [24h]}
limits:
  - {name: per-client, key: client, limit: 100 per 1m}
bans:
  - {name: flood, key: client, after: 1000 hits in 1h, for: 2h}
`

// A rotatedLog is the log of a web server, and how often each client is in it.
type rotatedLog struct {
	t      *testing.T
	rnd    *rand.Rand
	path   string
	counts map[string]int
	lines  int
}

func (l *rotatedLog) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// write appends n lines.
func (l *rotatedLog) write(n int, clients ...string) {
	l.t.Helper()
	var text strings.Builder
	for range n {
		client := clients[l.rnd.IntN(len(clients))]
		l.counts[client]++
		l.lines++ // no two files have the same first bytes, as with real requests
		fmt.Fprintf(&text, "%s - - [%s] \"GET /%d HTTP/1.1\" 200 5\n", client, time.Now().Format("02/Jan/2006:15:04:05 -0700"), l.lines)
	}
	appendTo(l.t, l.path, text.String())
}

func (l *rotatedLog) numbered(n int) string { return l.path + "." + strconv.Itoa(n) }

// rotate does what logrotate does: it renames the log or copies and truncates it, and
// compresses the older files.
func (l *rotatedLog) rotate() {
	l.t.Helper()
	for n := 100; n > 0; n-- {
		for _, suffix := range []string{"", ".gz"} {
			if err := os.Rename(l.numbered(n)+suffix, l.numbered(n+1)+suffix); !errors.Is(err, fs.ErrNotExist) {
				l.must(err)
			}
		}
	}
	if l.rnd.IntN(2) == 0 {
		l.must(os.Rename(l.path, l.numbered(1)))
	} else {
		data, err := os.ReadFile(l.path)
		l.must(err)
		l.must(os.WriteFile(l.numbered(1), data, 0o600))
		l.must(os.Truncate(l.path, 0))
	}
	if info, err := os.Stat(l.numbered(2)); err == nil && l.rnd.IntN(2) == 0 {
		data, err := os.ReadFile(l.numbered(2))
		l.must(err)
		out, err := os.Create(l.numbered(2) + ".gz")
		l.must(err)
		z := gzip.NewWriter(out)
		_, err = z.Write(data)
		l.must(errors.Join(err, z.Close(), out.Close()))
		l.must(os.Chtimes(l.numbered(2)+".gz", info.ModTime(), info.ModTime()))
		l.must(os.Remove(l.numbered(2)))
	}
}

// deleteRotated deletes all files but the log.
func (l *rotatedLog) deleteRotated() {
	old, err := filepath.Glob(l.path + ".*")
	l.must(err)
	for _, path := range old {
		l.must(os.Remove(path))
	}
}

// TestServeFollowKilled kills a server that follows a log at any moment: while it starts,
// catches up, follows, or writes its state. The log is written to and rotated meanwhile. The last
// server has counted each line once.
func TestServeFollowKilled(t *testing.T) {
	rounds := 4
	if os.Getenv("LATELY_LONG") != "" {
		rounds = 100
	}
	rnd := randtest.New(t)
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.yaml")
	appendTo(t, rules, killRules)
	log := &rotatedLog{t: t, rnd: rnd, path: filepath.Join(dir, "access.log"), counts: map[string]int{}}
	args := []string{"--follow", log.path + "=clf", "--rules", rules, "--data", filepath.Join(dir, "data"), "--snapshot-every", "1s"}
	clients := []string{"192.0.2.1", "192.0.2.2", "198.51.100.7", "2001:db8::"}
	moment := func(most time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(most))) }

	marks := 0
	// caughtUp waits until s has counted all lines.
	caughtUp := func(s *serving) {
		t.Helper()
		marks++
		mark := fmt.Sprintf("mark%d", marks)
		log.write(1, mark)
		c := s.dial()
		for deadline := time.Now().Add(2 * time.Minute); c.say("SUM", "requests", mark) != "1"; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the last line is not counted\n%s", s.log.String())
			}
		}
		for client, want := range log.counts {
			if got := c.say("SUM", "requests", client); got != strconv.Itoa(want) {
				t.Errorf("%s: %s lines are counted, want %d\n%s", client, got, want, s.log.String())
			}
		}
	}
	changes := func() {
		for range 1 + rnd.IntN(4) {
			log.write(rnd.IntN(4000), clients...)
			if rnd.IntN(3) == 0 {
				log.rotate()
				log.write(rnd.IntN(10), clients...)
			}
			time.Sleep(moment(20 * time.Millisecond))
		}
	}
	log.write(1000, clients...) // files that were rotated before the first start are not read
	for round := range rounds {
		if round%2 == 0 { // its state is the only copy of what it has counted
			s := serve(t, args...)
			caughtUp(s)
			must.Do(t, s.end())
			log.deleteRotated()
		}
		if rnd.IntN(4) == 0 {
			early := exec.Command("lately", append([]string{"serve", "--resp", "127.0.0.1:0", "--http", "off"}, args...)...)
			log.must(early.Start())
			time.Sleep(moment(200 * time.Millisecond))
			_ = early.Process.Kill()
			_ = early.Wait() // ends with the error of a killed process
		}
		s := serve(t, args...)
		timer := time.AfterFunc(moment(1500*time.Millisecond), func() { _ = s.cmd.Process.Kill() })
		for range rnd.IntN(6) {
			changes()
		}
		<-s.done
		timer.Stop()
		changes()
	}
	caughtUp(serve(t, args...))
	t.Logf("%d kills, %d lines", rounds, log.lines)
}
