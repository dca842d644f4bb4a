package follow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/lately-go/lately/match"
)

const (
	// linger is how long a file that was rotated is kept open after it last grew.
	linger = time.Minute

	// maxOpen bounds the rotated files of a log that are open. A compressed one counts as
	// many, for the memory of its decompression.
	maxOpen        = 32
	compressedCost = 8

	// maxRenames is how often rotated files are looked for that are renamed meanwhile.
	maxRenames = 100
)

// A tail is a log in a file: a path, the file that it names now, and the files that it named before.
type tail struct {
	logReader
	gens   []*generation // open, the oldest first
	past   []place       // finished, the oldest first
	latest *generation   // the last one that path named, open or not; nil if there was none
	live   bool          // path names it still
	rests  bool          // it is not looked at in this poll
}

// idle reports whether there is nothing to read, as of the last look, and there was nothing for a while.
func (t *tail) idle(now time.Time) bool {
	return t.live && len(t.gens) == 1 && t.unreadBytes() == 0 && !t.gens[0].ended && now.Sub(t.stats.LastLine) > idleAfter
}

// begun reports whether the path has named a file.
func (t *tail) begun() bool { return t.latest != nil }

// hasLines reports whether there may be lines to read.
func (t *tail) hasLines() bool { return !t.rests && t.unread() != nil }

func (t *tail) behind() bool { return t.hasLines() }

// unreadBytes returns the number of unread bytes in the open files, as of the last
// look.
func (t *tail) unreadBytes() (n int64) {
	for _, g := range t.gens {
		if g.unpacked == nil {
			n += max(g.size-g.Offset, 0)
		}
	}
	return n
}

// close closes the open files.
func (t *tail) close() {
	for _, g := range t.gens {
		g.close()
	}
}

// current returns the generation that the path names, or nil.
func (t *tail) current() *generation {
	if !t.live {
		return nil
	}
	return t.latest
}

// refresh opens the file that the path names now.
func (t *tail) refresh(now time.Time) {
	if t.rests {
		return
	}
	info, err := os.Stat(t.path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it must be a regular file or a FIFO, and was a file before")
	}
	for _, g := range slices.Clone(t.gens) {
		if g.unpacked == nil && g.replaced(0) {
			t.replace(g, now)
		}
	}
	cur := t.current()
	if cur != nil && cur.filled() {
		t.precede(cur, cur.saved(), now)
	}
	switch {
	case err != nil:
		t.live = false // if it is there again, it is found among gens
		t.complain(err)
	case cur == nil || !os.SameFile(info, cur.info):
		t.complain(t.rotate(now))
	default:
		t.complain(nil)
	}
	t.finish(now)
}

// rotate begins with the file that the path names now, after files that it named
// meanwhile. If these are too many, it begins with the oldest of them, and the next
// refresh goes on.
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
		err := t.recall(g)
		if err == nil && g.Offset == 0 {
			err = t.requireMemory()
		}
		if err != nil {
			return errors.Join(err, g.file.Close())
		}
		if t.latest != nil {
			// If the file was empty, it may have been filled and truncated since.
			last := t.latest.saved()
			if last.HeadLen == 0 || last.like(g.info, g.firstBytes(), false) == other {
				if newest, more := t.bridge(last, g, now); more {
					t.latest, t.live = newest, false
					return g.file.Close()
				}
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

// precede opens the files that come between last and g, and reports whether there are any. If
// they are too many, g is closed, and the next refresh goes on.
func (t *tail) precede(g *generation, last place, now time.Time) bool {
	t.gens = slices.DeleteFunc(t.gens, func(o *generation) bool { return o == g })
	n := len(t.gens)
	newest, more := t.bridge(last, g, now)
	if more && g == t.latest {
		t.latest, t.live = newest, false
		g.file.Close()
		return true
	}
	if more {
		t.unreadable(t.path, fmt.Errorf("more than %d copies of a file that is not the log any more", maxOpen))
	}
	t.gens = append(t.gens, g)
	return len(t.gens) > n+1
}

// open returns the index of the generation that is that file, or -1.
func (t *tail) open(info fs.FileInfo) int {
	return slices.IndexFunc(t.gens, func(g *generation) bool { return os.SameFile(g.info, info) })
}

// identify makes the first line identify the files that were empty when they were opened, except one. They may
// be compressed before they are read: then the compressed file is not another one.
func (t *tail) identify(except *generation) {
	for _, g := range t.gens {
		if g != except && len(g.head) == 0 {
			g.identify()
		}
	}
}

// unreadable logs that the lines of a rotated file are missing.
func (t *tail) unreadable(path string, err error) {
	t.stats.Gaps++
	t.log.Error("a rotated log cannot be read", "file", path, "error", err)
}

// finish closes the files that were rotated and have not grown for a while, and the oldest if
// too many are open.
func (t *tail) finish(now time.Time) {
	for i, g := range t.gens {
		if g == t.current() || g.ended {
			continue
		}
		was := g.size
		if g.hasData(); g.size != was {
			g.grew = now
		}
		tooMany := len(t.gens)-i > maxOpen
		g.ended = tooMany || now.Sub(g.grew) > linger // the next read finishes it
		if tooMany && now.Sub(g.written) <= linger {
			t.stats.Gaps++
			t.log.Warn("the log is rotated too often: a file is closed before its minute is over; lines that are still written to it are lost",
				"file", g.Path, "rotated_files", maxOpen)
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
