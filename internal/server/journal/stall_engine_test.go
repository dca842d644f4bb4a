package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

const stalledRules = `version: 1
bans:
  - {name: flood, key: client, after: 5 hits in 1m, for: 1h}
`

// TestStalledServer puts together what a server does that follows a log while its disk stalls in a
// snapshot: the status answers, and a line of the log begins a ban.
func TestStalledServer(t *testing.T) {
	file := must.Get(rules.Parse("rules.yaml", []byte(stalledRules)))(t)
	e := must.Get(engine.New(engine.Config{Rules: file}))(t)
	defer e.Close()
	disk := journal.NewStallingDisk()
	dir, _, err := disk.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Bans().Journal(dir)
	log := filepath.Join(t.TempDir(), "access.log")
	session, flood := e.Session(), must.Get(e.Limiter().Rule("flood"))(t)
	logs := must.Get(follow.New(follow.Config{Logs: []follow.Log{{Path: log}}, Judge: func(ev *match.Event) { session.CheckLogged(ev) }}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = logs.Run(ctx) })
	defer running.Wait()
	defer cancel()

	for i := range 20_000 { // more than a block of the snapshot
		must.Do(t, flood.Take(fmt.Sprint("client ", i)).Err)
	}
	writes := 0
	disk.Stall(func(op, name string) bool {
		if op+" "+name == "write state.tmp" {
			writes++
		}
		return writes > 1 && name == "state.tmp" // after the first block
	})
	saved := make(chan error, 1)
	go func() {
		saved <- dir.WriteSnapshot(func(add func(byte, []byte) error) error {
			return logs.Save(func(records [][]byte) error {
				for _, r := range records {
					if err := add('f', r); err != nil {
						return err
					}
				}
				return e.Save(e.Now(), add)
			})
		})
	}()
	<-disk.Reached

	line := "192.0.2.1 - - [" + time.Now().UTC().Format("02/Jan/2006:15:04:05 -0700") + "] \"GET / HTTP/1.1\" 200 5\n"
	must.Do(t, os.WriteFile(log, []byte(strings.Repeat(line, 6)), 0o600))
	for end := time.Now().Add(20 * time.Second); logs.Stats()[0].Lines < 6 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if d := flood.Take("192.0.2.1"); d.Err != nil || d.Allowed {
		t.Errorf("while the disk stalls, no ban begins: %+v", d)
	}
	if n := e.Status().Bans.Held; n != 1 {
		t.Errorf("the status has %d bans", n)
	}
	disk.Resume()
	if err := <-saved; err != nil {
		t.Error(err)
	}
	if err := dir.Close(); err != nil {
		t.Error(err)
	}
}
