package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/rule/sentence"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/rules"
)

const (
	beatEvery   = 2 * time.Second
	beatTimeout = time.Second
)

// A storeHealth is the result of the last beat: a node writes to Redis which rules it enforces, and
// reads which the others enforce.
type storeHealth struct {
	mu      sync.Mutex
	node    string
	up      bool
	err     error     // of the last beat
	since   time.Time // up, or not
	latency time.Duration
	nodes   int
	others  int // that enforce other rules
	file    *rules.File
	hash    string // of file

	checked time.Time // when the store was last asked whether it evicts keys
	evicts  error     // that it does
}

// beatScript notes the rules of this node in a hash of all nodes, and the secret of this node if the store has none. It
// returns the secret of the store, and the rules of the nodes that were heard of within ten seconds, this one included.
var beatScript = rueidis.NewLuaScript(`
local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. ARGV[2])
redis.call('EXPIRE', KEYS[1], 60)
redis.call('SET', KEYS[2], ARGV[3], 'NX')
local all, hashes = redis.call('HGETALL', KEYS[1]), {redis.call('GET', KEYS[2])}
for i = 1, #all, 2 do
  local at, hash = string.match(all[i + 1], '^(%d+) (%x+)$')
  if not at or math.abs(now - tonumber(at)) > 10 then
    redis.call('HDEL', KEYS[1], all[i])
  else
    hashes[#hashes + 1] = hash
  end
end
return hashes`)

// keep connects and beats until ctx is done. file returns the rules in force.
func (s *sharedStore) keep(ctx context.Context, file func() *rules.File) {
	for range wait.Every(ctx, beatEvery) {
		s.beat(ctx, file())
	}
}

// beat connects, if s is not connected, and writes the hash of the rules of file to the store.
func (s *sharedStore) beat(ctx context.Context, file *rules.File) {
	hash := s.health.hashOf(file)
	first := s.conn.client() == nil
	err := s.open()
	began := time.Now()
	var hashes []string
	if err == nil {
		hashes, err = s.exchangeHashes(ctx, hash)
	}
	if ctx.Err() != nil {
		return
	}
	s.noteBeat(hash, hashes, err, time.Since(began))
	if err != nil {
		return
	}
	s.checkEviction(ctx)
	if err := s.Ready(); err != nil && !first { // else it has just begun to read the bans
		s.log.Warn("the store of limits answers, but the server is not ready", "store", s.address(), "error", storeText(err))
	}
}

// secretKey returns the name of the key of the secret that the servers share.
func (s *sharedStore) secretKey() string { return s.nodesKey() + ":secret" }

// nodesKey returns the name of the key of the hashes of all servers.
func (s *sharedStore) nodesKey() string { return cmp.Or(s.config.Prefix, "lately:") + "{nodes}" }

// exchangeHashes writes the hash of the rules of this node to the store, and returns the hashes of all nodes. The servers of a store
// have the secret of the first.
func (s *sharedStore) exchangeHashes(ctx context.Context, hash string) ([]string, error) {
	bounded, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	offered := s.secret.Value()
	answer, err := beatScript.Exec(bounded, s.conn.client(), []string{s.nodesKey(), s.secretKey()}, []string{s.health.node, hash, offered.Text()}).AsStrSlice()
	if err != nil || len(answer) == 0 {
		return nil, err
	}
	s.shared(answer[0])
	return answer[1:], nil
}

// noteBeat notes what came of a beat, and then logs what has changed: status and ready do not wait for a log
// that blocks.
func (s *sharedStore) noteBeat(hash string, hashes []string, err error, took time.Duration) {
	up, others := err == nil || s.othersAnswer(), 0
	for _, other := range hashes {
		if other != hash {
			others++
		}
	}
	h := &s.health
	h.mu.Lock()
	wasUp, wasErr, wasOthers := h.up, h.err, h.others
	down := !up && (wasUp || wasErr == nil) // also at the first beat
	if up != wasUp || down {
		h.up, h.since = up, time.Now()
	}
	h.err, h.latency = err, took
	if err == nil {
		h.nodes, h.others = len(hashes), others
	}
	h.mu.Unlock()
	switch {
	case up && !wasUp:
		s.log.Info("the store of limits is up", "store", s.address())
	case down:
		s.log.Error("the store of limits is down; on_store_failure of each rule decides", "store", s.address(), "error", storeText(err))
	case err != nil && wasErr == nil:
		s.log.Warn("a part of the cluster does not answer: the servers that share the store, and whether they enforce the same rules, are as they were before", "store", s.address(), "error", storeText(err))
	}
	if err == nil && others > 0 && wasOthers == 0 {
		s.log.Warn("other nodes of the store enforce other rules than this one", "nodes", len(hashes), "others", others)
	}
}

