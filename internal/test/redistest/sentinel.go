package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// masterSet is the name of the primary in Sentinel.
const masterSet = "primary"

// A Watched is a primary with a replica, and a Sentinel that watches both. Sentinel fails over on command: how soon it
// notices by itself would depend on the machine.
type Watched struct {
	Primary, Replica, Sentinel *Server
}

// NewWatched starts the servers for one test, which end with it.
func NewWatched(t testing.TB) *Watched {
	t.Helper()
	data := []string{"--enable-debug-command", "local", "--repl-diskless-sync-delay", "0"}
	w := &Watched{Primary: listening(t, func(string) []string { return data })}
	host, port, _ := strings.Cut(w.Primary.Addr, ":")
	w.Replica = listening(t, func(string) []string { return append([]string{"--replicaof", host, port}, data...) })
	wantReplica(t, w.Replica)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	config := fmt.Sprintf("sentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 60000\n", masterSet, host, port, masterSet)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Sentinel = listening(t, func(string) []string { return []string{"--sentinel"} }, file)
	client := w.Sentinel.Client(t)
	eventually(t, "Sentinel knows the replica", func() bool {
		replicas := Do(t, client, "SENTINEL", "REPLICAS", masterSet)
		return strings.Contains(replicas, w.Replica.Addr) && strings.Contains(replicas, "master-link-status:ok")
	})
	return w
}

// wantReplica waits until a server has all that its primary has.
func wantReplica(t testing.TB, s *Server) {
	t.Helper()
	client := s.Client(t)
	eventually(t, "the replica has the data of its primary", func() bool {
		// A server that becomes a replica closes its connections.
		info, _ := client.Do(context.Background(), client.B().Info().Section("replication").Build()).ToString()
		return strings.Contains(info, "master_link_status:up")
	})
}

// Client returns a client that finds the primary through Sentinel, and is closed when the test ends.
func (w *Watched) Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	o := rueidis.ClientOption{InitAddress: []string{w.Sentinel.Addr}}
	o.Sentinel.MasterSet = masterSet
	return newClient(t, o, change...)
}

// URL returns the URL of the store for the server.
func (w *Watched) URL() string { return "redis://" + w.Sentinel.Addr + "?master_set=" + masterSet }

// Cut waits until the replica has all earlier writes, and ends replication: later writes are lost by Fail.
func (w *Watched) Cut(t testing.TB) {
	t.Helper()
	client := w.Primary.Client(t)
	Do(t, client, "SET", "written before the cut", "1", "PX", "1")
	if n := Do(t, client, "WAIT", "1", "60000"); n != "1" {
		t.Fatalf("%s replicas have what was written, want 1", n)
	}
	// The replica has to begin again, which its primary puts off.
	Do(t, client, "CONFIG", "SET", "repl-diskless-sync-delay", "3600")
	Do(t, client, "DEBUG", "CHANGE-REPL-ID")
	Do(t, client, "CLIENT", "KILL", "TYPE", "REPLICA")
}

// Fail kills the primary, and has Sentinel make the replica the primary.
func (w *Watched) Fail(t testing.TB) {
	t.Helper()
	w.Primary.Kill()
	client := w.Sentinel.Client(t)
	want := "[" + strings.Replace(w.Replica.Addr, ":", " ", 1) + "]"
	eventually(t, "Sentinel has failed over", func() bool {
		// It answers with an error while it does, and may find the replica not ready at first.
		client.Do(context.Background(), client.B().Arbitrary("SENTINEL", "FAILOVER", masterSet).Build())
		return Do(t, client, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterSet) == want
	})
	w.Primary, w.Replica = w.Replica, w.Primary
}

// Return starts the server again that Fail has killed, empty, and waits until Sentinel has
// made it a replica.
func (w *Watched) Return(t testing.TB) {
	t.Helper()
	// By default, Sentinel takes ten seconds to see that it is a primary.
	Do(t, w.Sentinel.Client(t), "SENTINEL", "DEBUG", "INFO-PERIOD", "100", "PUBLISH-PERIOD", "100")
	if err := w.Replica.Run(); err != nil {
		t.Fatal(err)
	}
	wantReplica(t, w.Replica)
}
