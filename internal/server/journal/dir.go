package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ErrClosed is the error of all calls after Close.
var ErrClosed = errors.New("journal: it is closed")

const (
	tempName     = "snapshot.tmp"
	snapshotStem = "snapshot-"
	journalStem  = "journal-"
	badSuffix    = ".bad"
)

func fileName(stem string, n uint64) string { return fmt.Sprintf("%s%08d", stem, n) }
func snapshotName(n uint64) string          { return fileName(snapshotStem, n) }
func journalName(n uint64) string           { return fileName(journalStem, n) }

// numberOf returns the number in the name of a file of that stem.
func numberOf(name, stem string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, stem)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 62)
	return n, err == nil && n > 0 && fileName(stem, n) == name
}

// numbersOf returns the numbers in names of that stem and suffix, in ascending order.
func numbersOf(names []string, stem, suffix string) (numbers []uint64) {
	for _, name := range names {
		if plain, ok := strings.CutSuffix(name, suffix); ok {
			if n, ok := numberOf(plain, stem); ok {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers
}

// highest returns the largest number of a file of that stem, damaged ones included.
func highest(names []string, stem string) (most uint64) {
	for _, suffix := range []string{"", badSuffix} {
		for _, n := range numbersOf(names, stem, suffix) {
			most = max(most, n)
		}
	}
	return most
}

// A Dir is a directory with the state of one process: append to [Dir.Journal], and write
// snapshots. It is safe for concurrent use. Its zero value is not usable; call [Open].
type Dir struct {
	fs      fileSystem
	path    string
	release func() error // of the lock and the directory
	journal *Journal

	mu         sync.Mutex // held while a snapshot is written
	closed     bool
	snapshots  []snapshotHeader // whole ones, oldest first; of older ones only the header was read
	generation uint64           // highest number that a file has had
}

// Open locks the directory at path, which it makes, for its owner only, if it is missing. It
// passes the records that are there to r, and changes no file before it has read all of
// them. Call [Dir.Close] in the end.
//
// The error says what to do: the directory is in use (ErrLocked), other users can write to
// it, it or a file cannot be read, a file is no regular file or of a newer version
// (ErrNewer). A damaged file is no error, but a problem of Found. After an error, r may
// have received a part of the state.
func Open(path string, r Restore) (*Dir, Found, error) {
	d, found, err := openLocked(path, r)
	if err != nil {
		return nil, found, fmt.Errorf("journal: %s: %w", path, err)
	}
	return d, found, nil
}

func openLocked(path string, r Restore) (*Dir, Found, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, Found{}, err
	}
	l, err := openDir(path)
	if err != nil {
		return nil, Found{}, err
	}
	unlock, err := l.lock()
	if err != nil {
		return nil, Found{}, errors.Join(err, l.close())
	}
	release := func() error { return errors.Join(unlock(), l.close()) }
	d, found, err := newDir(l, path, release, r)
	if err != nil {
		return nil, found, errors.Join(err, release())
	}
	return d, found, nil
}

// newDir reads what l has, and starts the committer.
func newDir(l fileSystem, path string, release func() error, r Restore) (*Dir, Found, error) {
	names, err := l.list()
	if err != nil {
		return nil, Found{}, err
	}
	d := &Dir{fs: l, path: path, release: release, generation: highest(names, snapshotStem)}
	number := highest(names, journalStem)
	in := restoring{Dir: d, next: 1}
	if err := in.snapshotHeaders(numbersOf(names, snapshotStem, "")); err != nil {
		return nil, in.found, err
	}
	if err := in.snapshot(r.Snapshot); err != nil {
		return nil, in.found, err
	}
	if err := in.journals(numbersOf(names, journalStem, ""), r.Journal); err != nil {
		return nil, in.found, err
	}
	if most := max(in.next, number, d.generation); most > maxStart {
		return nil, in.found, fmt.Errorf("a record or a file has the number %d: must be up to %d, or what is written next could not be read; move that file away", most, uint64(maxStart))
	}
	// No file is of a newer version: from here on, files are changed.
	if slices.Contains(names, tempName) {
		if err := l.remove(tempName); err != nil {
			return nil, in.found, err
		}
	}
	in.setAsideDamaged()
	d.journal = newJournal(l, d.path, in.next, number, in.files)
	return d, in.found, nil
}

// header reads the header of a snapshot.
func (d *Dir) header(name string) (snapshotHeader, error) {
	f, err := d.open(name)
	if err != nil {
		return snapshotHeader{}, err
	}
	defer f.Close() // read only
	_, h, err := newSnapshotReader(f, snapshotHeaderLen)
	return h, err
}

// open opens a file for reading.
func (d *Dir) open(name string) (file, error) {
	f, err := d.fs.open(name)
	if errors.Is(err, fs.ErrPermission) {
		// Most likely the program was once run by another user. An older state
		// must not be used instead.
		err = fmt.Errorf("%w; give it to the user that runs this program", err)
	}
	return f, err
}

// Journal returns the journal of d.
func (d *Dir) Journal() *Journal { return d.journal }

// Close writes what was appended and unlocks the directory. It waits for a snapshot that is
// being written. The error says that records are not on disk. A second Close does nothing.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return errors.Join(d.journal.close(), d.release())
}

// wrap says which file an error is about.
func (d *Dir) wrap(name string, err error) error {
	return fmt.Errorf("journal: %s: %w", filepath.Join(d.path, name), err)
}
