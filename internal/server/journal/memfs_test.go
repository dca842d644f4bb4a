package journal

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
)

// A memFS is a directory in memory that models a disk after a power failure: synced data is there, and any part of the
// unsynced data.
//
// The model is harder than most file systems: a file that was synced is not found unless the directory was synced, too; and
// after a sync that fails, the data that was dirty counts as clean and is never written.
type memFS struct {
	mu      sync.Mutex
	names   map[string]*node
	disk    map[string]*node               // names as they were last synced
	pending []func(names map[string]*node) // changes to names since

	ops   int // so far: every one that changes something
	fault func(op string, name string, n int) error
	dead  bool // the power has failed
}

// node is a file.
type node struct {
	cache []byte
	disk  []byte
	dirty []chunk // in order
}

// A chunk is a write, or the cut at a length if there is no data.
type chunk struct {
	at   int
	data []byte
}

// errPower is returned by all operations after the power has failed. A fault with this error turns the power off.
var errPower = errors.New("the power is off")

// errShort has a write write half of its bytes.
var errShort = errors.New("half of it was written")

func newMemFS() *memFS {
	return &memFS{names: map[string]*node{}, disk: map[string]*node{}}
}

// do counts an operation and returns what goes wrong with it.
func (l *memFS) do(op, name string) error {
	if l.dead {
		return errPower
	}
	l.ops++
	var err error
	if l.fault != nil {
		err = l.fault(op, name, l.ops)
	}
	l.dead = err == errPower
	return err
}

func (l *memFS) change(f func(names map[string]*node)) {
	f(l.names)
	l.pending = append(l.pending, f)
}

func (l *memFS) create(name string) (file, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.do("create", name); err != nil {
		return nil, err
	}
	if l.names[name] != nil {
		return nil, fs.ErrExist
	}
	n := &node{}
	l.change(func(names map[string]*node) { names[name] = n })
	return &memFile{l, n}, nil
}

func (l *memFS) open(name string) (file, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return nil, errPower
	}
	if l.fault != nil {
		if err := l.fault("open", name, l.ops); err != nil {
			return nil, err
		}
	}
	if l.names[name] == nil {
		return nil, fs.ErrNotExist
	}
	return &memFile{l, l.names[name]}, nil
}

func (l *memFS) rename(from, to string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.do("rename", from); err != nil {
		return err
	}
	if l.names[from] == nil {
		return fs.ErrNotExist
	}
	l.change(func(names map[string]*node) {
		if n := names[from]; n != nil {
			names[to] = n
			delete(names, from)
		}
	})
	return nil
}

func (l *memFS) remove(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.do("remove", name); err != nil {
		return err
	}
	if l.names[name] == nil {
		return fs.ErrNotExist
	}
	l.change(func(names map[string]*node) { delete(names, name) })
	return nil
}

func (l *memFS) syncDir() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.do("syncdir", ""); err != nil {
		return err
	}
	l.disk, l.pending = maps.Clone(l.names), nil
	return nil
}

type memFile struct {
	l *memFS
	n *node
}

// name returns the present name of the file, or "" if it was removed.
func (f *memFile) name() string {
	for name, n := range f.l.names {
		if n == f.n {
			return name
		}
	}
	return ""
}

func (f *memFile) Close() error { return nil }

// memInfo describes a file by its size.
type memInfo struct {
	fs.FileInfo
	size int
}

func (i memInfo) Size() int64 { return int64(i.size) }

func (f *memFile) Stat() (fs.FileInfo, error) {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	return memInfo{size: len(f.n.cache)}, nil
}

func (f *memFile) ReadAt(b []byte, at int64) (int, error) {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	if f.l.fault != nil {
		if err := f.l.fault("read", f.name(), f.l.ops); err != nil {
			return 0, err
		}
	}
	return bytes.NewReader(f.n.cache).ReadAt(b, at)
}

func (f *memFile) WriteAt(b []byte, at int64) (int, error) {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	err := f.l.do("write", f.name())
	switch err {
	case nil:
	case errShort:
		b = b[:len(b)/2]
		err = syscall.ENOSPC
	default:
		return 0, err
	}
	f.n.dirty = append(f.n.dirty, chunk{int(at), slices.Clone(b)})
	f.n.cache = put(f.n.cache, int(at), b)
	return len(b), err
}

func (f *memFile) Truncate(size int64) error {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	if err := f.l.do("truncate", f.name()); err != nil {
		return err
	}
	f.n.dirty = append(f.n.dirty, chunk{int(size), nil})
	f.n.cache = f.n.cache[:size]
	return nil
}

