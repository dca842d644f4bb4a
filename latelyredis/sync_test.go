package latelyredis_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A node is a store with the bans that its OnBan received.
type node struct {
	*latelyredis.Store
	rules *ratelimit.Set

	mu   sync.Mutex
	told []string // the first value of each key
}

func newNode(t testing.TB, client rueidis.Client, rules *ratelimit.Set, config latelyredis.Config) *node {
	t.Helper()
	n := &node{rules: rules}
	config.OnBan = func(b ratelimit.BanRecord) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.told = append(n.told, b.Key[0])
	}
	n.Store = newStore(t, client, rules, config)
	return n
}

// wantTold fails the test unless n received this many bans; the last may be on its way.
func (n *node) wantTold(t testing.TB, want int) {
	t.Helper()
	told := func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.told)
	}
	eventually(t, "each node is told of each ban", func() bool { return told() >= want })
	if n.mu.Lock(); len(n.told) != want {
		t.Errorf("a node received %q, want %d", n.told, want)
	}
	n.mu.Unlock()
}

// banned reports whether an event of the key is refused by a ban, and ends the test
// if it is not decided.
func (n *node) banned(t testing.TB, rule int, key string) bool {
	t.Helper()
	return peek(t, n.Store, n.rules, about(rule, key)).Banned
}

// eventually waits until ok, which must be soon.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// A member is a store, or a node.
type member interface {
	Nodes() int
	Read() bool
	Copied(rule, key string) bool
}

// allKnown waits until each node knows of all and has read the list of bans.
func allKnown[L member](t testing.TB, nodes []L) {
	t.Helper()
	for _, n := range nodes {
		eventually(t, "each node knows of the others and has read the list", func() bool { return n.Nodes() == len(nodes) && n.Read() })
	}
}

// allCopied waits until each node has a copy of these bans.
func allCopied[L member](t testing.TB, nodes []L, rule string, keys ...string) {
	t.Helper()
	for _, n := range nodes {
		for _, key := range keys {
			eventually(t, "each node has a copy of the ban of "+key, func() bool { return n.Copied(rule, key) })
		}
	}
}

// TestCopies begins a ban on one of three nodes, and adds one by hand. Each receives them once, and enforces them while the
// server is stopped; a node that starts later enforces them without a call of OnBan.
func TestCopies(t *testing.T) {
	s, config := own(t), prefixed()
	rules := set(t, banning("flood", match.MustKey("path"), 0), limited("limits", match.MustKey("host"), ratelimit.Sliding, 10))
	nodes := []*node{newNode(t, s.client(t), rules, config), newNode(t, s.client(t), rules, config), newNode(t, s.client(t), rules, config)}
	allKnown(t, nodes)
	ask(t, nodes[0].Store, rules, about(0, "flooder"))
	ban(t, nodes[1].Store, "limits", "by hand")
	late := newNode(t, s.client(t), rules, config)
	nodes = append(nodes, late)
	allCopied(t, nodes, "flood", "flooder")
	allCopied(t, nodes, "limits", "by hand")
	s.Process().Signal(syscall.SIGSTOP)
	for i, n := range nodes {
		if !n.banned(t, 0, "flooder") || !n.banned(t, 1, "by hand") {
			t.Errorf("node %d does not enforce the bans while the server is stopped", i)
		}
	}
	if got := known(t, nodes[0].Store); len(got) != 2 {
		t.Errorf("%+v are listed while the server is stopped, want both bans", got)
	}
	s.Process().Signal(syscall.SIGCONT)
	unban(t, nodes[2].Store, "flood", "flooder")
	for _, n := range nodes {
		eventually(t, "the ban has ended on each node", func() bool { return !n.banned(t, 0, "flooder") })
	}
	for i, want := range []int{2, 1, 2, 0} { // node 1 does not receive its own ban by hand
		nodes[i].wantTold(t, want)
	}
	late.wantTold(t, 0)
}

// TestReady calls Ready before a store has read the bans, while the server is away, and when it is back.
func TestReady(t *testing.T) {
	s, rules := own(t), anyRules(t)
	now := clockAt(time.Now())
	store := knowing(t, s.client(t), rules, prefixed(), now, now)
	if err := store.Ready(); err == nil || !strings.Contains(err.Error(), "bans was not read") {
		t.Errorf("Ready returns %v before the bans were read", err)
	}
	sync := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return store.Sync(ctx)
	}
	if err := sync(); err != nil || store.Ready() != nil {
		t.Fatalf("%v; Ready returns %v", err, store.Ready())
	}
	s.Kill()
	for range 20 {
		if r := take(t.Context(), store, rules, "k"); r.Err == nil {
			t.Fatal("a server that was killed answers")
		}
	}
	if err := store.Ready(); !errors.Is(err, latelyredis.ErrAway) {
		t.Errorf("Ready returns %v while the server is away", err)
	}
	must.Do(t, s.Run())
	if err := sync(); err != nil || store.Ready() != nil {
		t.Errorf("%v; Ready returns %v when the server is back", err, store.Ready())
	}
	if r := take(t.Context(), store, rules, "k"); r.Err != nil {
		t.Errorf("%v when the store is ready", r.Err)
	}
	s.Do(t, "SET", "wrong:{bans}:nodes", "")
	wrong := newStore(t, s.client(t), rules, latelyredis.Config{Prefix: "wrong:"})
	eventually(t, "it says why the bans were not read", func() bool { return strings.Contains(wrong.Ready().Error(), "WRONGTYPE") })
}

