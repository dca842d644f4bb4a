//go:build linux

package storm

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lately-go/lately/internal/resp"
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
		return // the process has ended
	}
	during()
	_ = unix.Prlimit(s.pid(), resource, &before, nil)
}

// The connections of a flood, and the arguments that each sends of a command that it does not end: together much
// more than a server may use.
const (
	flooders   = 1000
	floodParts = 16
	floodPart  = 60_000
)

// flood opens many connections that each send most of a large command, once.
func (r *run) flood(ctx context.Context, random *rand.Rand) {
	if !wait(ctx, time.Duration(random.IntN(1000))*time.Millisecond) {
		return
	}
	s := r.servers[random.IntN(len(r.servers))]
	m := r.history.begin(s.index, flooded, "")
	defer r.history.end(m)
	argument := resp.AppendBulk(nil, make([]byte, floodPart))
	part := append(resp.AppendArray(nil, floodParts+1), bytes.Repeat(argument, floodParts)...)
	for range flooders {
		c, err := s.dial()
		if err != nil {
			break
		}
		defer c.Close()
		c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.Write(part) // the server may close the connection
	}
	time.Sleep(500 * time.Millisecond) // the server reads
	s.watchMemory()
}

// diskIsTrue judges that while the disk is full no ban by hand is acknowledged, and that the
// server is not ready after one failed. With a store no ban is written to the disk.
func (r *run) diskIsTrue() {
	h := r.history
	if r.Config.Store {
		return
	}
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
			case c.Answered && c.Changed:
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
