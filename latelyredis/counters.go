package latelyredis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/window"
)

const (
	// passEvery is how often a node tells others what it has counted, and asks what they have.
	passEvery = 100 * time.Millisecond

	// passTimeout bounds one call.
	passTimeout = time.Second

	// passEntries is how many entries are sent together, and how many are received.
	passEntries = 16

	// timeJump is by how much the time may jump in one answer, in microseconds. Answers take up to passTimeout.
	timeJump = 2_000_000

	// joinTries is how many times in a row a node asks for the counts of others and nobody has them, until it
	// begins with its own; startTries is that for a node that has just started, so that nodes with counts
	// begin first.
	joinTries, startTries = 10, 30
)

// CountersConfig configures [Counters]. Its zero value is the default.
type CountersConfig struct {
	// Prefix is the beginning of every key's name; "" means "lately:". It must not contain
	// a brace.
	Prefix string

	// Unknown, when not nil, is called with the name of a counter that only other processes
	// have. It may make the counter with that name. One goroutine calls it.
	Unknown func(name string)
}

// Counters are counters that processes share through Redis or Valkey: an add in any process
// is in the counts of all within some hundred milliseconds. Each process has all counts in
// its memory, so reads and adds need no round trip, and continue while Redis is unavailable.
//
//	counters, err := latelyredis.NewCounters(latelyredis.CountersConfig{})
//	pages, err := counters.Counter("pages", window.TableConfig{}, window.Last(time.Hour))
//	counters.Connect(latelyredis.NewConn(client))
//	defer counters.Close()
//	...
//	pages.Add("/", 1)
//	table, now := pages.Counts()
//	top, err := table.TopAt(now, 10, time.Hour)
//
// Each process counts an add once, even if calls fail. A new process receives
// the counts of another. docs/redis.md lists the effects of failures.
//
// Counters are safe for concurrent use. The zero value is not usable; call [NewCounters].
type Counters struct {
	prefix     string
	unknown    func(string)
	clock      nodeClock
	seed       maphash.Seed
	scripts    countScripts
	conn       Conn
	background sync.WaitGroup
	stop       context.CancelFunc

	mu   sync.Mutex
	all  map[string]*Counter
	open atomic.Int64 // keys that were counted and are in no entry yet

	passing  sync.Mutex // for what follows
	node     string
	entries  unsent
	complete atomic.Bool     // it has the counts of all nodes
	again    atomic.Bool     // see Refresh
	tries    int             // since it asks for them
	have     string          // the newest entry of the log that is counted
	heard    int64           // the newest time that Redis has told, in microseconds
	heardAt  int64           // when it was heard of, at the latest, by the clock of the node
	jump     int64           // by how much the time in the last answer differed from that of the node, in microseconds
	seqs     map[string]read // the newest entry of each node that is counted
	ownFrom  uint64          // the first entry of this node that was counted as it was added
	unshared atomic.Uint64
	unread   atomic.Uint64
}

// read is the newest entry of a node that is counted, and when that was.
type read struct{ seq, at uint64 }

// countScripts are the scripts of counters.
type countScripts struct{ pass, write, page *script }

// NewCounters returns Counters that count in this process only until Connect. The error names
// the bad field of c and what it must be.
func NewCounters(c CountersConfig) (*Counters, error) { return newCounters(c, source("clock")) }

func newCounters(config CountersConfig, clock string) (*Counters, error) {
	prefix, err := checkedPrefix(config.Prefix)
	if err != nil {
		return nil, err
	}
	return &Counters{
		prefix: prefix, unknown: config.Unknown, clock: newNodeClock(), seed: maphash.MakeSeed(), stop: func() {},
		scripts: countScripts{newScript(clock + source("stream") + source("counts")), newScript(source("counts_write")), newScript(source("stream") + source("counts_page"))},
		all:     make(map[string]*Counter), node: newNode(), have: noEntry, seqs: make(map[string]read), ownFrom: 1,
	}, nil
}

// Connect starts sharing through conn, see [New]. Call it once. The caller closes the Counters, and
// then the client. It does not wait for the server.
func (c *Counters) Connect(conn Conn) {
	ctx, stop := context.WithCancel(context.Background())
	c.conn, c.stop = newNumberedConn(conn), stop
	c.background.Go(func() {
		c.passAll(ctx)
		for range wait.Every(ctx, passEvery) {
			c.passAll(ctx)
		}
		c.pass(context.Background())
	})
}

// passAll passes until there is no more, or an error, after which the next tick tries again.
func (c *Counters) passAll(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		more, _ = c.pass(ctx)
	}
}

// Close sends the last adds to the other processes, if Redis answers within a second, and ends the goroutine of c. It does
// not close the client. Later adds count in this process only.
func (c *Counters) Close() {
	c.stop()
	c.background.Wait()
}

// Complete reports whether this process had the counts of the others at the last answer of Redis.
func (c *Counters) Complete() bool { return c.complete.Load() }

// Unshared returns the number of adds that were not sent to other processes, because memory was
// full while Redis did not answer. They count in this process only.
func (c *Counters) Unshared() uint64 { return c.unshared.Load() }

// Unread returns the number of entries that were skipped, because a newer version wrote them in
// another format or they were damaged. Their adds are missing in the counts of this process.
func (c *Counters) Unread() uint64 { return c.unread.Load() }

// Counter returns a new counter with that name, of at most 1,024 bytes, and replaces an earlier one. config and windows are as
// for [window.NewTable]. Each process counts in its own memory and windows, which may differ from those of others.
func (c *Counters) Counter(name string, config window.TableConfig, windows ...window.Window) (*Counter, error) {
	if len(name) > maxCounterName {
		return nil, fmt.Errorf("latelyredis: counter name: %d bytes: must be at most %d", len(name), maxCounterName)
	}
	x := &Counter{of: c, name: name, config: config, windows: slices.Clone(windows)}
	table, err := x.newTable()
	if err != nil {
		return nil, err
	}
	x.table.Store(table)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[name] = x
	return x, nil
}