func (f *memFile) Sync() error {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	err := f.l.do("sync", f.name())
	if err == nil {
		for _, c := range f.n.dirty {
			f.n.apply(c)
		}
	}
	if err != errPower {
		f.n.dirty = nil // also after an error: that is the trap
	}
	return err
}

// apply writes a chunk to the disk.
func (n *node) apply(c chunk) {
	if c.data == nil {
		n.disk = n.disk[:min(c.at, len(n.disk))]
	} else {
		n.disk = put(n.disk, c.at, c.data)
	}
}

// put writes data at a place of b; what lies between was never written.
func put(b []byte, at int, data []byte) []byte {
	if end := at + len(data); len(b) < end {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[at:], data)
	return b
}

// A loss is what happens to unsynced data when the power fails.
type loss int

const (
	loseAll   loss = iota // nothing unsynced is on disk
	loseNone              // all is
	loseFiles             // names are, data is not
	loseNames             // data is, names are not
	loseTail              // some first part of the changes to names, and of each file's writes
	loseAny               // as loseTail, and some sectors of the last write, others zero
	numLosses
)

func (l loss) String() string {
	return [...]string{"lose all", "lose none", "lose data", "lose names", "lose a tail", "lose sectors"}[l]
}

// reboot returns what the disk has.
func (l *memFS) reboot(how loss, rng *rand.Rand) *memFS {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	keep := 0
	switch how {
	case loseNone, loseFiles:
		keep = len(l.pending)
	case loseTail, loseAny:
		keep = rng.IntN(len(l.pending) + 1)
	}
	names := maps.Clone(l.disk)
	for _, change := range l.pending[:keep] {
		change(names)
	}
	next := newMemFS()
	for name, n := range names {
		bytes := n.after(how, rng)
		next.names[name] = &node{cache: bytes, disk: slices.Clone(bytes)}
	}
	next.disk = maps.Clone(next.names)
	return next
}

func (n *node) after(how loss, rng *rand.Rand) []byte {
	left := &node{disk: slices.Clone(n.disk)}
	switch how {
	case loseNone, loseNames:
		for _, c := range n.dirty {
			left.apply(c)
		}
	case loseTail, loseAny:
		i := rng.IntN(len(n.dirty) + 1)
		for _, c := range n.dirty[:i] {
			left.apply(c)
		}
		if i < len(n.dirty) && n.dirty[i].data != nil && rng.IntN(2) == 0 {
			c := n.dirty[i]
			left.apply(chunk{c.at, c.data[:rng.IntN(len(c.data)+1)]})
		}
	}
	if how == loseAny && len(n.dirty) > 0 {
		const sector = 512
		from := n.dirty[0].at
		for _, c := range n.dirty {
			from = min(from, c.at)
		}
		for at := from; at < len(left.disk); at = (at/sector + 1) * sector {
			if rng.IntN(2) == 0 {
				clear(left.disk[at:min((at/sector+1)*sector, len(left.disk))])
			}
		}
	}
	return left.disk
}

// read returns the bytes of a file, and set replaces them, cache and disk.
func (l *memFS) read(name string) []byte { return l.names[name].cache }

func (l *memFS) set(name string, b []byte) {
	l.names[name] = &node{cache: b, disk: slices.Clone(b)}
	l.disk[name] = l.names[name]
}

func (l *memFS) clone() *memFS {
	next := newMemFS()
	for name, n := range l.names {
		next.set(name, slices.Clone(n.cache))
	}
	return next
}

// lying reports a sync without doing it: a program without that sync.
type lying struct {
	*memFS
	unsynced string // syncs of the file with this name are not done
	noDir    bool   // directory syncs are not done
}

func (l lying) create(name string) (file, error) {
	f, err := l.memFS.create(name)
	return lyingFile{f, l}, err
}

func (l lying) open(name string) (file, error) {
	f, err := l.memFS.open(name)
	if err != nil {
		return nil, err
	}
	return lyingFile{f, l}, nil
}

func (l lying) syncDir() error {
	if l.noDir {
		return nil
	}
	return l.memFS.syncDir()
}

type lyingFile struct {
	file
	l lying
}

func (f lyingFile) Sync() error {
	f.l.mu.Lock()
	name := f.file.(*memFile).name()
	f.l.mu.Unlock()
	if name == f.l.unsynced {
		return nil
	}
	return f.file.Sync()
}