// TestReasserted deletes all keys, as a failover to a replica without them does: the nodes
// write their bans again, with which a node that starts then decides.
func TestReasserted(t *testing.T) {
	s, config := own(t), prefixed()
	rules := set(t, banning("flood", match.MustKey("path"), 0))
	nodes := []*node{newNode(t, s.client(t), rules, config), newNode(t, s.client(t), rules, config)}
	allKnown(t, nodes)
	ask(t, nodes[0].Store, rules, about(0, "a"))
	ask(t, nodes[1].Store, rules, about(0, "b"))
	allCopied(t, nodes, "flood", "a", "b")
	client := s.client(t)
	do(t, client, "FLUSHALL")
	late := quiet(t, client, rules, config)
	banned := func(key string) bool { return peek(t, late, rules, about(0, key)).Banned }
	eventually(t, "the bans are in their records again", func() bool { return banned("a") && banned("b") })
	if n := len(listed(t, late)); n != 2 {
		t.Errorf("%d bans are listed, want 2", n)
	}
	for _, n := range nodes {
		n.wantTold(t, 2)
	}
}

// TestReassertedInPart loses all keys, and has Redis accept the list of bans before it accepts their records, as when a node
// loses its connection in between: it writes the records later.
func TestReassertedInPart(t *testing.T) {
	s, config := own(t), prefixed()
	rules := set(t, banning("flood", match.MustKey("path"), 0))
	node := quiet(t, s.client(t), rules, config)
	ask(t, node, rules, about(0, "a"))
	listed(t, node)
	s.Do(t, "FLUSHALL")
	s.Do(t, "ACL", "SETUSER", "default", "resetkeys", "~*{bans}*")
	if err := node.Sync(t.Context()); err == nil {
		t.Fatal("the record was written without the right to it")
	}
	s.Do(t, "ACL", "SETUSER", "default", "allkeys")
	late := quiet(t, s.client(t), rules, config)
	eventually(t, "the ban is in its record", func() bool {
		must.Do(t, node.Sync(t.Context()))
		return peek(t, late, rules, about(0, "a")).Banned
	})
}

// TestReassertedBesideNewerForm loses all keys, after which a newer version has written the record of a banned key: the node
// cannot write its ban, but is ready, and does all else.
func TestReassertedBesideNewerForm(t *testing.T) {
	s, config := own(t), prefixed()
	rules := set(t, banning("flood", match.MustKey("path"), 0))
	node := quiet(t, s.client(t), rules, config)
	ask(t, node, rules, about(0, "a"))
	listed(t, node)
	record := strings.Trim(do(t, s.client(t), "KEYS", config.Prefix+"{path=*"), "[]")
	s.Do(t, "FLUSHALL")
	s.Do(t, "SET", record, "\xff another form")
	if err := node.Sync(t.Context()); err == nil {
		t.Fatalf("the record %q was written", record)
	}
	for range 3 {
		must.Do(t, node.Sync(t.Context()))
	}
}

// TestEndedAfterLoss loses the newest change of the list, as a failover to a replica without it does, and ends a ban: a node that
// writes its bans again does not bring that one back.
func TestEndedAfterLoss(t *testing.T) {
	config := prefixed()
	rules := set(t, banning("flood", match.MustKey("path"), 0))
	client := redis(t).client(t)
	nodes := []*latelyredis.Store{quiet(t, client, rules, config), quiet(t, client, rules, config)}
	ask(t, nodes[0], rules, about(0, "ended"), about(0, "goes on"))
	for _, n := range nodes {
		if got := listed(t, n); len(got) != 2 {
			t.Fatalf("%+v are listed, want two bans", got)
		}
	}
	changes := config.Prefix + "{bans}:changes"
	newest, err := client.Do(t.Context(), client.B().Xrevrange().Key(changes).End("+").Start("-").Count(1).Build()).AsXRange()
	if err != nil || len(newest) != 1 {
		t.Fatal(newest, err)
	}
	do(t, client, "XDEL", changes, newest[0].ID)
	unban(t, nodes[0], "flood", "ended")
	if got := listed(t, nodes[1]); len(got) != 1 || nodes[1].Copied("flood", "ended") {
		t.Errorf("%+v are listed, want the one that goes on", got)
	}
	if peek(t, nodes[0], rules, about(0, "ended")).Banned {
		t.Error("the ban that was ended holds")
	}
}

// TestTrimmed has a node miss more changes than the stream keeps: it reads the list, and ends
// the bans that are not in it.
func TestTrimmed(t *testing.T) {
	config := prefixed()
	rules := set(t, banning("flood", match.MustKey("path"), 0))
	client := redis(t).client(t)
	first := quiet(t, client, rules, config)
	second := quiet(t, client, rules, config)
	ask(t, first, rules, about(0, "ended"), about(0, "goes on"))
	ask(t, first, rules, about(0, "goes on"))
	listed(t, second)
	unban(t, first, "flood", "ended")
	ask(t, first, rules, about(0, "new"))
	do(t, client, "XTRIM", config.Prefix+"{bans}:changes", "MAXLEN", "1")
	if got := listed(t, second); len(got) != 2 || second.Copied("flood", "ended") {
		t.Errorf("%+v are listed, want those that go on and are new", got)
	}
}

// TestClose leaves no goroutine.
func TestClose(t *testing.T) {
	rules := anyRules(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	client := redis(t).client(t)
	defer client.Close() // which ends the goroutines of its connections
	for range 3 {
		store := must.Get(latelyredis.New(latelyredis.NewConn(client), rules, prefixed()))(t)
		store.Close()
		store.Close()
		if r := take(context.Background(), store, rules, "k"); r.Err != nil {
			t.Errorf("after Close: %v", r.Err)
		}
	}
}
