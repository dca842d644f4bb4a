package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// slow is a disk where each sync takes a while. It is for bubbles of synctest, where that costs nothing.
type slow struct {
	*memFS
	sync time.Duration
}

func (l slow) create(name string) (file, error) {
	f, err := l.memFS.create(name)
	return slowFile{f, l.sync}, err
}

func (l slow) open(name string) (file, error) {
	f, err := l.memFS.open(name)
	if err != nil {
		return nil, err
	}
	return slowFile{f, l.sync}, nil
}

type slowFile struct {
	file
	sync time.Duration
}

func (f slowFile) Sync() error {
	time.Sleep(f.sync)
	return f.file.Sync()
}

func mustBegin(t *testing.T, l fileSystem) *life {
	t.Helper()
	return must.Get(begin(l))(t)
}

// TestConcurrentOneSyncForMany appends from a hundred goroutines at once: the first sync is for the first, the next one for
// all that arrived meanwhile.
func TestConcurrentOneSyncForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustBegin(t, slow{newMemFS(), 10 * time.Millisecond})
		j := s.dir
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if err := j.AppendWait(fmt.Appendf(nil, "record %d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := j.Stats().Syncs; n > 3 {
			t.Errorf("%d syncs for 100 records at once, want at most 3", n)
		}
		if d := time.Since(start); d > 30*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		before := j.Stats().Syncs
		for i := range 20 {
			if err := j.AppendWait(fmt.Appendf(nil, "record %d", i)); err != nil {
				t.Error(err)
			}
		}
		if n := j.Stats().Syncs - before; n != 20 {
			t.Errorf("%d syncs for 20 records in turn, want 20", n)
		}
		if err := s.dir.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWithinASecond appends without waiting. After a second it survives the
// power, whether more comes all the time or nothing does.
func TestWithinASecond(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 300 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			disk := newMemFS()
			s := mustBegin(t, slow{disk, 5 * time.Millisecond})
			began := time.Now()
			due := 0
			for time.Since(began) < 3*time.Second {
				s.add(false)
				if time.Since(began) <= 2*time.Second {
					due = len(s.state)
				}
				time.Sleep(every)
			}
			if every == time.Hour {
				due = len(s.state)
			}
			s.acked = due
			after := mustBegin(t, disk.reboot(loseAll, rand.New(rand.NewPCG(1, 1))))
			if err := s.same(after); err != nil {
				t.Errorf("one every %v: %v", every, err)
			}
			_, _ = after.dir.Close(), s.dir.Close()
		})
	}
}

// TestWaitHurries appends without waiting, and then waits: not for the end of
// the half second.
func TestWaitHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustBegin(t, slow{newMemFS(), time.Millisecond})
		p := must.Get(s.dir.Append('j', []byte("x")))(t)
		start := time.Now()
		for range 2 {
			if err := p.Wait(); err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(start); d > 2*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		if err := (Pending{}).Wait(); err != nil {
			t.Error(err)
		}
		_ = s.dir.Close()
	})
}

// TestFailedSync has one sync fail. Waiting callers get the error; all records, including those without a waiting caller,
// are written a second later; and the failure stays visible.
func TestFailedSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemFS()
		s := mustBegin(t, disk)
		j := s.dir
		s.add(true)
		if j.Stats().Failing != nil || len(s.errs) > 0 {
			t.Fatal(j.Stats().Failing, s.errs)
		}
		failing := true
		disk.fault = func(op, _ string, _ int) error {
			if op == "sync" && failing {
				failing = false
				return syscall.EIO
			}
			return nil
		}
		s.add(false)
		s.add(true)
		if len(s.errs) != 1 || !errors.Is(s.errs[0], syscall.EIO) || !strings.Contains(s.errs[0].Error(), stateName) {
			t.Errorf("the error is %v; want EIO of %s", s.errs, stateName)
		}
		if w := j.Stats(); w.Waiting == 0 || w.Failures != 1 || !errors.Is(w.Failing, syscall.EIO) {
			t.Errorf("after a failure: %+v", w)
		}
		time.Sleep(retryEvery + time.Millisecond)
		if w := j.Stats(); w.Waiting != 0 || w.Failing != nil || w.Failures != 1 || w.Syncs != 2 {
			t.Errorf("a second later: %+v", w)
		}
		s.add(true)
		s.acked = 4
		after := mustBegin(t, disk.reboot(loseAll, rand.New(rand.NewPCG(1, 1))))
		if err := s.same(after); err != nil {
			t.Error(err)
		}
		_, _ = after.dir.Close(), s.dir.Close()
	})
}

