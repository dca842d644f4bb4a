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
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/rules"
)

const (
	beatEvery   = 2 * time.Second
	beatTimeout = time.Second
)

// A storeHealth is what the last beat said: a node tells Redis which rules it enforces, and
// reads what the others do.
type storeHealth struct {
	mu      sync.Mutex
	node    string
	up      bool
	err     error
	since   time.Time // up, or not
	latency time.Duration
	nodes   int
	others  int // that enforce other rules
	file    *rules.File
	hash    string // of file
}

// beatScript notes the rules of this node in a hash of all nodes, and returns those of the
// nodes that were heard of within ten seconds, this one included.
var beatScript = rueidis.NewLuaScript(`
local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. ARGV[2])
redis.call('EXPIRE', KEYS[1], 60)
local all, hashes = redis.call('HGETALL', KEYS[1]), {}
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

// beat connects, if s is not connected, and tells the store of the rules of file.
func (s *sharedStore) beat(ctx context.Context, file *rules.File) {
	h := &s.health
	hash := h.hashOf(file)
	var hashes []string
	was := s.opened.Load()
	err := s.open()
	began := time.Now()
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, beatTimeout)
		defer cancel()
		prefix := cmp.Or(s.config.Prefix, "lately:")
		hashes, err = beatScript.Exec(bounded, s.client, []string{prefix + "{nodes}"}, []string{h.node, hash}).AsStrSlice()
	}
	if ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if up := err == nil; up != h.up || h.err == nil && err != nil {
		h.up, h.since = up, time.Now()
		if up {
			s.log.Info("the store of limits is up", "store", s.address())
		} else {
			s.log.Error("the store of limits is down; rules decide as their on_store_failure says", "store", s.address(), "error", err)
		}
	}
	h.err, h.latency = err, time.Since(began)
	if err != nil {
		return
	}
	others := 0
	for _, other := range hashes {
		if other != hash {
			others++
		}
	}
	if others > 0 && h.others == 0 {
		s.log.Warn("other nodes of the store enforce other rules than this one", "nodes", len(hashes), "others", others)
	}
	h.nodes, h.others = len(hashes), others
	if was != nil { // else it has just begun to read the bans
		if err := was.Ready(); err != nil {
			s.log.Warn("the store of limits answers, but the server is not ready", "store", s.address(), "error", err)
		}
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
		for i := range file.Limits.Len() {
			r := file.Limits.Rule(i)
			fmt.Fprintf(sum, "%q %q %d\n", r.Name, rules.LimitSentence(r), r.OnStoreFailure)
		}
		fmt.Fprintln(sum, file.Allow)
		h.file, h.hash = file, hex.EncodeToString(sum.Sum(nil)[:8])
	}
	return h.hash
}

// status returns the state of s for listeners.
func (s *sharedStore) status() *api.StoreStatus {
	h := &s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &api.StoreStatus{
		Address: s.address(), Up: h.up, Since: h.since.UTC(), Latency: h.latency.Microseconds(), Failures: s.failures.Load(),
		RulesHash: h.hash, Nodes: h.nodes, OtherRules: h.others, Counters: s.counters.Complete(), Unshared: s.counters.Unshared(), Unread: s.counters.Unread(),
	}
	err := h.err
	if h.up {
		err = s.opened.Load().Ready()
		a.Up = err == nil
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// ready returns why the store is not ready, or nil. Strangers may read it.
func (s *sharedStore) ready() error {
	h := &s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.up {
		return errors.New("store: down since " + h.since.UTC().Format(time.RFC3339) + ": see the server's log")
	}
	if s.opened.Load().Ready() != nil {
		return errors.New("store: it does not answer, or its bans were not read yet: see the server's log")
	}
	return nil
}
