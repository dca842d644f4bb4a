//go:build linux

package storm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// fillDisk makes all writes of a process to files fail for a time, as on a full disk.
func (r *run) fillDisk(s *server, d time.Duration) {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	r.limited(s, unix.RLIMIT_FSIZE, 0, fullDisk, "", func() { time.Sleep(d) })
}

// useDescriptors leaves a process few file descriptors for a time, and takes them by connections.
func (r *run) useDescriptors(s *server, random *rand.Rand, d time.Duration) {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	open, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(s.pid()), "fd"))
	if err != nil {
		return
	}
	most := uint64(len(open) + random.IntN(10))
	r.limited(s, unix.RLIMIT_NOFILE, most, fewDescriptors, fmt.Sprint(most), func() {
		for range 30 {
			if c, err := s.dialRaw(); err == nil {
				defer c.Close()
			}
		}
		time.Sleep(d)
	})
}

// limited does something while a process has a limit of a resource.
func (r *run) limited(s *server, resource int, most uint64, kind markKind, note string, during func()) {
	var before unix.Rlimit
	if err := unix.Prlimit(s.pid(), resource, nil, &before); err != nil {
		return
	}
	m := r.history.begin(s.index, kind, note)
	defer r.history.end(m)
	if err := unix.Prlimit(s.pid(), resource, &unix.Rlimit{Cur: most, Max: before.Max}, nil); err != nil {
		r.fail("storm", err.Error(), nil)
		return
	}
	during()
	if err := unix.Prlimit(s.pid(), resource, &before, nil); err != nil {
		r.fail("storm", err.Error(), nil)
	}
}

// diskIsTrue judges that while the disk is full no ban by hand is acknowledged, and that the
// server is not ready after one failed.
func (r *run) diskIsTrue() {
	h := r.history
	for _, m := range h.marks {
		if m.Kind != fullDisk {
			continue
		}
		failed := time.Duration(0)
		for i := range h.calls {
			c := &h.calls[i]
			if c.Start < m.From || c.End > m.To || c.Server != m.Server {
				continue
			}
			switch {
			case c.Answered && c.Changed && !r.Config.Store:
				r.fail("disk", fmt.Sprintf("acknowledged, though nothing can be written: %v", c), func(o *Call) bool { return o.Rule == c.Rule && o.Key == c.Key })
				return
			case c.Verb == verbBan && !c.Answered && failed == 0:
				failed = c.End
			case c.Verb == "/readyz" && c.Allowed && failed > 0 && c.Start > failed:
				r.fail("disk", fmt.Sprintf("ready, though a ban by hand could not be written at %s: %v", millis(failed), c), nil)
				return
			}
		}
	}
}
