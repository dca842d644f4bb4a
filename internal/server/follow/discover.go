package follow

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// discover begins to follow new files in directories and patterns, and stops following files that
// are gone.
func (f *Follower) discover() {
	for i := range f.config.Logs {
		l := &f.config.Logs[i]
		if !l.many() {
			switch s := f.source(l.Path).(type) {
			case nil:
				f.tail(l.Path, l)
			case *tail:
				f.becomeStream(s, l)
			}
			continue
		}
		followed := make(map[string]bool, len(f.tails))
		for _, t := range f.tails {
			followed[t.path] = true
		}
		paths, err := l.files()
		none := len(paths) == 0
		switch {
		case !none || l.empty: // it was reported
		case err != nil:
			f.log.Error("the directory cannot be read: waiting until it can be", "logs", l.Path, "error", err)
		default:
			f.log.Warn("there is no file in the directory, or of the pattern: waiting for one", "logs", l.Path)
		}
		l.empty = none
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if !followed[path] && !isRotated(path, paths) && !f.follows(path) {
				f.tail(path, l)
			}
		}
		f.tails = slices.DeleteFunc(f.tails, func(t *tail) bool { return f.isGone(t, l, paths) })
	}
}

// becomeStream follows l as a FIFO, if one was made under a name at which there was nothing so far.
func (f *Follower) becomeStream(t *tail, l *Log) {
	if t.begun() {
		return
	}
	if s, err := f.stream(l); err == nil && s != nil {
		f.tails = slices.DeleteFunc(f.tails, func(o *tail) bool { return o == t })
		f.streams = append(f.streams, s)
	}
}

// isGone reports whether a log of the directory or pattern l was deleted, and has no rotated file that
// would be taken for a log of its own if t were removed.
func (f *Follower) isGone(t *tail, l *Log, paths map[string]bool) bool {
	if t.live || len(t.gens) > 0 || paths[t.path] || !l.covers(t.path) ||
		slices.ContainsFunc(f.config.Logs, func(l Log) bool { return l.Path == t.path }) {
		return false
	}
	for path := range paths {
		if _, ok := rotatedName(filepath.Base(t.path), filepath.Base(path)); ok && filepath.Dir(path) == filepath.Dir(t.path) {
			return false
		}
	}
	f.log.Info("the log was deleted: it is not followed any more", "file", t.path)
	return true
}

// files returns the regular files of a directory or a pattern. Its error is that of reading the directory, if there is one.
func (l *Log) files() (map[string]bool, error) {
	paths := map[string]bool{}
	add := func(path string, regular bool) {
		if !regular {
			info, err := os.Stat(path) // it may be a link to a file
			regular = err == nil && info.Mode().IsRegular()
		}
		if regular && filepath.Base(path)[0] != '.' {
			paths[path] = true
		}
	}
	entries, err := os.ReadDir(l.Path)
	if err != nil && strings.ContainsAny(l.Path, "*?[") { // not a directory
		names, _ := filepath.Glob(l.Path) // New has checked the pattern, and Glob has no other errors
		_, err = os.ReadDir(filepath.Dir(l.Path))
		for _, path := range names {
			add(path, false)
		}
	}
	for _, e := range entries {
		add(filepath.Join(l.Path, e.Name()), e.Type().IsRegular())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it may come later, or the pattern is one of directories
	}
	return paths, err
}

// covers reports whether path is in the directory l, or fits the pattern l.
func (l *Log) covers(path string) bool {
	fits, _ := filepath.Match(l.Path, path)
	return fits || filepath.Dir(path) == l.Path
}

// isRotated reports whether path is compressed, or the rotated file of another of paths.
func isRotated(path string, paths map[string]bool) bool {
	if isCompressed(path) {
		return true
	}
	dir, name := filepath.Split(path)
	for i, c := range name {
		if c != '-' && c != '.' && c != '_' {
			continue
		}
		for _, base := range []string{name[:i], name[:i] + filepath.Ext(name)} {
			if _, ok := rotatedName(base, name); ok && paths[dir+base] {
				return true
			}
		}
	}
	return false
}

// follows reports whether path is the file of a log that is followed, under any name.
func (f *Follower) follows(path string) bool {
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(f.tails, func(t *tail) bool {
		_, rotated := rotatedName(filepath.Base(t.path), filepath.Base(path))
		return t.path == path || t.open(info) >= 0 || rotated && filepath.Dir(t.path) == filepath.Dir(path)
	})
}
