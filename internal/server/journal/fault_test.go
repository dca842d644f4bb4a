package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// disk faults: each is what one operation, or some in a row, answer.
var faults = map[string]error{
	"EIO":         syscall.EIO,
	"ENOSPC":      syscall.ENOSPC,
	"short write": errShort,
}

// faultAt runs the program on a disk whose operations from n to n+count fail; the disk works again when it is read after a
// power failure. It returns whether the run ended before operation n.
func faultAt(n, count int, fault error, wrap func(*memFS) fileSystem) (over bool, err error) {
	disk := newMemFS()
	failed := ""
	disk.fault = func(op, name string, at int) error {
		switch {
		case op == "open" || op == "read" || at < n || at >= n+count:
			return nil
		case fault == errShort && op != "write":
			return syscall.ENOSPC
		}
		failed += op + " " + name + ", "
		return fault
	}
	s, err := begin(wrap(disk))
	if err != nil {
		return false, err // an empty directory needs no operation of the disk
	}
	s.work()
	if n := s.dir.Stats().Failures; n > 0 {
		s.note(fmt.Errorf("%d commits failed", n))
	}
	s.end()
	disk.fault = nil
	after, err := begin(disk.reboot(loseAll, rand.New(rand.NewPCG(1, 1))))
	if err == nil {
		_ = after.dir.Close()
		err = s.same(after)
	}
	if err != nil {
		return false, fmt.Errorf("%sfailed: %w", failed, err)
	}
	if failed != "" && len(s.errs) == 0 && !strings.HasPrefix(failed, "remove") {
		return false, fmt.Errorf("%sfailed without an error", failed)
	}
	return failed == "", nil
}

// faultsEverywhere returns the first error whose text contains about.
func faultsEverywhere(wrap func(*memFS) fileSystem, about string) (points int, err error) {
	for name, fault := range faults {
		for _, count := range []int{1, 2, 3, 7, 1000} {
			for n := 1; ; n++ {
				over, err := faultAt(n, count, fault, wrap)
				if err != nil && strings.Contains(err.Error(), about) {
					return points, fmt.Errorf("%d times %s from operation %d on: %w", count, name, n, err)
				}
				if over || n > 1000 { // it never comes to that
					break
				}
				points++
			}
		}
	}
	return points, nil
}

// TestEveryFault has one operation fail, some, or all from one on. Afterwards everything acknowledged is there, no good
// snapshot was changed, and the error was reported. When only some failed, nothing at all is lost.
func TestEveryFault(t *testing.T) {
	points := must.Get(faultsEverywhere(plain, ""))(t)
	t.Logf("%d faults", points)
}

// retrying syncs again after an error, as if that could help.
type retrying struct{ *memFS }

func (l retrying) create(name string) (file, error) {
	f, err := l.memFS.create(name)
	return retryingFile{f}, err
}

type retryingFile struct{ file }

func (f retryingFile) Sync() error {
	if err := f.file.Sync(); err == nil || err == errPower {
		return err
	}
	return f.file.Sync()
}

// quiet does not report when a sync fails.
type quiet struct{ *memFS }

func (l quiet) create(name string) (file, error) {
	f, err := l.memFS.create(name)
	return quietFile{f}, err
}

type quietFile struct{ file }

func (f quietFile) Sync() error {
	_ = f.file.Sync()
	return nil
}

func TestFaultTestCanFail(t *testing.T) {
	for about, wrap := range map[string]func(*memFS) fileSystem{
		"were lost":               func(l *memFS) fileSystem { return retrying{l} },
		"failed without an error": func(l *memFS) fileSystem { return quiet{l} },
	} {
		_, err := faultsEverywhere(wrap, about)
		if err == nil {
			t.Errorf("no %q", about)
		}
		t.Log(err)
	}
}

// TestEveryFaultOfReading has one operation of opening and reading fail. That is an error, and when the disk works again,
// all records are there.
func TestEveryFaultOfReading(t *testing.T) {
	disk := newMemFS()
	s := must.Get(begin(disk))(t)
	s.work()
	s.end()
	for n := 1; ; n++ {
		image := disk.clone()
		at, failed := 0, ""
		image.fault = func(op, name string, _ int) error {
			if at++; at == n {
				failed = op + " " + name
				return syscall.EIO
			}
			return nil
		}
		r, err := begin(image)
		image.fault = nil
		if err == nil {
			_ = r.dir.Close()
		}
		switch {
		case failed == "" && err == nil:
			if n < 3 {
				t.Errorf("%d operations", n-1)
			}
			return
		case strings.HasPrefix(failed, "remove") && err == nil:
		case !errors.Is(err, syscall.EIO):
			t.Errorf("%s failed, and the error is %v", failed, err)
		}
		again, err := begin(image)
		if err != nil {
			t.Fatalf("%s had failed; now: %v", failed, err)
		}
		_ = again.dir.Close()
		if len(again.state) < s.acked || again.whole() != nil {
			t.Errorf("%s had failed; now %d of %d are read", failed, len(again.state), s.acked)
		}
	}
}

// TestFullDisk fills the disk for good. The snapshot that was there stays, and
// what may wait for the disk is bounded.
func TestFullDisk(t *testing.T) {
	disk := newMemFS()
	s := must.Get(begin(disk))(t)
	s.work()
	disk.mu.Lock()
	disk.fault = func(op, _ string, _ int) error {
		if op == "write" {
			return errShort
		}
		return nil
	}
	disk.mu.Unlock()
	if err := s.dir.WriteSnapshot(func(add func(byte, []byte) error) error { return add(1, make([]byte, MaxRecord)) }); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("WriteSnapshot: %v, want ENOSPC", err)
	}
	j := s.dir
	s.errs = nil
	if s.add(true); !errors.Is(errors.Join(s.errs...), syscall.ENOSPC) {
		t.Errorf("Append: %v, want ENOSPC", s.errs)
	}
	for s.errs = nil; s.errs == nil; {
		s.add(false)
	}
	if waiting := j.Stats().Waiting; !errors.Is(s.errs[0], ErrFull) || waiting > maxWaiting || waiting < maxWaiting-1000 {
		t.Errorf("Append: %v with %d bytes waiting, want ErrFull", s.errs, waiting)
	}
	if err := s.dir.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v, want ENOSPC", err)
	}
	disk.fault = nil
	after := must.Get(begin(disk))(t)
	_ = after.dir.Close()
	if err := s.same(after); err != nil {
		t.Error(err)
	}
}
