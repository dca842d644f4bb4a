package latelyredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/ratelimit"
)

type (
	request    = store.Request[*ratelimit.Set]
	subject    = store.Subject[*ratelimit.Set]
	outcome    = store.Outcome[*ratelimit.Set]
	settlement = store.Settlement[*ratelimit.Set]
	adjustment = store.Adjustment[*ratelimit.Set]
)

// Config configures a [Store]. Its zero value is the default.
type Config struct {
	// Prefix is the beginning of every key's name; "" means "lately:". Stores with
	// different prefixes share nothing. It must not contain a brace.
	Prefix string

	// Batched makes a node allow events without a round trip, and report them to Redis some
	// milliseconds later. Redis still decides near a limit, for keys without recent events, and
	// under rules with LeakyBucket, InFlight or a ban after hits. All nodes together allow at most
	// an eighth of a limit more than without Batched.
	Batched bool

	// Nodes is the minimum number of nodes for the share of each limit that a node enforces while
	// Redis is unreachable. A node that has just started, or started while Redis was unreachable,
	// has not counted the others yet. 0 means 1.
	Nodes int

	// OnBan, when not nil, is called once on each node for each ban that a rule begins on any node,
	// each extension of a ban by a second (Ban.Extend), and each ban that is added by hand on
	// another node. Bans that began before the node started are omitted.
	//
	// On the node that began the ban, the deciding goroutine calls it before it returns the decision; the other nodes call it
	// within a second. It may call the Store.
	OnBan func(ratelimit.BanRecord)

	// OnUnban, when not nil, is called within a second for each ban that is ended by hand on another node. It may call the Store.
	OnUnban func(rule string, key []string)
}

// A Store keeps the counts of a rule set in Redis or Valkey, so that all processes with the
// same rules share their limits. See the documentation of the package for its guarantees.
//
// A Store has a copy of the bans of all nodes, which a goroutine updates every 250 ms
// until Close. An event of a key with a ban in the copy is refused without a round trip. Its RetryAfter is
// the time until the ban ends; limits may refuse for longer.
//
// A Store is safe for concurrent use. Its zero value is not usable; call [New].
type Store struct {
	conn   Conn
	prefix string
	script string // how scripts take the time
	layout atomic.Pointer[layout]
	mirror *mirror
	onBan  func(ratelimit.BanRecord)

	onUnban func(rule string, key []string)

	crossed    atomic.Bool // the server is of a cluster, which the client does not know
	copied     bool        // decisions use the copy of the list of bans, and what was refused
	breakers   breakers
	background sync.WaitGroup
	stop       context.CancelFunc
	node       string
	nodes      atomic.Int64
	failed     atomic.Pointer[error] // why it was not brought up to date when that was tried last, or nil
	synced     atomic.Int64          // when it last was, after breakers.began, or 0
	unlisted   atomic.Bool           // a ban of the copy may not be in it

	least    int64 // Config.Nodes
	refusals refusals
	batched  bool
	closed   atomic.Bool // nothing is allowed without a round trip any more
	merges   merges

	syncing   sync.Mutex
	have      string   // the newest change of the list that the copy has; guarded by syncing
	news      []news   // what was changed in the copy; guarded by syncing
	unwritten sync.Map // of names of bans that were lost, and are in the list, but not in their records
}

var _ store.Store[*ratelimit.Set, ratelimit.BanRecord] = (*Store)(nil)

// New returns a Store that keeps the counts of set in Redis. conn is from [NewConn], or for another
// client library, such as go-redis with the module adapters/goredis. The caller closes the Store,
// and then the client.
//
// New does not wait for the server. The error names the bad field of c and what it must be, or is a
// *[RuleError] for a rule that cannot be kept in Redis: with Adapt, or with a ban after distinct
// values.
func New(conn Conn, set *ratelimit.Set, c Config) (*Store, error) {
	s, err := newStore(conn, set, c, source("clock"))
	if err == nil {
		s.start()
	}
	return s, err
}

func newStore(conn Conn, set *ratelimit.Set, c Config, clock string) (*Store, error) {
	prefix, err := checkedPrefix(c.Prefix)
	if err != nil {
		return nil, err
	}
	if c.Nodes < 0 {
		return nil, fmt.Errorf("latelyredis: nodes: %d: must be how many nodes there are at least, or 0", c.Nodes)
	}
	s := &Store{conn: newNumberedConn(conn), prefix: prefix, script: clock, mirror: newMirror(), onBan: c.OnBan, onUnban: c.OnUnban, node: newNode(), stop: func() {}}
	s.refusals.seed, s.batched, s.least = s.mirror.seed, c.Batched, int64(c.Nodes)
	s.breakers.began = time.Now()
	return s, s.use(set)
}

// checkedPrefix returns the prefix of keys, with its default.
func checkedPrefix(prefix string) (string, error) {
	if strings.ContainsAny(prefix, "{}") {
		return "", fmt.Errorf("latelyredis: prefix: %q: must not contain a brace, which would put all keys into one slot", prefix)
	}
	return cmp.Or(prefix, "lately:"), nil
}

// use makes the store answer requests for set.
func (s *Store) use(set *ratelimit.Set) error {
	l, err := newLayout(s.script, set)
	if err != nil {
		return err
	}
	for i := range l.rules {
		l.rules[i].banID = s.mirror.id(l.rules[i].listed)
		l.banIDs = append(l.banIDs, l.rules[i].banID)
	}
	s.newTables(l)
	s.layout.Store(l)
	return nil
}

// of returns the layout of set, or nil if the store has moved on.
func (s *Store) of(set *ratelimit.Set) *layout {
	if l := s.layout.Load(); l.set == set {
		return l
	}
	return nil
}