// othersAnswer reports whether the store is a cluster of which other nodes answer than the one that has the key of the
// beats, which no decision needs.
func (s *sharedStore) othersAnswer() bool {
	return s.conn.Clustered() && s.Ready() == nil
}

// checkEvery is how often the store is asked whether it evicts keys: its settings may change, and after a failover
// it is another server.
const checkEvery = time.Minute

// checkEviction asks the store whether it evicts keys, if that is due.
func (s *sharedStore) checkEviction(ctx context.Context) {
	h := &s.health
	h.mu.Lock()
	due := h.checked.IsZero() || time.Since(h.checked) >= checkEvery
	h.mu.Unlock()
	if !due {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	err := s.Check(bounded)
	evicts := errors.Is(err, latelyredis.ErrEvicts)
	if err != nil && !evicts {
		return // at the next beat
	}
	h.mu.Lock()
	was := h.evicts
	h.checked, h.evicts = time.Now(), err
	h.mu.Unlock()
	if evicts && was == nil {
		s.log.Warn("the store of limits evicts keys when its memory is full: counts begin again, and bans end", "store", s.address(), "error", storeText(err))
	}
}

// hashOf returns the hash of the limits, bans and allow list of file.
func (h *storeHealth) hashOf(file *rules.File) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.node == "" {
		h.node = rand.Text()
	}
	if file != h.file {
		sum := sha256.New()
		for _, r := range file.Limits.Rules() {
			fmt.Fprintf(sum, "%q %q %d\n", r.Name, sentence.Limit(r), r.OnStoreFailure)
		}
		fmt.Fprintln(sum, engine.AllowList(file), file.Allow.Crawlers)
		h.file, h.hash = file, hex.EncodeToString(sum.Sum(nil)[:8])
	}
	return h.hash
}

// status returns the state of s for listeners, from memory.
func (s *sharedStore) status() *api.StoreStatus {
	h := &s.health
	a := &api.StoreStatus{
		Address: s.address(), Failures: s.failures.Load(), Damaged: s.damaged.Load(), SyncAge: api.MillisOf(s.SyncAge()),
		Counters: s.counters.Complete(), Unshared: s.counters.Unshared(), Unread: s.counters.Unread(),
	}
	h.mu.Lock()
	a.Up, a.Since, a.Latency, a.RulesHash, a.Nodes, a.OtherRules = h.up, h.since.UTC(), h.latency.Microseconds(), h.hash, h.nodes, h.others
	err, evicts := h.err, h.evicts
	h.mu.Unlock()
	if a.Up {
		problem := s.Ready()
		a.Up, err = problem == nil, cmp.Or(problem, err)
	}
	if err != nil {
		a.Error = storeText(err)
	}
	if evicts != nil {
		a.Warning = storeText(evicts)
	}
	return a
}

// ready returns why the store is not ready, or nil, from memory. Strangers may read it.
func (s *sharedStore) ready() error {
	h := &s.health
	h.mu.Lock()
	up, since := h.up, h.since
	h.mu.Unlock()
	if !up {
		return errors.New("store: down since " + since.UTC().Format(time.RFC3339) + ": see the server's log")
	}
	switch err := s.Ready(); {
	case err == nil:
		return nil
	case errors.Is(err, latelyredis.ErrAway):
		return errors.New("store: it does not answer: see the server's log")
	}
	return fmt.Errorf("store: the bans of all servers were last learned %v ago, or never: must be at most 5s: see the server's log", s.SyncAge().Truncate(time.Second))
}
