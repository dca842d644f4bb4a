package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ErrClosed is returned by all that is called after Close.
var ErrClosed = errors.New("journal: it is closed")

const (
	tempName     = "snapshot.tmp"
	snapshotStem = "snapshot-"
	journalStem  = "journal-"
	badSuffix    = ".bad"
)

func snapshotName(n uint64) string { return fmt.Sprintf("%s%08d", snapshotStem, n) }
func journalName(n uint64) string  { return fmt.Sprintf("%s%08d", journalStem, n) }

// numberOf returns the number in a name that this package gives.
func numberOf(name, stem string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, stem)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 62)
	return n, err == nil && n > 0 && fmt.Sprintf("%s%08d", stem, n) == name
}

// A Dir is a directory with the state of one process.
//
// Read first, [Dir.ReadSnapshot] and then [Dir.ReadJournal]; then append to
// [Dir.Journal] and write snapshots. It is safe for concurrent use. Its zero
// value is not usable; call [Open].
type Dir struct {
	fs      fileSystem
	path    string
	release func() error // gives the lock and the directory back
	journal *Journal

	// mu is held for the length of a read or write: one at a time.
	mu           sync.Mutex
	closed       bool
	snapshots    []snapshotHeader // that seem whole, oldest first
	hadSnapshot  bool             // when it was opened
	generation   uint64           // highest number that a file has had
	found        []journalFile    // when it was opened, oldest first
	problems     []error          // with snapshots
	lost         []error          // with journals
	cut, damaged int64            // bytes of journals
	base         uint64           // last journal record that the snapshot read has
	readSnapshot bool
	readJournal  bool
}

// Open takes the directory at path for this process, and makes it, for its owner
// only, if it is not there. It reads what is there, and looks through the journals
// once; call [Dir.Close] in the end.
//
// The error says what to do: the directory is in use (ErrLocked), others can
// write to it, it or a file in it is not ours to read, a file is no regular file,
// a file is of a newer version (ErrNewer). A damaged file is no error; reading
// reports it.
func Open(path string) (*Dir, error) {
	d, err := openLocked(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %s: %w", path, err)
	}
	return d, nil
}

func openLocked(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	l, err := openDir(path)
	if err != nil {
		return nil, err
	}
	unlock, err := l.lock()
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	release := func() error { return errors.Join(unlock(), l.close()) }
	d, err := newDir(l, path, release)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return d, nil
}

// newDir looks through what l has, and starts the committer.
func newDir(l fileSystem, path string, release func() error) (*Dir, error) {
	d := &Dir{fs: l, path: path, release: release}
	names, err := l.list()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	// A newer file is found before anything is changed.
	for _, name := range names {
		if err := d.checkVersion(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var files, numbers []uint64
	for _, name := range names {
		plain := strings.TrimSuffix(name, badSuffix) // their numbers are taken, too
		if n, ok := numberOf(plain, snapshotStem); ok {
			d.generation = max(d.generation, n)
			if plain == name {
				numbers = append(numbers, n)
			}
		}
		if n, ok := numberOf(plain, journalStem); ok && plain == name {
			files = append(files, n)
		}
	}
	slices.Sort(numbers)
	slices.Sort(files)
	if slices.Contains(names, tempName) {
		if err := l.remove(tempName); err != nil {
			return nil, err
		}
	}
	if err := d.findSnapshots(numbers); err != nil {
		return nil, err
	}
	if err := d.findJournals(files); err != nil {
		return nil, err
	}
	d.journal = newJournal(l, d.path, d.nextRecord(), highest(names), d.found)
	return d, nil
}

// highest returns the largest number that a journal has, of those set aside, too.
func highest(names []string) uint64 {
	var most uint64
	for _, name := range names {
		if n, ok := numberOf(strings.TrimSuffix(name, badSuffix), journalStem); ok {
			most = max(most, n)
		}
	}
	return most
}

// nextRecord returns a number above that of every record that ever was.
func (d *Dir) nextRecord() uint64 {
	var last uint64
	for _, s := range d.snapshots {
		last = max(last, s.covered)
	}
	for _, f := range d.found {
		last = max(last, f.last)
	}
	return last + 1
}

// checkVersion returns ErrNewer for a file of a newer version, and an error for
// one that is there and must not be read.
func (d *Dir) checkVersion(name string) error {
	magic := snapshotMagic
	if _, ok := numberOf(name, snapshotStem); !ok {
		if _, ok := numberOf(name, journalStem); !ok {
			return nil
		}
		magic = journalMagic
	}
	f, err := d.fs.open(name)
	if errors.Is(err, fs.ErrPermission) {
		// Most likely the program was run by another user once. To go on
		// with an older state would be a loss that nobody asked for.
		return fmt.Errorf("%w; give it to the user that runs this program", err)
	}
	if err != nil {
		return nil // findSnapshots and findJournals meet it again
	}
	defer f.Close() // read only
	b := make([]byte, prefixLen)
	n, _ := io.ReadFull(f, b)
	if err := checkPrefix(b[:n], magic); errors.Is(err, ErrNewer) {
		return err
	}
	return nil
}

// findSnapshots reads the headers. The numbers in them must be known before the
// first record is appended: one that has no whole header is never used again.
func (d *Dir) findSnapshots(numbers []uint64) error {
	for _, n := range numbers {
		name := snapshotName(n)
		h, err := d.header(name)
		if err == nil && h.generation != n {
			err = damage("its header says generation %d", h.generation)
		}
		if err == nil {
			d.snapshots = append(d.snapshots, h)
			continue
		}
		if errors.Is(err, ErrNewer) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := d.fs.rename(name, name+badSuffix); err != nil {
			return err
		}
		d.problems = append(d.problems, fmt.Errorf("%w; it was set aside as %s", d.wrap(name, err), name+badSuffix))
	}
	d.hadSnapshot = len(d.snapshots) > 0
	return nil
}

func (d *Dir) header(name string) (snapshotHeader, error) {
	f, err := d.fs.open(name)
	if err != nil {
		return snapshotHeader{}, err
	}
	defer f.Close() // read only
	b := make([]byte, snapshotHeaderLen)
	n, err := io.ReadFull(f, b)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return snapshotHeader{}, err
	}
	return parseSnapshotHeader(b[:n])
}

// Journal returns the journal of d.
func (d *Dir) Journal() *Journal { return d.journal }

// Close writes what was appended to disk and gives the directory back. It waits
// for a snapshot that is being written. The error says that records are not on
// disk. A second Close does nothing.
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
