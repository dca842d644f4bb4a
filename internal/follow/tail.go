package follow

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
)

const (
	// linger is how long a file that was rotated is kept open after it last grew.
	linger = time.Minute

	// maxPast is how many finished files of a log are kept in mind, so that they are not
	// read again under another name.
	maxPast = 16

	// maxRenames is how often rotated files are looked for that are renamed meanwhile.
	maxRenames = 100
)

// A tail is a log that is followed: a path, the file that it names now, and the files
// that it named before.
type tail struct {
	path   string
	format accesslog.Format // unknown until it is found
	log    *slog.Logger

	gens   []*generation // open, the oldest first
	past   []place       // finished, the oldest first
	latest *generation   // the last one that path named, open or not; nil if there was none
	live   bool          // path names it still

	problem string // why the path cannot be read
	known   bool   // the format is known, also that of lines inside lines
	newest  int64  // time of an event
	stats   api.FollowedLog

	lateness int64
	batches  chan *batch // free, of the Follower
	passed   func()      // is called between lines
}

// current returns the generation that the path names, or nil.
func (t *tail) current() *generation {
	if !t.live {
		return nil
	}
	return t.latest
}

// refresh looks which file the path names now.
func (t *tail) refresh(now time.Time) {
	info, err := os.Stat(t.path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	for _, g := range slices.Clone(t.gens) {
		if g.unpacked == nil && g.replaced(0) {
			t.replace(g, now)
		}
	}
	cur := t.current()
	switch {
	case err != nil:
		t.live = false // if it is there again, it is found among gens
		t.complain(err)
	case cur == nil || !os.SameFile(info, cur.info):
		t.complain(t.rotate(now))
	case len(cur.head) == 0 && !info.ModTime().Equal(cur.Modified):
		t.precede(cur, cur.saved(), now)
	default:
		t.complain(nil)
	}
	t.finish(now)
}

// complain logs why the path cannot be read, once.
func (t *tail) complain(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem == t.problem {
		return
	}
	t.problem = problem
	switch {
	case err == nil:
		t.log.Info("the log is there", "file", t.path)
	case errors.Is(err, fs.ErrNotExist):
		t.log.Warn("the log is not there: waiting for it", "file", t.path)
	default:
		t.log.Error("the log cannot be read", "file", t.path, "error", err)
	}
}

// rotate begins with the file that the path names now, after those that it named between
// the last one and this one.
func (t *tail) rotate(now time.Time) error {
	g, err := openGeneration(t.path, now)
	if err != nil {
		return err
	}
	if i := t.open(g.info); i >= 0 { // it has its name again
		g.file.Close()
		g = t.gens[i]
		t.gens = slices.Delete(t.gens, i, i+1)
	} else {
		if err := t.recall(g); err != nil {
			return errors.Join(err, g.file.Close())
		}
		if t.latest != nil {
			// If the file was empty, it may have been filled and truncated since.
			if last := t.latest.saved(); last.HeadLen == 0 || last.like(g.info, g.firstBytes(), false) == other {
				t.bridge(last, g, now)
			}
		}
	}
	g.ended = false
	t.gens, t.latest, t.live = append(t.gens, g), g, true
	return nil
}

// replace begins again with a file, which was truncated, after what was not read of a copy
// of it.
func (t *tail) replace(g *generation, now time.Time) {
	t.log.Info("the log was truncated", "file", t.path, "read", g.Offset)
	last := g.saved()
	t.keep(last)
	g.restart()
	t.precede(g, last, now)
}

// precede opens the files that come between last and g, and reports whether there are any.
func (t *tail) precede(g *generation, last place, now time.Time) bool {
	t.gens = slices.DeleteFunc(t.gens, func(o *generation) bool { return o == g })
	n := len(t.gens)
	t.bridge(last, g, now)
	t.gens = append(t.gens, g)
	return len(t.gens) > n+1
}

// open returns the index of the generation that is that file, or -1.
func (t *tail) open(info fs.FileInfo) int {
	return slices.IndexFunc(t.gens, func(g *generation) bool { return os.SameFile(g.info, info) })
}

// bridge opens the files that come after last and before the current one, and the rest of
// last itself if it is not open.
func (t *tail) bridge(last place, current *generation, now time.Time) {
	found := -1
	t.settled(&last, func(files []rotated) {
		if last.HeadLen > 0 { // else only its time says which files came after it
			found = find(&last, files)
		}
		for i, r := range files {
			newer := r.info.ModTime().After(last.Modified)
			if found >= 0 {
				newer = i > found
			}
			if i == found || newer {
				t.add(r, current, i == found, now)
			}
		}
		// The path may be a link, which has pointed to another file since.
		for _, r := range family(current.Path) {
			isSame := func(o rotated) bool { return os.SameFile(o.info, r.info) }
			if r.info.ModTime().After(last.Modified) && !slices.ContainsFunc(files, isSame) {
				t.add(r, current, false, now)
			}
		}
	})
	isOpen := func(g *generation) bool { return g.Ino == last.Ino && g.Dev == last.Dev }
	if found < 0 && last.Offset > 0 && !slices.ContainsFunc(t.gens, isOpen) {
		t.stats.Gaps++
		t.log.Warn("the file that was read last is gone: lines that were not read are lost", "file", t.path, "read", last.Offset)
	}
}

// settled calls open with the rotated files of the log, which it is to open, and calls it again
// if they were renamed meanwhile: it may have opened one under the name of another, or none.
func (t *tail) settled(last *place, open func([]rotated)) {
	for range maxRenames {
		files := t.rotatedFiles(last)
		open(files)
		if slices.EqualFunc(files, t.rotatedFiles(last), rotated.equal) {
			return
		}
	}
	t.unreadable(t.path, errors.New("its rotated files are renamed again and again"))
}

// rotatedFiles returns the rotated files of the log, the oldest first, and the file of
// last, if it has another name.
func (t *tail) rotatedFiles(last *place) []rotated {
	files := family(t.path)
	add := func(r rotated) {
		if !slices.ContainsFunc(files, func(o rotated) bool { return os.SameFile(o.info, r.info) }) {
			files = append(files, r)
		}
	}
	if last.Path != "" && filepath.Clean(last.Path) != filepath.Clean(t.path) {
		for _, r := range family(last.Path) {
			add(r)
		}
		if info, err := os.Stat(last.Path); err == nil && info.Mode().IsRegular() {
			add(rotated{path: last.Path, log: last.Path, info: info})
		}
	}
	slices.SortStableFunc(files, compareAge)
	return files
}

// find returns the index of the file of p in files, or -1.
func find(p *place, files []rotated) int {
	best, index := other, -1
	for i, r := range files {
		if r.compressed && best > unpacked {
			continue
		}
		g, err := openGeneration(r.path, time.Time{})
		if err != nil {
			continue // add says so, if it is needed and not just renamed
		}
		if l := p.like(g.info, g.firstBytes(), r.compressed); l > best {
			best, index = l, i
		}
		g.file.Close()
	}
	return index
}

// add opens a rotated file, where it was left if it was read before. One that has nothing
// more to read is not needed, unless it may grow; nor is a copy of the current file, which is
// about to be truncated, one that is open, and one that was just renamed. current may be nil.
func (t *tail) add(r rotated, current *generation, grows bool, now time.Time) {
	if t.open(r.info) >= 0 || current != nil && os.SameFile(r.info, current.info) {
		return
	}
	g, err := openGeneration(r.path, now)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		t.unreadable(r.path, err)
		return
	case !os.SameFile(r.info, g.info):
		g.file.Close()
		return
	}
	g.Path = r.log // it may have another number when it is looked for
	head := g.firstBytes()
	isRead := func(o *generation) bool { // under the name that it had before
		p := o.saved()
		return p.HeadLen > 0 && p.like(g.info, head, g.unpacked != nil) > other
	}
	needed := len(head) > 0 && (current == nil || !startsWith(current.file, head)) && !slices.ContainsFunc(t.gens, isRead)
	if needed {
		err = t.recall(g)
	}
	more := g.hasData()
	if g.unpacked != nil {
		rest, _ := g.unpacked.Peek(1)
		more = len(rest) > 0
	}
	shorter := g.unpacked == nil && g.size < g.Offset // a copy, made before the rest was written
	if !needed || err != nil || shorter || !more && !grows {
		err = errors.Join(err, g.file.Close())
	} else {
		t.log.Info("reading a rotated log", "file", r.path, "from", g.Offset)
		t.gens = append(t.gens, g)
	}
	if err != nil {
		t.unreadable(r.path, err)
	}
}

