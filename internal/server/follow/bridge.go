package follow

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bridge opens the files that come after last and before the current one, and the rest of
// last itself if it is not open. If there are more than may be open, it opens the oldest of
// them: the next call is to go on after newest, when these are read.
func (t *tail) bridge(last place, current *generation, now time.Time) (newest *generation, more bool) {
	t.identify(current)
	before := len(t.gens)
	unread := slices.DeleteFunc(slices.Clone(t.gens), func(g *generation) bool { return !g.hasData() })
	room := max(maxOpen-costOf(unread), 1) // the others are closed
	newest = t.latest
	found := -1
	t.settled(&last, func(files []rotated) {
		if more = false; last.HeadLen > 0 { // else only its time says which files came after it
			found = find(&last, files)
		}
		for i, r := range t.between(&last, found, files, current) {
			opened := t.open(r.info)
			if more = opened < 0 && costOf(t.gens[before:]) >= room; more {
				return
			}
			if opened < 0 {
				t.add(r, current, i == found, now)
				opened = t.open(r.info)
			}
			if opened >= before {
				newest = t.gens[opened]
			}
		}
	})
	isOpen := func(g *generation) bool { return g.Ino == last.Ino && g.Dev == last.Dev }
	if found < 0 && last.Offset > 0 && !slices.ContainsFunc(t.gens, isOpen) {
		t.stats.Gaps++
		t.log.Warn("the last file that was read was deleted: its unread lines are lost", "file", t.path, "read", last.Offset)
	}
	return newest, more
}

// between returns the files from last, which is that with the index found or not among them, to the
// current one, with their indexes in files.
func (t *tail) between(last *place, found int, files []rotated, current *generation) iter.Seq2[int, rotated] {
	return func(yield func(int, rotated) bool) {
		newer := func(r rotated) bool { return r.info.ModTime().After(last.Modified) }
		for i, r := range files {
			if after := found >= 0 && i >= found || found < 0 && newer(r); after && !yield(i, r) {
				return
			}
		}
		// The path may be a link, which has pointed to another file since.
		for _, r := range family(current.Path) {
			isSame := func(o rotated) bool { return os.SameFile(o.info, r.info) }
			if newer(r) && !slices.ContainsFunc(files, isSame) && !yield(-2, r) {
				return
			}
		}
	}
}

// costOf returns how many open files gens count as.
func costOf(gens []*generation) (n int) {
	for _, g := range gens {
		if n++; g.unpacked != nil {
			n += compressedCost - 1
		}
	}
	return n
}

// settled calls open with the rotated files, and repeats that if files were renamed in between.
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

// add opens a rotated file, where it was left if it was read before. Skipped are files
// that are fully read and cannot grow, files already open, files renamed meanwhile, and
// copies of the current file (copytruncate). current may be nil.
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
