package latelyredis_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// wantCode fails the test unless err is an answer of the server with that code, and with what to do.
func wantCode(t testing.TB, err error, code, advice string) {
	t.Helper()
	answer, ok := errors.AsType[*latelyredis.ServerError](err)
	if !ok || answer.Code != code || !strings.Contains(err.Error(), advice) {
		t.Errorf("%v, want a ServerError with the code %s and %q", err, code, advice)
	}
}

// answers reports whether a server answers PING with an error of that code.
func answers(c rueidis.Client, code string) bool {
	err := c.Do(context.Background(), c.B().Ping().Build()).Error()
	return err != nil && strings.HasPrefix(err.Error(), code)
}

// TestStates brings a server into states in which it runs no scripts for a while: their errors
// reach the caller, nothing is counted, and afterwards the store decides again.
func TestStates(t *testing.T) {
	t.Parallel()
	s := own(t, "--enable-debug-command", "local", "--busy-reply-threshold", "1")
	client, admin := s.client(t), s.client(t)
	rules := anyRules(t)
	// Without questions for changes: one that is not answered in time takes its connection with it.
	store := quiet(t, client, rules, prefixed())
	remaining := uint64(10)
	decided := func() {
		t.Helper()
		remaining--
		if r := take(context.Background(), store, rules, "k"); r.Err != nil || r.Subjects[0].Outcome.Remaining != remaining {
			t.Fatalf("%v, %+v, want %d left", r.Err, r.Subjects[0].Outcome, remaining)
		}
	}
	fails := func(code, advice string) {
		t.Helper()
		wantCode(t, take(context.Background(), store, rules, "k").Err, code, advice)
	}
	// meanwhile runs a command that takes long, and f when the server answers with the code.
	meanwhile := func(code string, command []string, f func()) {
		t.Helper()
		var long sync.WaitGroup
		defer long.Wait()
		blocked := s.client(t)
		long.Go(func() { blocked.Do(context.Background(), blocked.B().Arbitrary(command...).Build()) })
		eventually(t, "the server answers "+code, func() bool { return answers(admin, code) })
		f()
	}
	decided()
	meanwhile("BUSY", []string{"EVAL", "while true do end", "0"}, func() {
		fails("BUSY", "a script of someone else")
		do(t, admin, "SCRIPT", "KILL")
	})
	eventually(t, "the script has ended", func() bool { return !answers(admin, "BUSY") })
	decided()

	do(t, admin, "DEBUG", "POPULATE", "100000")
	do(t, admin, "CONFIG", "SET", "key-load-delay", "1000", "loading-process-events-interval-bytes", "1024")
	meanwhile("LOADING", []string{"DEBUG", "RELOAD"}, func() {
		fails("LOADING", "loading its data")
		do(t, admin, "CONFIG", "SET", "key-load-delay", "0")
	})
	eventually(t, "the data is loaded", func() bool { return !answers(admin, "LOADING") })
	decided()

	// A directory stands where the snapshot has to go.
	must.Do(t, os.Remove(filepath.Join(s.Dir(), "dump.rdb")))
	must.Do(t, os.Mkdir(filepath.Join(s.Dir(), "dump.rdb"), 0o700))
	do(t, admin, "CONFIG", "SET", "save", "3600 1000000")
	do(t, admin, "BGSAVE")
	eventually(t, "the snapshot has failed", func() bool {
		return strings.Contains(do(t, admin, "INFO", "persistence"), "rdb_last_bgsave_status:err")
	})
	fails("MISCONF", "cannot write its snapshot")
	do(t, admin, "CONFIG", "SET", "save", "")
	decided()
}