// Refresh loads the counts of another process again. Use it if Counter is called after Connect for
// counters that other processes already have.
func (c *Counters) Refresh() { c.again.Store(true) }

// Remove ends the sharing of x. Adds that were not sent yet are not sent.
func (c *Counters) Remove(x *Counter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[x.name] == x {
		delete(c.all, x.name)
	}
}

// list returns the counters in the order of their names.
func (c *Counters) list() (all []*Counter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		all = append(all, c.all[name])
	}
	return all
}

// named returns the counter of that name, or nil. Unknown may make it.
func (c *Counters) named(name string) *Counter {
	find := func() *Counter {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.all[name]
	}
	x := find()
	if x == nil && c.unknown != nil {
		c.unknown(name)
		x = find()
	}
	return x
}

// Results of the script counts.
const (
	passGoesOn = iota // entries follow
	passAlone         // nobody has counts: it begins with its own
	passReady         // it may read the state
	passWait          // a node is to write the state
	passMissed        // entries that it has not read are gone: it needs the state
	passBytes  = uint56 + 1 + 1 + 8 + 8
)

// keys returns the names of the Redis keys.
func (c *Counters) keys(names ...string) (keys []string) {
	for _, name := range names {
		keys = append(keys, c.prefix+"{counters}:"+name)
	}
	return keys
}

// pass sends what was counted, and counts what others have sent. It reports whether there is more.
func (c *Counters) pass(ctx context.Context) (more bool, err error) {
	c.passing.Lock()
	defer c.passing.Unlock()
	c.collect()
	if c.again.Swap(false) && c.complete.Swap(false) {
		c.tries = 0
	}
	has, sends := "0", 0
	if c.complete.Load() {
		has, sends = "1", min(len(c.entries.list), passEntries)
	} else if c.tries >= startTries || c.tries >= joinTries && c.have != noEntry {
		has = "2"
	}
	sent, least := c.clock.now(), int64(0)
	if c.heard > 0 {
		least = c.heard + sent - c.heardAt
	}
	args := []string{c.node, has, c.have, strconv.FormatInt(least, 10)}
	for _, e := range c.entries.list[:sends] {
		args = append(args, e.text)
	}
	data, err := c.run(ctx, c.scripts.pass, c.keys("log", "state", "nodes", "time", "wanted"), args...)
	if err == nil && len(data) < passBytes {
		err = errAnswer
	}
	if err != nil {
		return false, err
	}
	if c.doubts(readUint56(data)) {
		return false, errAnswer
	}
	c.heard, c.heardAt = readUint56(data), c.clock.now()
	c.clock.at(c.heard, sent, c.heardAt)
	what, flag := data[uint56], data[uint56+1]
	switch what {
	case passAlone, passGoesOn:
		c.complete.Store(true)
		c.entries.drop(sends)
		return c.count(ctx, data)
	case passReady:
		err := c.readState(ctx)
		return err == nil, err
	case passWait:
		if c.tries++; flag == 1 {
			c.tries = 0 // one of the others writes it
		}
	case passMissed:
		c.complete.Store(false)
		c.tries = 0
	}
	return false, nil
}

// count counts the entries in the answer to a pass, and writes the state if the answer asks for it.
func (c *Counters) count(ctx context.Context, data string) (more bool, err error) {
	entries, err := parts(data[passBytes:])
	if err != nil {
		return false, err
	}
	for _, text := range entries {
		c.countEntry(text)
	}
	if c.have = entryID(data[uint56+2:]); data[uint56+1] == 1 {
		err = c.writeState(ctx)
	}
	return len(entries) == passEntries || len(c.entries.list) > 0, err
}

// doubts reports whether the time in an answer may be damaged: it differs from what the node knows, and that in the answer
// before did not differ as much. A damaged time would become the time of all nodes for good, as none of them lets it go back.
func (c *Counters) doubts(told int64) bool {
	jump := told - c.clock.server()
	doubted := max(jump, -jump) > timeJump && max(jump-c.jump, c.jump-jump) > timeJump
	c.jump = jump
	return doubted
}

// noEntry is before all entries.
const noEntry = "0-0"

// entryID reads the number of an entry.
func entryID(data string) string {
	b := []byte(data[:16])
	return fmt.Sprintf("%d-%d", binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]))
}

// isEntryID reports whether text is the number of an entry. With any other, Redis would refuse each later pass.
func isEntryID(text string) bool {
	ms, n, _ := strings.Cut(text, "-")
	_, err := strconv.ParseUint(ms, 10, 64)
	_, err2 := strconv.ParseUint(n, 10, 64)
	return err == nil && err2 == nil
}

// run runs a script, which is sent in full if the server does not know it.
func (c *Counters) run(ctx context.Context, s *script, keys []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	command := command{script: s, keys: keys, args: args}
	reply := c.conn.Run(ctx, []Command{command.sent()})[0]
	if codeIs(reply.Err, "NOSCRIPT") {
		command.full = true
		reply = c.conn.Run(ctx, []Command{command.sent()})[0]
	}
	return reply.Data, reply.Err
}

// errOver is the error of a state that another node writes by now.
var errOver = errors.New("latelyredis: another node writes the state of counters")

// errCountsForm is the error of a state in another form. The node goes on by itself.
var errCountsForm = errors.New("latelyredis: a newer version of this program has written the state of counters: upgrade this one")
