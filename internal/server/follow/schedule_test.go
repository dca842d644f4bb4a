package follow

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// A schedule is a random history of one log: a program writes lines, a rotation renames,
// copies, compresses, deletes or swaps files, and a follower polls, saves, is killed and
// resumes, in any order. The counts of the follower are compared with the written lines.
type schedule struct {
	t     *testing.T
	rnd   *rand.Rand
	dir   string
	path  string // that is followed
	file  string // the program's name for its log: path, or what the link there points to
	links int    // that path has been, if it is a link
	now   time.Time
	log   []string // what happened

	out   *os.File  // the program's
	real  string    // its name
	clock time.Time // of the file system, whose own is too coarse for a history of milliseconds
	lines int
	times []time.Time  // of the lines
	may   map[int]bool // lines that may be lost by nature

	lateness time.Duration
	follower *Follower
	judged   []int
	saved    [][]byte
	counted  int // how many of judged were with saved

	away   bool                       // no process follows the log
	fed    *fedServer                 // or nil: events are counted in the process of the follower
	tamper func(record []byte) []byte // of the broken controls
}

func newSchedule(t *testing.T, rnd *rand.Rand) *schedule {
	s := &schedule{
		t: t, rnd: rnd, dir: t.TempDir(), now: time.Now().Add(-24 * time.Hour).Truncate(time.Second), clock: time.Now().Add(-time.Hour),
		may: map[int]bool{}, times: []time.Time{{}},
	}
	s.path = filepath.Join(s.dir, "access.log")
	s.file = s.path
	if rnd.IntN(3) == 0 {
		s.link()
	}
	return s
}

func (s *schedule) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// Write notes what the follower logs.
func (s *schedule) Write(line []byte) (int, error) {
	_, text, _ := strings.Cut(string(line), "msg=")
	s.note("%s", strings.TrimSpace(strings.ReplaceAll(text, s.dir, "")))
	return len(line), nil
}

func (s *schedule) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%v, after %s", err, strings.Join(s.log, "; "))
	}
}

// start starts the follower, which resumes from its saved state.
func (s *schedule) start() {
	format, err := accesslog.ParseFormat("csv:time=1@s,client=2")
	s.must(err)
	c, saved := Config{Logs: []Log{{Path: s.path, Format: format}}, Lateness: s.lateness, Log: slog.New(slog.NewTextHandler(s, nil)), Judge: s.judge}, s.saved
	if s.fed != nil {
		c, saved = s.fed.connect(c)
	}
	f, err := New(c)
	s.must(err)
	for _, record := range saved {
		if s.tamper != nil {
			record = s.tamper(record)
		}
		s.must(f.Resume(record))
	}
	s.follower = f
}

func (s *schedule) judge(ev *match.Event) {
	n, err := strconv.Atoi(string(ev.Get(match.Client)))
	if err != nil {
		return // half of a line that was lost by nature
	}
	s.judged = append(s.judged, n)
}

// kill ends the follower without a word, and starts the next one.
func (s *schedule) kill() {
	s.note("kill")
	s.follower.close()
	if s.fed == nil || s.rnd.IntN(2) == 0 {
		s.judged = s.judged[:s.counted]
		if s.fed != nil {
			s.fed.restart()
		}
	}
	s.start()
}

func (s *schedule) save() {
	s.note("save")
	save := s.follower.Save
	if s.fed != nil {
		save = s.fed.save
	}
	s.must(save(func(records [][]byte) error {
		s.saved, s.counted = records, len(s.judged)
		return nil
	}))
}

func (s *schedule) poll() {
	s.note("poll")
	s.now = s.now.Add(time.Second)
	s.follower.poll(context.Background(), s.now)
	if s.fed != nil {
		s.fed.flush()
	}
}

// begin lists the files, reads some of them, and saves: as a server does that writes a snapshot while it catches up.
func (s *schedule) begin() {
	n := s.rnd.IntN(3)
	s.note("look and read %d", n)
	s.now = s.now.Add(time.Second)
	s.follower.look(s.now)
	for range n {
		s.follower.readNext(s.now)
	}
	s.save()
}

// touch gives a file that was written to a time of its own.
func (s *schedule) touch(path string) {
	s.clock = s.clock.Add(time.Millisecond)
	s.must(os.Chtimes(path, s.clock, s.clock))
}

