package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// rotations are the ways in which a log is rotated, each as one step of a history.
var rotations = map[string]func(*schedule){
	"rename":       (*schedule).rename,
	"copytruncate": (*schedule).copyTruncate,
	"compress": func(s *schedule) {
		s.rename()
		s.compress()
	},
	"link": func(s *schedule) {
		if s.links > 2 && s.rnd.IntN(3) == 0 {
			s.back()
			return
		}
		s.swap()
	},
}

// back has the link point to a file that it pointed to before, as often as not the first.
func (s *schedule) back() {
	s.note("back")
	s.poll()
	s.save()
	s.file = filepath.Join(s.dir, fmt.Sprintf("%d.log", 1+s.rnd.IntN(s.links)*s.rnd.IntN(2)))
	next := filepath.Join(s.dir, "next")
	s.must(os.Symlink(s.file, next))
	s.must(os.Rename(next, s.path))
	s.anything()
	s.create()
	s.anything()
}

// restart ends the follower, as a server that is stopped, and starts the next one.
func (s *schedule) restart() {
	s.note("restart")
	s.save()
	s.follower.close()
	s.start()
	s.poll()
}

// rotate rotates a log n times, with kills of the follower between all steps, and restarts it
// three times in the end. All this is within a minute, so that no file is finished.
func (s *schedule) rotate(n int, rotation func(*schedule)) error {
	s.create()
	s.start()
	s.poll()
	s.save()
	for range n {
		s.now = s.now.Add(-time.Second)
		s.line()
		rotation(s)
	}
	for range 3 {
		s.restart()
	}
	return s.end()
}

// TestCopiedAndRenamedUnread rotates a log twice after the follower has seen it empty, by copytruncate and
// then by a rename, and the follower looks while no file has the log's name.
func TestCopiedAndRenamedUnread(t *testing.T) {
	s := newSchedule(t, randtest.New(t))
	s.create()
	s.start()
	s.poll()
	s.away = true
	for range 3 {
		s.line()
	}
	s.copyTruncate()
	s.line()
	s.shift()
	must.Do(t, os.Rename(s.file, s.numbered(1)))
	s.real = s.numbered(1)
	s.poll()
	s.create()
	if err := s.end(); err != nil {
		t.Errorf("%v\n%s", err, strings.Join(s.log, "\n"))
	}
}

// TestManyRotations rotates a log up to 40 times while programs may still write to all of its
// files. The long form has every number of rotations ten times.
func TestManyRotations(t *testing.T) {
	numbers := []int{18, 33}
	if long {
		numbers = nil
		for range 10 {
			for n := range 40 {
				numbers = append(numbers, n+1)
			}
		}
	}
	for name, rotation := range rotations {
		t.Run(name, func(t *testing.T) {
			rnd := randtest.New(t)
			for _, n := range numbers {
				s := newSchedule(t, rnd)
				if name == "link" && s.links == 0 {
					s.link()
				}
				if err := s.rotate(n, rotation); err != nil {
					t.Fatalf("%d rotations: %v\n%s", n, err, strings.Join(s.log, "\n"))
				}
			}
		})
	}
}

// TestManyRotationsWhileAway reads files, some of them compressed, that were rotated while no process followed the log:
// some at a time, each once, also after a restart.
func TestManyRotationsWhileAway(t *testing.T) {
	for name, rotation := range map[string]func(*schedule){"plain": (*schedule).rename, "compressed": rotations["compress"]} {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(t, randtest.New(t))
			s.file, s.links = s.path, 0
			_ = os.Remove(s.path) // it may be a link
			s.create()
			s.start()
			s.line()
			s.poll()
			s.save()
			s.follower.close()
			s.away = true
			for range 2 * maxOpen {
				s.line()
				rotation(s)
			}
			s.away, s.now = false, time.Now() // the files are older
			s.start()
			log := s.follower.tails[0]
			for polls := 0; !log.live || log.unread() != nil; polls++ {
				s.poll()
				if s.rnd.IntN(8) == 0 {
					s.restart()
				}
				log = s.follower.tails[0]
				if n := costOf(log.gens); n > 2*maxOpen+compressedCost || polls > 100 {
					t.Fatalf("after %d polls, the open files count as %d", polls, n)
				}
			}
			if gaps := log.stats.Gaps; gaps != 0 {
				t.Errorf("%d gaps", gaps)
			}
			if err := s.end(); err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(s.log, "\n"))
			}
		})
	}
}

// TestCompressedUnread compresses a rotated file that was empty when it was opened, before it is read.
func TestCompressedUnread(t *testing.T) {
	compressed := func(t *testing.T, s *schedule) {
		t.Helper()
		for exists(s.numbered(1)) {
			s.compress()
		}
	}
	begun := func(t *testing.T) *schedule {
		s := newSchedule(t, randtest.New(t))
		s.away = true // no polls but these
		s.create()
		s.start()
		s.poll()
		return s
	}
	t.Run("while it is open", func(t *testing.T) {
		s := begun(t)
		s.line()
		s.rename()
		compressed(t, s)
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	t.Run("before a restart", func(t *testing.T) {
		s := begun(t)
		s.must(os.Rename(s.file, s.numbered(1)))
		s.real = s.numbered(1)
		s.must(os.WriteFile(s.file, nil, 0o600))
		s.follower.look(s.now)
		s.line()
		s.save()
		s.follower.close()
		compressed(t, s)
		s.start()
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestRotatedTooOften closes the oldest of the files that programs may still write to, and counts
// each as a gap.
func TestRotatedTooOften(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	r := newReader(t, Config{}, log)
	var want []string
	const n = maxOpen + 10
	for i := range n {
		want = append(want, fmt.Sprint(i))
		write(t, log, fmt.Sprint(i))
		r.poll(t.Context(), r.now)
		must.Do(t, os.Rename(log, fmt.Sprintf("%s.%d", log, n-i)))
	}
	write(t, log, "last")
	r.want(append(want, "last")...)
	s, open := r.Stats()[0], len(r.tails[0].gens)
	if s.Gaps != n+1-maxOpen || open != maxOpen {
		t.Errorf("%d gaps and %d open files, want %d and %d", s.Gaps, open, n+1-maxOpen, maxOpen)
	}
}

// TestManyLinks has a link point to more files than can be remembered. It reports that, reads no file twice, and goes on
// when some are deleted.
func TestManyLinks(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "log")
	r := newReader(t, Config{}, link)
	path := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%d.txt", i)) }
	point := func(i int) {
		t.Helper()
		_ = os.Remove(link)
		if err := os.Symlink(path(i), link); err != nil {
			t.Skip(err)
		}
	}
	finish := func() {
		t.Helper()
		r.now = r.now.Add(2 * linger)
		r.want()
		r.want()
	}
	i := 0
	for ; i <= maxPast+maxLinked; i++ {
		write(t, path(i), fmt.Sprint(i))
		point(i)
		r.want(fmt.Sprint(i))
		finish()
	}
	write(t, path(i), "next")
	point(i)
	r.want()
	if problem := r.Stats()[0].Problem; !strings.Contains(problem, "delete the oldest") {
		t.Errorf("the problem is %q", problem)
	}
	for j := range i {
		point(j)
		r.want() // it was read
	}
	finish()
	for j := range 10 {
		must.Do(t, os.Remove(path(j)))
	}
	point(i)
	r.want("next")
	if s := r.Stats()[0]; s.Problem != "" || s.Gaps != 0 {
		t.Errorf("%+v", s)
	}
}
