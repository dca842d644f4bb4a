package follow

import (
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/file/fileperm"
)

// A log is looked at for its format by sampleBytes, and of a directory or pattern at most maxSampled files.
const (
	sampleBytes = 64 << 10
	maxSampled  = 64
)

// Formats returns the logs whose formats are known, under the names that their events have: the format is given, or
// found from the first lines of a file.
func Formats(logs []Log) (known []Log) {
	for _, l := range logs {
		switch {
		case l.isJournal():
			if f, err := journalFormatOf(l.Format); err == nil {
				known = append(known, Log{Path: l.Path, Format: f})
			}
			continue
		case l.isStdin():
			known = append(known, l)
			continue
		}
		if path, err := filepath.Abs(l.Path); err == nil {
			l.Path = path
		}
		paths := []string{l.Path}
		if l.many() {
			files, _ := l.files() // the Follower logs why there are none
			paths = slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(path string) bool { return isRotated(path, files) })
			paths = paths[:min(len(paths), maxSampled)]
		}
		for _, path := range paths {
			known = append(known, Log{Path: path, Format: formatOf(path, l.Format)})
		}
	}
	return slices.DeleteFunc(known, func(l Log) bool { return l.Format.String() == "" })
}

// formatOf returns the format of a file, with the inner format of its lines. One that is given may
// be zero.
func formatOf(path string, given accesslog.Format) accesslog.Format {
	file, info, err := fileperm.Open(path)
	if err != nil {
		return given
	}
	defer file.Close() // read only
	sample := make([]byte, min(info.Size(), sampleBytes))
	n, _ := io.ReadFull(file, sample) // it may be shorter by now
	found, ok := given, given.String() != ""
	if !ok {
		found, ok = accesslog.Detect(sample[:n])
	}
	if inside, isInside := found.Inside(sample[:n]); ok && isInside {
		return inside
	}
	return found
}