// unreadable logs that the lines of a rotated file are missing.
func (t *tail) unreadable(path string, err error) {
	t.stats.Gaps++
	t.log.Error("a rotated log cannot be read", "file", path, "error", err)
}

// recall makes g continue at the place where reading stopped, in g or in the file that it is
// a copy of.
func (t *tail) recall(g *generation) error {
	best, head := other, g.firstBytes()
	var found place
	known := slices.Clone(t.past)
	for _, g := range t.gens {
		known = append(known, g.saved())
	}
	for _, p := range known {
		if l := p.like(g.info, head, g.unpacked != nil); l > other && l >= best {
			best, found = l, p
		}
	}
	if best == other {
		return nil
	}
	return g.continueAt(&found)
}

// keep keeps the place of a finished file in mind.
func (t *tail) keep(p place) {
	if p.Offset == 0 && p.Begun == 0 {
		return
	}
	t.past = slices.DeleteFunc(t.past, func(o place) bool {
		return o.Dev == p.Dev && o.Ino == p.Ino && o.HeadLen == p.HeadLen && o.HeadHash == p.HeadHash
	})
	if len(t.past) >= maxPast {
		t.past = slices.Delete(t.past, 0, 1)
	}
	t.past = append(t.past, p)
}

// finish closes the files that were rotated and have not grown for a while.
func (t *tail) finish(now time.Time) {
	for i := 0; i < len(t.gens); i++ {
		g := t.gens[i]
		if g == t.current() || g.unpacked != nil {
			continue
		}
		was := g.size
		if g.hasData(); g.size != was {
			g.grew = now
		}
		if now.Sub(g.grew) > linger {
			g.ended = true // the next read finishes it
		}
	}
}

// remove closes a file that has been read to its end.
func (t *tail) remove(g *generation) {
	g.close()
	t.keep(g.place)
	t.gens = slices.DeleteFunc(t.gens, func(o *generation) bool { return o == g })
}

// unread returns the oldest file that may have lines to read, or nil.
func (t *tail) unread() *generation {
	for _, g := range t.gens {
		if g.hasData() {
			return g
		}
	}
	return nil
}

// readBlock reads a block of the oldest file that has lines to read.
func (t *tail) readBlock(buf []byte, each func(*match.Event), now time.Time) {
	g := t.unread()
	some, err := t.read(g, buf, each, now)
	switch {
	case errors.Is(err, errReplaced):
		t.replace(g, now)
	case err != nil && g == t.current():
		g.waiting = g.size // until it grows
		t.complain(err)
	case err != nil:
		t.stats.Gaps++
		t.log.Error("a rotated log cannot be read to its end", "file", g.file.Name(), "read", g.Offset, "error", err)
		t.remove(g)
	case !some && g.ended:
		t.remove(g)
	}
}
