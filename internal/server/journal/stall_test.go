package journal

import (
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// A StallingDisk is a directory in memory whose operations wait while it is stalled.
type StallingDisk struct {
	*memFS

	mu      sync.Mutex
	stalls  func(op, name string) bool
	resumed chan struct{} // closed by Resume
	Reached chan string   // the operations that wait
}

func NewStallingDisk() *StallingDisk {
	return &StallingDisk{memFS: newMemFS(), Reached: make(chan string, 100)}
}

// Open opens the directory.
func (d *StallingDisk) Open(restore func(Record) error) (*Journal, Found, error) {
	return openFS(d, restore)
}

// Stall makes the operations wait that stalls selects.
func (d *StallingDisk) Stall(stalls func(op, name string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stalls, d.resumed = stalls, make(chan struct{})
}

// Resume ends the wait.
func (d *StallingDisk) Resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stalls = nil
	close(d.resumed)
}

func (d *StallingDisk) wait(op, name string) {
	d.mu.Lock()
	stalled, resumed := d.stalls != nil && d.stalls(op, name), d.resumed
	d.mu.Unlock()
	if stalled {
		d.Reached <- op + " " + name
		<-resumed
	}
}

func (d *StallingDisk) create(name string) (file, error) {
	d.wait("create", name)
	f, err := d.memFS.create(name)
	if err != nil {
		return nil, err
	}
	return stallingFile{f, d}, nil
}

func (d *StallingDisk) rename(from, to string) error {
	d.wait("rename", from)
	return d.memFS.rename(from, to)
}

func (d *StallingDisk) remove(name string) error {
	d.wait("remove", name)
	return d.memFS.remove(name)
}

func (d *StallingDisk) syncDir() error {
	d.wait("syncdir", "")
	return d.memFS.syncDir()
}

type stallingFile struct {
	file
	d *StallingDisk
}

func (f stallingFile) name() string {
	f.d.memFS.mu.Lock()
	defer f.d.memFS.mu.Unlock()
	return f.file.(*memFile).name()
}

func (f stallingFile) WriteAt(b []byte, at int64) (int, error) {
	f.d.wait("write", f.name())
	return f.file.WriteAt(b, at)
}

func (f stallingFile) Sync() error {
	f.d.wait("sync", f.name())
	return f.file.Sync()
}

// within fails the test if do waits for something that does not come.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		t.Fatalf("%s waits for the disk", what)
	}
}

// TestStalledSnapshot stalls the disk at each step of a snapshot. Records are appended meanwhile,
// those that wait for the disk are acknowledged if only the snapshot waits, and the function that adds the
// records has returned, so that no lock of the state is held.
func TestStalledSnapshot(t *testing.T) {
	for _, step := range []string{
		"remove " + tempName, "create " + tempName, "write " + tempName, "sync " + tempName, "rename " + tempName, "syncdir ",
	} {
		t.Run(step, func(t *testing.T) {
			disk := NewStallingDisk()
			d, _, err := disk.Open(nil)
			if err != nil {
				t.Fatal(err)
			}
			filled := make(chan struct{})
			snapshot := func() error {
				return d.WriteSnapshot(func(add func(byte, []byte) error) error {
					defer func() { filled <- struct{}{} }()
					return add(1, make([]byte, MaxRecord))
				})
			}
			for range 2 {
				must.Do(t, d.AppendWait([]byte("before")))
				go func() { <-filled }()
				must.Do(t, snapshot())
			}
			must.Do(t, d.AppendWait([]byte("before")))
			disk.Stall(func(op, name string) bool { return op+" "+name == step })
			result := make(chan error, 1)
			go func() { result <- snapshot() }()
			within(t, "the function that adds the records", func() { <-filled })
			within(t, "no step of the snapshot", func() { <-disk.Reached })
			within(t, "Stats", func() { d.Stats() })
			var p Pending
			within(t, "Append", func() { p, err = d.Append('j', []byte("meanwhile")) })
			if err != nil {
				t.Fatal(err)
			}
			if step != "rename "+tempName && step != "syncdir " { // the file is replaced
				within(t, "a record", func() { err = p.Wait() })
			}
			disk.Resume()
			if err := <-result; err != nil || p.Wait() != nil {
				t.Errorf("%v, %v", err, p.Wait())
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLargeSnapshotWaits writes what exceeds the copy at once: memory is bounded.
func TestLargeSnapshotWaits(t *testing.T) {
	disk := NewStallingDisk()
	d, _, err := disk.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AppendWait([]byte("x")); err != nil { // there is a file
		t.Fatal(err)
	}
	disk.Stall(func(string, name string) bool { return name == tempName })
	added := make(chan int, 100)
	result := make(chan error, 1)
	go func() {
		result <- d.WriteSnapshot(func(add func(byte, []byte) error) error {
			for n := range 40 {
				if err := add(1, make([]byte, MaxRecord)); err != nil {
					return err
				}
				added <- n
			}
			return nil
		})
	}()
	within(t, "the first write", func() { <-disk.Reached })
	if n := len(added); n != maxCopied/MaxRecord-1 { // and their headers
		t.Errorf("%d MiB wait in memory, want %d", n, maxCopied/MaxRecord-1)
	}
	disk.Resume()
	if err := <-result; err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
