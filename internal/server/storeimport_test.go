package server

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/redistest"
)

const importDone = "limits and bans of the data directory are in the store"

// countedInMemory returns a data directory of a server without a store: under the rule shared, 192.0.2.1 and
// 192.0.2.3 have used up their limit, and 192.0.2.2 is banned. 192.0.2.4 and 5 were banned and unbanned again,
// and banned, after the last snapshot.
func countedInMemory(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	before := newNode(t, "", func(c *Config) { c.Data, c.StoreTimeout = data, 0 })
	before.resp("TAKE shared 192.0.2.1 COST 4", "TAKE shared 192.0.2.3 COST 3", "BAN shared 192.0.2.2 1h", "BAN shared 192.0.2.4 1h", "ADD pages / 3")
	if err := before.save(); err != nil {
		t.Fatal(err)
	}
	before.resp("UNBAN shared 192.0.2.4", "BAN shared 192.0.2.5 1h")
	return copied(t, data)
}

// wantImported complains unless the store has what countedInMemory has counted, once.
func wantImported(t *testing.T, n *node) {
	t.Helper()
	n.wantReady(200)
	for key, want := range map[string]string{
		"192.0.2.1": "*7\r\n:0\r\n:4\r\n:0\r\n", // 4 are used
		"192.0.2.2": "*7\r\n:0\r\n",             // banned
		"192.0.2.3": "*7\r\n:1\r\n:4\r\n:0\r\n", // the last
		"192.0.2.4": "*7\r\n:1\r\n:4\r\n:3\r\n", // the first
		"192.0.2.5": "*7\r\n:0\r\n",
	} {
		if got := n.resp("PEEK shared " + key); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// TestStoreImports starts a server with a store on the data directory of one without: its limits and
// bans are in the store before the server decides. The next start on the directory imports nothing.
func TestStoreImports(t *testing.T) {
	t.Parallel()
	redis, data := redistest.Own(t), countedInMemory(t)
	after := newNode(t, storeOf(redis), func(c *Config) { c.Data = data })
	wantImported(t, after)
	if text := after.resp("SUM pages /"); !strings.HasPrefix(text, ":3\r\n") {
		t.Errorf("counters are not restored: %q", text)
	}
	eventually(t, "the log tells that the server serves", func() bool { return strings.Contains(after.log.String(), "msg=serving") })
	log := after.log.String()
	if done := strings.Index(log, importDone); done < 0 || done > strings.Index(log, "msg=serving") {
		t.Errorf("the log does not tell that all was imported before the server serves:\n%s", log)
	}
	again := newNode(t, storeOf(redis), func(c *Config) { c.Data = copied(t, data) })
	wantImported(t, again)
	if strings.Contains(again.log.String(), importDone) {
		t.Errorf("the second start imports again:\n%s", again.log)
	}
}

// TestStoreImportsOnce starts two servers on copies of a directory whose import had begun, as after a crash:
// the second finds that all was imported. Nothing is counted twice.
func TestStoreImportsOnce(t *testing.T) {
	t.Parallel()
	redis, data := redistest.Own(t), countedInMemory(t)
	rules := newNode(t, "", func(c *Config) { c.StoreTimeout = 0 }).rules
	begun, err := New(Config{RESP: "127.0.0.1:0", HTTP: Off, RulesFile: rules, RulesPoll: -1, Store: storeOf(redis), StoreTimeout: time.Minute, Data: data}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := begun.save(); err != nil {
		t.Fatal(err)
	}
	begun.close()
	for _, want := range []string{"keys=2 bans=2 imported_before=0", "keys=0 bans=2 imported_before=2"} {
		n := newNode(t, storeOf(redis), func(c *Config) { c.Data = copied(t, data) })
		wantImported(t, n)
		if !strings.Contains(n.log.String(), want) {
			t.Errorf("the log does not have %q:\n%s", want, n.log)
		}
	}
}

// TestStoreImportsTwo starts servers on the directories of two: the counts are added up.
func TestStoreImportsTwo(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	var n *node
	for range 2 {
		data := countedInMemory(t)
		n = newNode(t, storeOf(redis), func(c *Config) { c.Data = data })
		n.wantReady(200)
	}
	if got := n.resp("PEEK shared 192.0.2.3"); !strings.HasPrefix(got, "*7\r\n:0\r\n:4\r\n:0\r\n") {
		t.Errorf("after three on each of two servers, %q, want that none of four are left", got)
	}
}

// TestStoreImportsLater starts a server while Redis is away: it is not ready, keeps what the directory has, also
// over another restart, and imports when Redis is back.
func TestStoreImportsLater(t *testing.T) {
	t.Parallel()
	redis, data := redistest.Own(t), countedInMemory(t)
	redis.Kill()
	away := newNode(t, storeOf(redis), func(c *Config) { c.Data = data })
	away.wantReady(503)
	if err := away.save(); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, storeOf(redis), func(c *Config) { c.Data = copied(t, data) })
	n.wantReady(503)
	if err := redis.Run(); err != nil {
		t.Fatal(err)
	}
	wantImported(t, n)
	if log := n.log.String(); !strings.Contains(log, "are not in the store yet") || strings.Count(log, importDone+"\"") != 1 {
		t.Errorf("the log does not tell:\n%s", log)
	}
}