// Update moves the store to another rule set, see [ratelimit.Limiter.Update]. It does not
// call Redis: the records of a rule that has changed are carried over one by one, when
// they are next used. Unlike in memory, the counts of a removed rule stay until they
// expire, and when the algorithm changes, counts above the new limit are dropped.
func (s *Store) Update(_ context.Context, set *ratelimit.Set, published func()) error {
	if err := s.use(set); err != nil {
		return err
	}
	published()
	return nil
}

const (
	// attempts is how often a command is sent at most: once more if the record needs the other
	// script, if the server does not know the one or the other, and if the period is over.
	attempts = 5

	// movingWait is how long a call waits before it is sent again while its slot moves, and movingWaits how
	// often at most, for a context that does not end before: a slot may move for minutes.
	movingWait  = 2 * time.Millisecond
	movingWaits = 500
)

// exchange sends the calls, and fills in their answers or errors. A server that has not
// judged a call, because it does not know the script or needs another, gets it
// again; all other errors are final. It returns the errors of all.
func (s *Store) exchange(ctx context.Context, l *layout, calls []*call) error {
	s.send(ctx, l, s.unlessAway(l, calls))
	var errs []error
	for _, c := range calls {
		errs = append(errs, c.err)
	}
	return errors.Join(errs...)
}

// unlessAway returns the calls that are to be sent. The others fail with ErrAway.
func (s *Store) unlessAway(l *layout, calls []*call) []*call {
	away := 0
	for _, c := range calls {
		open, due := s.breakers.open(c)
		if c.err = nil; open {
			c.err, away = ErrAway, away+1
		}
		if due {
			go s.question(l, c.keys[0])
		}
	}
	if away > 0 {
		return slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return c.err != nil })
	}
	return calls
}

// send is exchange, whether Redis has answered before or not.
func (s *Store) send(ctx context.Context, l *layout, calls []*call) {
	s.transmit(ctx, l, calls)
	s.breakers.note(calls)
}

// transmit is send without an update of the breakers.
func (s *Store) transmit(ctx context.Context, l *layout, calls []*call) {
	defer s.endReturned(l, calls)
	for tries, waits := 0, 0; tries < attempts && len(calls) > 0; {
		bundles := bundled(calls, s.slotted())
		commands := make([]Command, len(bundles))
		for i := range bundles {
			commands[i] = bundles[i].sent()
		}
		var again []*call
		moves := false
		for i, r := range s.run(ctx, calls, commands) {
			for c, r := range bundles[i].replies(r) {
				if c.answered(s, l, r) {
					again, moves = append(again, c), moves || c.moves()
				}
			}
		}
		if calls = again; !moves {
			tries++
		} else if waits++; waits > movingWaits || wait.For(ctx, movingWait) != nil {
			return
		}
	}
}

// errAgain is the error of a call that was to be sent again too often.
var errAgain = errors.New("latelyredis: the server asks for the same script again and again")

// A call is a command and what came of it.
type call struct {
	command
	rules     []int    // of each record
	given     []uint64 // N that the event brings, of each record, see store.Subject; nil if there is none
	key       []byte
	what      byte // of a correction
	returns   bool // it gives something back
	calendars bool // whether a rule depends on a time zone
	data      string
	err       error
	inRange   int // part, once it was called
}

// moves reports whether c is about records, and was not judged since their slot moves from one node of a
// cluster to another. Keys move one by one. The client follows MOVED and ASK; but if the keys of a subject
// are on both nodes, or one of several is on none, either node answers TRYAGAIN, and has counted nothing.
// The list of bans is brought up to date later.
func (c *call) moves() bool { return len(c.rules) > 0 && codeIs(c.err, "TRYAGAIN") }

// answered notes the reply to c, and reports whether c has to be sent again.
func (c *call) answered(s *Store, l *layout, r Reply) bool {
	if codeIs(r.Err, "NOSCRIPT") && !c.full {
		c.full, c.err = true, errAgain
		return true
	}
	if codeIs(r.Err, "CROSSSLOT") && c.script.each {
		s.crossed.Store(true)
		c.err = errAgain
		return true
	}
	if c.data, c.err = r.Data, r.Err; c.moves() {
		return true
	}
	if codeIs(r.Err, "DAMAGED") {
		return s.healed(l, c)
	}
	const period = "period"
	switch {
	case r.Err != nil:
		return false
	case r.Data == repair && c.script != l.scripts.repair && c.script != l.scripts.correct:
		c.script, c.full = l.scripts.repair, false
	case len(r.Data) == len(period)+uint56 && r.Data[:len(period)] == period && c.calendars:
		now := readUint56(r.Data[len(period):])
		heard := s.mirror.now()
		s.mirror.at(now, heard, heard)
		c.tell(l, now)
	default:
		return false
	}
	c.err = errAgain
	return true
}

// healed notes that a record of c was damaged, and is deleted: sync writes its ban again, if the copy has one. It
// reports whether c, which does not need what was in it, has to be sent again.
func (s *Store) healed(l *layout, c *call) bool {
	for _, i := range c.rules {
		rl := &l.rules[i]
		if _, ok := s.mirror.until(rl.banID, c.key); ok && c.what != correctUnban {
			s.unwritten.Store(rl.listed+string(listedKey(c.key)), true)
			s.unlisted.Store(true)
		}
	}
	return c.what == correctReset || c.what == correctUnban
}

func readUint56(s string) (n int64) {
	for i := range uint56 {
		n = n<<8 | int64(s[i])
	}
	return n
}
