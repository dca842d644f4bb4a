package follow

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A rotated is a file whose name is a log's name with a number or a date.
type rotated struct {
	path       string
	log        string // the path without the number or date
	info       fs.FileInfo
	number     int    // 0 if it has none; higher numbers are older
	date       string // "" if it has none
	compressed bool
}

// equal reports whether r is the same file as o, under the same name.
func (r rotated) equal(o rotated) bool { return r.path == o.path && os.SameFile(r.info, o.info) }

var compressedSuffixes = []string{".gz", ".zst", ".bz2"}

func isCompressed(path string) bool { return plainName(path) != path }

// plainName returns a name without the suffix of compression.
func plainName(path string) string {
	for _, suffix := range compressedSuffixes {
		if plain, ok := strings.CutSuffix(path, suffix); ok {
			return plain
		}
	}
	return path
}

// rotation matches what rotation adds to a name. A number of up to five digits counts
// rotations; anything longer is a date.
var rotation = regexp.MustCompile(`^[-._]([0-9][-0-9T:_.]*)$`)

// rotatedName returns the number or date in a name if it names a rotated file of base.
func rotatedName(base, name string) (r rotated, ok bool) {
	r.compressed = isCompressed(name)
	name = plainName(name)
	added, ok := strings.CutPrefix(name, base)
	if ext := filepath.Ext(base); !ok && ext != "" { // access-20240129.log
		if added, ok = strings.CutPrefix(name, strings.TrimSuffix(base, ext)); ok {
			added, ok = strings.CutSuffix(added, ext)
		}
	}
	m := rotation.FindStringSubmatch(added)
	if !ok || m == nil {
		return r, false
	}
	if n, err := strconv.Atoi(m[1]); err == nil && len(m[1]) <= 5 {
		r.number = n + 1 // some programs begin at 0
	} else {
		r.date = m[1]
	}
	return r, true
}

// family returns the rotated files of a log, the oldest first, and of a file that is there
// plain and compressed only the plain one: it is being compressed.
func family(path string) []rotated {
	dir, base := filepath.Split(path)
	entries, _ := os.ReadDir(cmp.Or(dir, ".")) // without them, the log has no rotated files
	var all []rotated
	for _, e := range entries {
		r, ok := rotatedName(base, e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		r.path, r.log, r.info = filepath.Join(dir, e.Name()), path, info
		all = append(all, r)
	}
	all = slices.DeleteFunc(all, func(r rotated) bool {
		return r.compressed && slices.ContainsFunc(all, func(o rotated) bool { return !o.compressed && o.path == plainName(r.path) })
	})
	slices.SortStableFunc(all, compareAge)
	return all
}

// compareAge orders the rotated files of a log, the oldest first.
func compareAge(a, b rotated) int {
	switch {
	case a.number > 0 && b.number > 0:
		return cmp.Compare(b.number, a.number)
	case a.date != "" && b.date != "":
		return cmp.Compare(a.date, b.date)
	}
	return a.info.ModTime().Compare(b.info.ModTime())
}