// TestPasswords has the server require a password from clients that have none, or another, when they connect again.
func TestPasswords(t *testing.T) {
	s := own(t)
	rules := anyRules(t)
	clients := map[string]rueidis.Client{
		"NOAUTH":    s.client(t),
		"WRONGPASS": s.client(t, func(o *rueidis.ClientOption) { o.Password = "old" }),
	}
	admin := s.client(t)
	do(t, admin, "CONFIG", "SET", "requirepass", "new")
	for code, client := range clients {
		store := open(t, client, rules)
		do(t, admin, "CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "YES")
		var err error
		eventually(t, "the client connects again", func() bool {
			err = take(context.Background(), store, rules, "k").Err
			_, ok := errors.AsType[*latelyredis.ServerError](err)
			return ok
		})
		wantCode(t, err, code, "password")
	}
}

// TestMissingScripts has the server lose all scripts again and again under load: each decision is made, and exactly the
// limit is allowed.
func TestMissingScripts(t *testing.T) {
	const limit, goroutines = 400, 4
	s := own(t)
	rules := set(t, lasting(time.Hour, limited("one", match.MustKey("path"), ratelimit.Sliding, limit)), lasting(time.Hour, limited("other", match.MustKey("path"), ratelimit.Exact, limit)))
	config := prefixed()
	floods := []*flood{newFlood(rules, []int{0}, limit/goroutines+1, "one"), newFlood(rules, []int{0, 1}, limit/goroutines+1, "two")}
	var all sync.WaitGroup
	for range 2 {
		store := newStore(t, s.client(t), rules, config)
		for range goroutines / 2 {
			for _, f := range floods {
				all.Go(func() { f.run(t, store, nil) })
			}
		}
	}
	decided := make(chan struct{})
	go func() {
		defer close(decided)
		all.Wait()
	}()
	admin, flushes := s.client(t), 0
	for ended := false; !ended; flushes++ {
		select {
		case <-decided:
			ended = true
		default:
			do(t, admin, "SCRIPT", "FLUSH")
		}
	}
	for _, f := range floods {
		for key, n := range f.allowed {
			if n.Load() != limit {
				t.Errorf("%s: %d allowed, want %d, with %d flushes", key, n.Load(), limit, flushes)
			}
		}
	}
}

// TestAllAgain has a server that has lost the scripts, whose clock was set back, and whose day of the calendar differs from
// that of the store: all of them are sent again.
func TestAllAgain(t *testing.T) {
	client := own(t).client(t)
	rules := set(t, limited("daily", match.MustKey("path"), ratelimit.Calendar, 10))
	now := clockAt(time.Now().AddDate(0, 0, 10))
	store := storeAt(t, client, rules, prefixed(), now)
	for i := range 3 {
		if r := take(context.Background(), store, rules, "k"); r.Err != nil || r.Subjects[0].Outcome.Refused {
			t.Fatalf("%v, %+v on day %d", r.Err, r.Subjects[0].Outcome, 10-2*i)
		}
		do(t, client, "SCRIPT", "FLUSH")
		now.Add(-48 * time.Hour.Microseconds())
	}
}

// testOneNode has a client without support for clusters talk to one node of one: keys of other nodes are answered with an
// error.
func testOneNode(t *testing.T, c *redistest.Cluster) {
	rules := anyRules(t)
	owner, slot := c.Owner(t, "{path=k}")
	store := func(node int) *latelyredis.Store {
		s := quiet(t, c.Nodes[node].Client(t), rules, prefixed())
		return s
	}
	other := (owner + 1) % 3
	wantCode(t, take(context.Background(), store(other), rules, "k").Err, "MOVED", "use a client for clusters")
	move := c.Begin(t, slot, owner, other)
	wantCode(t, take(context.Background(), store(owner), rules, "k").Err, "ASK", "use a client for clusters")
	move.End(t)
	owner = other
	do(t, c.Nodes[owner].Client(t), "CLUSTER", "DELSLOTS", move.Slot)
	wantCode(t, take(context.Background(), store(owner), rules, "k").Err, "CLUSTERDOWN", "does not serve this slot")
	do(t, c.Nodes[owner].Client(t), "CLUSTER", "ADDSLOTS", move.Slot)
}