// create makes the program write to a new file of its name.
func (s *schedule) create() {
	if s.out != nil {
		s.must(s.out.Close())
	}
	var err error
	s.out, err = os.OpenFile(s.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	s.must(err)
	s.real = s.file
	s.touch(s.real)
}

// line writes a line, with a pause in it now and then.
func (s *schedule) line() {
	s.lines++
	at := s.now.Add(-s.jitter())
	s.times = append(s.times, at)
	text := fmt.Sprintf("%d,%d,%s\n", at.Unix(), s.lines, strings.Repeat("x", s.rnd.IntN(40)))
	cut := 0
	if s.rnd.IntN(8) == 0 {
		cut = s.rnd.IntN(len(text))
	}
	for i, part := range []string{text[:cut], text[cut:]} {
		if part == "" {
			continue
		}
		_, err := s.out.WriteString(part)
		s.must(err)
		s.touch(s.real)
		if i == 0 {
			s.anything()
		}
	}
}

// anything is what a follower may do at any moment of a rotation.
func (s *schedule) anything() {
	if s.away {
		return
	}
	switch s.rnd.IntN(8) {
	case 0:
		s.poll()
	case 1:
		s.poll()
		s.save()
	case 2:
		s.kill()
	case 3:
		s.kill()
		s.poll()
	case 4:
		s.begin()
	case 5:
		s.kill()
		s.begin()
	}
}

// jitter returns by how much a line is older than the clock: whole seconds, less than the lateness.
func (s *schedule) jitter() time.Duration {
	if s.lateness == 0 {
		return 0
	}
	return time.Duration(s.rnd.Int64N(int64(s.lateness))).Truncate(time.Second)
}

func (s *schedule) write() {
	n := s.rnd.IntN(30)
	s.note("write %d", n)
	for range n {
		s.line()
	}
}

func (s *schedule) numbered(n int) string { return fmt.Sprintf("%s.%d", s.file, n) }

// shift renames access.log.1 to access.log.2, and so on.
func (s *schedule) shift() {
	n := 1
	for exists(s.numbered(n)) || exists(s.numbered(n)+".gz") {
		n++
	}
	for ; n > 1; n-- {
		for _, suffix := range []string{"", ".gz"} {
			if from := s.numbered(n-1) + suffix; exists(from) {
				s.must(os.Rename(from, s.numbered(n)+suffix))
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// rename rotates: the program writes to the old file for a while.
func (s *schedule) rename() {
	s.note("rename")
	s.shift()
	s.anything()
	s.must(os.Rename(s.file, s.numbered(1)))
	s.real = s.numbered(1)
	s.anything()
	if s.rnd.IntN(2) == 0 {
		s.write()
		s.anything()
	}
	s.create()
	s.anything()
}

// copyTruncate rotates: lines between the copy and the truncation may be lost.
func (s *schedule) copyTruncate() {
	s.note("copytruncate")
	s.shift()
	s.anything()
	data, err := os.ReadFile(s.file)
	s.must(err)
	s.must(os.WriteFile(s.numbered(1), data, 0o600))
	s.touch(s.numbered(1))
	before := s.lines
	if s.rnd.IntN(2) == 0 {
		s.anything()
		s.write()
		s.anything()
	}
	for n := before + 1; n <= s.lines; n++ {
		s.may[n] = true
	}
	s.must(s.out.Truncate(0))
	s.touch(s.real)
	if s.rnd.IntN(2) == 0 { // it has grown again before it is looked at
		s.write()
	}
	s.anything()
}

// compress compresses a rotated file as gzip does.
func (s *schedule) compress() {
	n := 1 + s.rnd.IntN(3)
	path := s.numbered(n)
	if !exists(path) {
		return
	}
	s.note("compress %d", n)
	data, err := os.ReadFile(path)
	s.must(err)
	info, err := os.Stat(path)
	s.must(err)
	out, err := os.Create(path + ".gz")
	s.must(err)
	z := gzip.NewWriter(out)
	_, err = z.Write(data[:len(data)/2])
	s.must(err)
	s.must(z.Flush())
	s.anything()
	_, err = z.Write(data[len(data)/2:])
	s.must(err)
	s.must(z.Close())
	s.must(out.Close())
	s.must(os.Chtimes(path+".gz", info.ModTime(), info.ModTime()))
	s.anything()
	s.must(os.Remove(path))
	s.anything()
}

// remove deletes the file, and creates it again. Unopened lines would be lost by nature, and so would unsaved positions.
func (s *schedule) remove() {
	s.note("delete")
	s.poll()
	if s.rnd.IntN(2) == 0 {
		s.write()
		s.poll()
	}
	s.save()
	s.must(os.Remove(s.file))
	s.create()
}

// link makes the path a link to the next file, in one step.
func (s *schedule) link() {
	s.links++
	s.file = filepath.Join(s.dir, fmt.Sprintf("%d.log", s.links))
	next := filepath.Join(s.dir, "next")
	s.must(os.Symlink(s.file, next))
	s.must(os.Rename(next, s.path))
}

// swap has the link point to another file, as Kubernetes does when it starts a container again. The names of the files do
// not show in which order they came: a file that the follower has not saved as known would be lost by nature.
func (s *schedule) swap() {
	if s.links == 0 {
		return
	}
	s.note("swap")
	s.poll()
	s.save()
	s.link()
	s.anything()
	if s.rnd.IntN(2) == 0 {
		s.write() // by the old program, to its file
		s.anything()
	}
	s.create()
	s.anything()
}

// run runs a random history, and returns an error about the counts, or nil.
func (s *schedule) run(steps int) error {
	s.create()
	s.start()
	s.poll()
	s.save()
	for range steps {
		switch k := s.rnd.IntN(14); {
		case k < 4:
			s.write()
		case k == 4:
			s.rename()
		case k == 5:
			s.copyTruncate()
		case k == 6:
			s.compress()
		case k == 7:
			s.remove()
		case k < 10:
			s.swap()
		default:
			s.anything()
		}
	}
	return s.end()
}

// end reads the remaining lines, and returns an error about the counts, or nil.
func (s *schedule) end() error {
	s.must(s.out.Close())
	s.poll()
	s.now = s.now.Add(2 * linger)
	for range 3 {
		s.poll()
	}
	s.follower.close()
	return s.compare()
}

func (s *schedule) compare() error {
	times := make([]int, s.lines+1)
	for _, n := range s.judged {
		times[n]++
	}
	var lost, twice []int
	for n := 1; n <= s.lines; n++ {
		switch {
		case times[n] == 0 && !s.may[n]:
			lost = append(lost, n)
		case times[n] > 1:
			twice = append(twice, n)
		}
	}
	if lost != nil || twice != nil {
		return fmt.Errorf("of %d lines, %v are lost and %v are counted twice", s.lines, lost, twice)
	}
	if s.fed != nil && s.lateness > 0 {
		return s.fed.compareOrder()
	}
	return nil
}

var long = os.Getenv("LATELY_LONG") != ""

func rounds(short int) int {
	if long {
		return 1000
	}
	return short
}

// TestSchedules holds the follower to the model: no line is lost or counted twice. The
// long form has 1,000 histories.
func TestSchedules(t *testing.T) {
	rnd := randtest.New(t)
	for round := range rounds(100) {
		s := newSchedule(t, rnd)
		if err := s.run(1 + rnd.IntN(40)); err != nil {
			t.Fatalf("history %d: %v\n%s", round, err, strings.Join(s.log, "\n"))
		}
	}
}

// TestSchedulesCatchBrokenFollowers breaks the state that is saved, as a follower would
// that is less careful. The model must notice.
func TestSchedulesCatchBrokenFollowers(t *testing.T) {
	edit := func(change func(p map[string]any)) func([]byte) []byte {
		return func(saved []byte) []byte {
			var state map[string]any
			must.Do(t, json.Unmarshal(saved, &state))
			logs, _ := state["logs"].([]any)
			for _, l := range logs {
				for _, list := range []string{"open", "past"} {
					places, _ := l.(map[string]any)[list].([]any)
					for _, p := range places {
						change(p.(map[string]any))
					}
				}
			}
			text := must.Get(json.Marshal(state))(t)
			return text
		}
	}
	for name, change := range map[string]func(map[string]any){
		"without first bytes": func(p map[string]any) { p["head_len"] = 0 },
		"without an inode":    func(p map[string]any) { p["ino"], p["head_len"] = 0, 0 },
		"one line late":       func(p map[string]any) { p["offset"] = p["offset"].(float64) + 14 },
	} {
		t.Run(name, func(t *testing.T) {
			rnd := randtest.New(t)
			for range 200 {
				s := newSchedule(t, rnd)
				s.tamper = edit(change)
				if s.run(40) != nil {
					return
				}
			}
			t.Error("no history shows it")
		})
	}
}