// TestNotify has the disk fail and recover twice: each change is reported once, and records that did not fit into the
// journal are missing until a snapshot has them.
func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemFS()
		s := mustBegin(t, disk)
		j := s.dir
		var told []error
		j.Notify(func(err error) { told = append(told, err) })
		fail := func(err error) {
			disk.mu.Lock()
			defer disk.mu.Unlock()
			disk.fault = func(op, _ string, _ int) error {
				if op == "open" || op == "read" {
					return nil
				}
				return err
			}
		}
		for round := range 2 {
			fail(syscall.ENOSPC)
			for range 20 {
				_, _ = j.Append(1, make([]byte, MaxRecord))
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if n := len(told); n != 2*round+1 || !errors.Is(told[n-1], syscall.ENOSPC) {
				t.Fatalf("round %d: reported %v", round, told)
			}
			if s := j.Stats(); !errors.Is(s.Failing, syscall.ENOSPC) || s.Failures < 9 || s.Missing != 5 {
				t.Errorf("round %d: %+v", round, s)
			}
			s.snapshot()
			if s := j.Stats(); s.Missing != 5 {
				t.Errorf("round %d: %d are missing after a snapshot that failed", round, s.Missing)
			}
			fail(nil)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if n := len(told); n != 2*round+2 || told[n-1] != nil {
				t.Fatalf("round %d: reported %v", round, told)
			}
			s.snapshot()
			if s := j.Stats(); s.Failing != nil || s.Missing != 0 || s.Waiting != 0 {
				t.Errorf("round %d: %+v", round, s)
			}
		}
		if err := s.dir.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFailingDiskGetsNoMoreData has every sync fail for a while: no file of these attempts stays, and all records are there
// when the disk works again.
func TestFailingDiskGetsNoMoreData(t *testing.T) {
	disk := newMemFS()
	s := mustBegin(t, disk)
	failing := true
	disk.fault = func(op, _ string, _ int) error {
		if op == "sync" && failing {
			return syscall.EIO
		}
		return nil
	}
	for range 10 {
		s.add(true)
	}
	if len(s.errs) != 10 || len(names(disk)) != 0 {
		t.Errorf("%d errors, files %v; want 10 and none", len(s.errs), names(disk))
	}
	disk.mu.Lock()
	failing = false
	disk.mu.Unlock()
	s.add(true)
	s.end()
	after := mustBegin(t, disk)
	_ = after.dir.Close()
	if err := s.same(after); err != nil || len(after.state) != 11 || len(names(disk)) != 1 {
		t.Errorf("%v; %d read from %v", err, len(after.state), names(disk))
	}
}

// TestOneFile writes many snapshots: one file stays, which does not grow.
func TestOneFile(t *testing.T) {
	disk := newMemFS()
	s := mustBegin(t, disk)
	size := 0
	for range 20 {
		s.add(true)
		s.snapshot()
		s.add(true)
		if got := names(disk); !slices.Equal(got, []string{stateName}) {
			t.Fatalf("files: %v", got)
		}
		if size = len(disk.read(stateName)); size > headerLen+len(s.state)*(recordHeaderLen+1+68)+1000 {
			t.Errorf("%d bytes for %d records", size, len(s.state))
		}
	}
	s.end()
	if len(s.errs) > 0 {
		t.Error(s.errs)
	}
}

func TestRecordLengths(t *testing.T) {
	disk := newMemFS()
	s := mustBegin(t, disk)
	j := s.dir
	if err := j.AppendWait(make([]byte, MaxRecord+1)); err == nil || !strings.Contains(err.Error(), "1048577 bytes: must be up to 1048576") {
		t.Errorf("a record that is too long: %v", err)
	}
	for _, n := range []int{0, 1, MaxRecord} {
		if err := j.AppendWait(make([]byte, n)); err != nil {
			t.Errorf("a record of %d bytes: %v", n, err)
		}
	}
	must.Do(t, s.dir.Close())
	if err := j.AppendWait([]byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
	var sizes []int
	d, _, err := openFS(disk, func(r Record) error { sizes = append(sizes, len(r.Data)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	if !slices.Equal(sizes, []int{0, 1, MaxRecord}) {
		t.Errorf("read records of %v bytes", sizes)
	}
}

// TestConcurrentSnapshotMeanwhile appends from some goroutines while snapshots are written:
// whatever is read is whole.
func TestConcurrentSnapshotMeanwhile(t *testing.T) {
	disk := newMemFS()
	s := mustBegin(t, disk)
	var mu sync.Mutex // over s.state
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				mu.Lock()
				s.add(false)
				mu.Unlock()
			}
		})
	}
	for range 20 {
		err := s.dir.WriteSnapshot(func(add func(byte, []byte) error) error {
			mu.Lock()
			state := slices.Clone(s.state)
			mu.Unlock()
			return addNumbers(state)(add)
		})
		if err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	s.end()
	after := mustBegin(t, disk)
	_ = after.dir.Close()
	// Records that came while a snapshot was written are in it and in the journal.
	slices.Sort(after.state)
	after.state = slices.Compact(after.state)
	if err := s.same(after); err != nil {
		t.Error(err)
	}
	if len(s.errs) > 0 {
		t.Error(s.errs)
	}
}

// TestCoveredRecordIsNotReadAgain appends a record that goes to disk while a snapshot is written that has it, and
// one behind it: only the latter is behind the snapshot.
func TestCoveredRecordIsNotReadAgain(t *testing.T) {
	disk := newMemFS()
	s := mustBegin(t, disk)
	s.add(false)
	covered := slices.Clone(s.state)
	err := s.dir.WriteSnapshot(func(add func(byte, []byte) error) error {
		s.add(true)
		return addNumbers(covered)(add)
	})
	s.end()
	if err != nil || len(s.errs) > 0 {
		t.Fatal(err, s.errs)
	}
	after := mustBegin(t, disk)
	_ = after.dir.Close()
	if err := s.same(after); err != nil || after.found.Snapshot != 1 || after.found.Appended != 1 {
		t.Errorf("%v; %+v, want one record each", err, after.found)
	}
}

// TestTornTailIsRemoved appends to a file with a torn tail that is longer than the record: no byte
// of the tail remains after it.
func TestTornTailIsRemoved(t *testing.T) {
	disk := newMemFS()
	s := mustBegin(t, disk)
	s.add(true)
	s.end()
	disk.set(stateName, append(disk.read(stateName), make([]byte, 5000)...))
	again := mustBegin(t, disk)
	if again.found.Cut != 5000 {
		t.Errorf("%+v, want 5000 bytes that were cut", again.found)
	}
	again.add(true)
	again.end()
	last := mustBegin(t, disk)
	if _ = last.dir.Close(); last.found.Problems != nil || len(last.state) != 2 {
		t.Errorf("read %v, %+v", last.state, last.found)
	}
}
