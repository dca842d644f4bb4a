package latelyredis

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/ratelimit"
)

// The types of the store's methods, for tests.
type (
	Request    = request
	Subject    = subject
	Outcome    = outcome
	Settlement = settlement
	Adjustment = adjustment
)

var ErrStale = store.ErrStale

const (
	Refund = store.Refund
	Reset  = store.Reset
)

// givenClock replaces clock.lua: the time is the last argument. Since it differs from the
// server's, keys stay for a day.
const givenClock = `
local now, call = tonumber(ARGV[#ARGV]), redis.call
local redis = {call = function(command, ...)
  local a = {...}
  if command == 'SET' then a[4] = 86400000 end
  return call(command, unpack(a))
end}
`

// NewAt returns a Store whose scripts take the time from now, in microseconds: no script
// of New does.
func NewAt(client rueidis.Client, set *ratelimit.Set, c Config, now *atomic.Int64) (*Store, error) {
	s, err := newStore(timed{rueidisConn{client}, now}, set, c, givenClock)
	if err == nil {
		s.mirror.now = now.Load
	}
	return s, err
}

// NewKnowing returns a Store that uses its copy of the bans and its records of refusals, like one from New, but runs
// nothing in the background: the test calls Sync. The clock of the server is now, and that of the node is node, in
// microseconds.
func NewKnowing(client rueidis.Client, set *ratelimit.Set, c Config, now, node *atomic.Int64) (*Store, error) {
	s, err := NewAt(client, set, c, now)
	if err == nil {
		s.mirror.now, s.copied = node.Load, true
	}
	return s, err
}

// Sync is what a goroutine does every 250 ms.
func (s *Store) Sync(ctx context.Context) error { return s.sync(ctx) }

// SyncLocked is Sync that calls OnBan with the store locked.
func (s *Store) SyncLocked(ctx context.Context) error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	err := s.follow(ctx)
	for i := range s.news {
		s.tell(&s.news[i])
	}
	return err
}

// Locked reports whether s is locked for an update of its copy of the bans.
func (s *Store) Locked() bool {
	if s.syncing.TryLock() {
		s.syncing.Unlock()
		return false
	}
	return true
}

// SpoilRefusals calls spoil with all that s remembers of refusals: when each ends, and the cost.
func (s *Store) SpoilRefusals(spoil func(ends, cost *uint64)) {
	for _, rl := range s.layout.Load().rules {
		if rl.refused == nil {
			continue
		}
		for _, r := range rl.refused.All() {
			spoil(&r.Words()[wordEnds], &r.Words()[wordCost])
		}
	}
}

// NewQuiet returns a Store that runs nothing in the background, and has no copy of the bans.
func NewQuiet(client rueidis.Client, set *ratelimit.Set, c Config) (*Store, error) {
	return newStore(rueidisConn{client}, set, c, source("clock"))
}

// Read reports whether s has read the list of bans.
func (s *Store) Read() bool { return s.synced.Load() > 0 }

// SlotOf returns the slot of a key.
func SlotOf(key string) uint16 { return slotOf(key) }

// Codes returns the errors of servers that the store explains.
func Codes() []string { return slices.Sorted(maps.Keys(advices)) }

// Copied reports whether s has a copy of a ban that holds.
func (s *Store) Copied(name, key string) bool {
	rl, err := s.layout.Load().named(name)
	if err != nil {
		panic(err)
	}
	_, ok := s.mirror.until(rl.banID, []byte(key))
	return ok
}

// NewQuietWith is NewQuiet for a Conn; the store has a copy of the bans, which the test brings up to date.
func NewQuietWith(conn Conn, set *ratelimit.Set, c Config) (*Store, error) {
	s, err := newStore(conn, set, c, source("clock"))
	if err == nil {
		s.copied = true
	}
	return s, err
}

// timed adds the time to each command, before its number.
type timed struct {
	Conn
	now *atomic.Int64
}

func (t timed) Run(ctx context.Context, commands []Command) []Reply {
	now := strconv.FormatInt(t.now.Load(), 10)
	for i := range commands {
		c := &commands[i]
		c.Args = slices.Insert(slices.Clone(c.Args), len(c.Args)-1, now)
	}
	return t.Conn.Run(ctx, commands)
}

