package follow

import (
	"os"
	"path/filepath"
	"slices"
)

// discover begins to follow the files that directories and patterns have now.
func (f *Follower) discover() {
	for i := range f.config.Logs {
		l := &f.config.Logs[i]
		if !l.many() {
			f.tail(l.Path, l)
			continue
		}
		paths := l.files()
		for _, path := range paths {
			if !isRotated(path, paths) && !f.follows(path) {
				f.tail(path, l)
			}
		}
	}
}

// files returns the regular files of a directory or a pattern.
func (l *Log) files() (paths []string) {
	entries, err := os.ReadDir(l.Path)
	if err != nil { // not a directory
		paths, _ = filepath.Glob(l.Path) // New has checked the pattern
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(l.Path, e.Name()))
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.Mode().IsRegular() || filepath.Base(path)[0] == '.'
	})
}

// covers reports whether path is in the directory l, or fits the pattern l.
func (l *Log) covers(path string) bool {
	fits, _ := filepath.Match(l.Path, path)
	return fits || filepath.Dir(path) == l.Path
}

// isRotated reports whether path is compressed, or the rotated file of another of paths.
func isRotated(path string, paths []string) bool {
	return isCompressed(path) || slices.ContainsFunc(paths, func(base string) bool {
		_, ok := rotatedName(filepath.Base(base), filepath.Base(path))
		return ok && filepath.Dir(base) == filepath.Dir(path)
	})
}

// follows reports whether path is the file of a log that is followed, under any name.
func (f *Follower) follows(path string) bool {
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(f.tails, func(t *tail) bool {
		_, rotated := rotatedName(filepath.Base(t.path), filepath.Base(path))
		return t.path == path || t.open(info) >= 0 || rotated && filepath.Dir(t.path) == filepath.Dir(path)
	})
}
