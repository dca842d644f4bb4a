package server

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

// On a full disk, all bans that rules begin hold, and /readyz reports that there is no space. When there is space again,
// they are written, including those that the journal could not hold in memory.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("SKIP a full disk: there is no right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c := deployed(t)
	rules := "version: 1\nbans: [{name: flood, key: user, after: 1 hits in 1m, for: 1h}]\n"
	must.Do(t, os.WriteFile(c.RulesFiles[0], []byte(rules), 0o600))
	c.Data = filepath.Join(disk, "data")
	var log safeBuffer
	s, url := startedWith(t, c, slog.New(slog.NewTextHandler(&log, nil)))
	stuff := filepath.Join(disk, "stuff")
	_ = os.WriteFile(stuff, make([]byte, 8<<20), 0o600) // until the disk is full
	const many = 20_000                                 // of some 1,000 bytes each: more than the journal keeps waiting
	pad := strings.Repeat("x", 900)
	caller := s.engine.Session()
	for i := range many {
		for range 2 {
			ev := caller.Event()
			ev.SetNamedString("user", fmt.Sprint(pad, i))
			must.Get(caller.Check(ev, 1, engine.Terms{}))(t)
		}
	}
	eventually(t, "/readyz says why not", func() bool {
		code, text := got(t, url+"/readyz")
		return code == 503 && strings.Contains(text, "no space left on device") && strings.Contains(text, "bans that are not on disk: ")
	})
	must.Do(t, os.Remove(stuff))
	must.Do(t, syscall.Mount("none", disk, "tmpfs", syscall.MS_REMOUNT, "size=256m"))
	eventually(t, "/readyz says yes", func() bool { code, _ := got(t, url+"/readyz"); return code == 200 })
	eventually(t, "the log says that a snapshot has what the journal had not", func() bool {
		return strings.Contains(log.String(), "the snapshot has them now")
	})
	c.Data = copied(t, c.Data)
	again, _ := started(t, c)
	held := 0
	for r, err := range again.engine.Bans().All() {
		if err == nil && time.Until(r.Until) > 50*time.Minute {
			held++
		}
	}
	if held != many {
		t.Errorf("%d of %d bans have survived", held, many)
	}
}