// ServerForTest returns a client of the server that tests share. The tests of package
// latelyredis_test set it.
var ServerForTest func(testing.TB) rueidis.Client

// RememberRefusal has s remember that a key was refused under the first rule, for that many
// microseconds. It returns whether it did before, and how many refusals it remembers of the rule.
func (s *Store) RememberRefusal(key string, micros int64) (known bool, n int) {
	rl := &s.layout.Load().rules[0]
	g := &group{request: &request{Cost: 1}, sent: s.mirror.now()}
	sub := &subject{Key: []byte(key), Outcome: outcome{Refused: true, RetryAfter: duration(micros)}}
	hash := s.refusals.hash(sub.Key)
	g.stamp, known = s.refusals.stamp(hash).Load(), rl.refused.Has(hash, key)
	s.rememberRefusal(rl, g, sub)
	return known, rl.refused.Len()
}

// Merge reports the allowed events of s, as a goroutine does after some milliseconds, and returns
// whether all were answered.
func (s *Store) Merge(ctx context.Context) bool { return s.merge(ctx) }

// SpoilGrants calls spoil with all grants: how much may be allowed, is pending, and was left.
func (s *Store) SpoilGrants(spoil func(allows, pending, left *uint64)) {
	for _, rl := range s.layout.Load().rules {
		if rl.grants == nil {
			continue
		}
		for _, r := range rl.grants.All() {
			w := r.Words()
			spoil(&w[grantAllows], &w[grantPending], &w[grantLeft])
		}
	}
}

// KeepSent has s keep the next commands that it sends, which again sends once more, as a network may
// that was slow.
func (s *Store) KeepSent() (again func(context.Context) []Reply) {
	k := &keeping{Conn: s.conn}
	s.conn = k
	return func(ctx context.Context) []Reply { return k.Run(ctx, k.commands) }
}

// keeping keeps the first commands.
type keeping struct {
	Conn
	commands []Command
}

func (k *keeping) Run(ctx context.Context, commands []Command) []Reply {
	if k.commands == nil {
		k.commands = slices.Clone(commands)
	}
	return k.Conn.Run(ctx, commands)
}

// LoseAnswers makes every second answer to several commands, or one, be lost from now on, or no more.
func (s *Store) LoseAnswers(lose bool) {
	if l, ok := s.conn.(*lossy); ok {
		s.conn = l.Conn
	}
	if lose {
		s.conn = &lossy{Conn: s.conn}
	}
}

// lossy loses every second answer.
type lossy struct {
	Conn
	n int
}

func (l *lossy) Run(ctx context.Context, commands []Command) []Reply {
	replies := l.Conn.Run(ctx, commands)
	if l.n++; l.n%2 == 1 {
		for i := range replies {
			replies[i] = Reply{Err: context.DeadlineExceeded}
		}
	}
	return replies
}

// NeverAway makes s send each call, as if Redis had answered all before.
func (s *Store) NeverAway() {
	for i := range s.breakers.parts {
		s.breakers.parts[i].failed.Store(math.MinInt32)
	}
}

// EditScripts makes s use other scripts, as another version of this program does: each text is what
// edit returns. Without fast, it has only the general scripts.
func (s *Store) EditScripts(fast bool, edit func(text string) string) {
	l := *s.layout.Load()
	x, was := &l.scripts, l.scripts.fast
	edited := func(sc *script) *script {
		other := hashedScript(edit(sc.text))
		other.each = sc.each
		return other
	}
	for _, sc := range []**script{&x.decide, &x.repair, &x.correct, &x.list, &x.page, &x.sync, &x.memory} {
		*sc = edited(*sc)
	}
	x.fast = make(map[string]*script)
	for name, sc := range was {
		if fast {
			x.fast[name] = edited(sc)
		}
	}
	s.layout.Store(&l)
}

// RecordForm is the form of the records that this version writes.
const RecordForm = recordForm

// WriteForm makes s write records of another form, as another version of this program does.
func (s *Store) WriteForm(form byte) {
	l := *s.layout.Load()
	l.rules = slices.Clone(l.rules)
	for i := range l.rules {
		rl := &l.rules[i]
		rl.head, rl.told = slices.Clone(rl.head), slices.Clone(rl.told)
		rl.head[0], rl.told[len(rl.told)-len(rl.head)] = form, form
		rl.fixed = string(rl.told)
	}
	s.layout.Store(&l)
}
