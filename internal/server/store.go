package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/fileperm"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/loglimit"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/ratelimit"
)

// What a store is asked and told of.
type (
	request    = store.Request[*ratelimit.Set]
	settlement = store.Settlement[*ratelimit.Set]
	adjustment = store.Adjustment[*ratelimit.Set]
)

const (
	storeDial  = time.Second     // to connect
	storeWrite = 2 * time.Second // until a connection that does not answer is closed

	// storeSentinel is how often Sentinel is asked for the primary: it tells of another one by a
	// message, which may be lost, and a primary that became a replica keeps its connections.
	storeSentinel = 5 * time.Second
)

// A sharedStore is the store of limits and bans in Redis. The server starts without it as
// well: until Redis was reached for the first time, every call fails, and rules decide as
// their on_store_failure says.
type sharedStore struct {
	options rueidis.ClientOption
	connect func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)
	config  latelyredis.Config
	log     *slog.Logger // bounded
	began   time.Time
	files   atomic.Pointer[storeFiles]

	mu     sync.Mutex // of set, and while opened changes
	set    *ratelimit.Set
	client rueidis.Client
	opened atomic.Pointer[latelyredis.Store]

	counters *latelyredis.Counters

	failures atomic.Uint64
	damaged  atomic.Uint64 // replies
	health   storeHealth
}

var _ store.Store[*ratelimit.Set, ratelimit.BanRecord] = (*sharedStore)(nil)

// errNotReached is the error of calls before Redis was reached.
var errNotReached = errors.New("it was not reached since the start")

// storeMust says what the setting store must be. Errors quote nothing of it: it has a password.
const storeMust = "must be the URL of Redis or Valkey, such as redis://user:password@host:6379, rediss://host or unix:///path; " +
	"in a password, write / as %2F, # as %23, ? as %3F and @ as %40"

// storeOptions returns how to connect to the store of url.
func storeOptions(url string) (rueidis.ClientOption, error) {
	o, err := rueidis.ParseURL(url)
	if err != nil {
		return o, errors.New(storeMust)
	}
	o.DisableRetry, o.DisableCache, o.AlwaysPipelining = true, true, true
	o.Dialer.Timeout = cmp.Or(o.Dialer.Timeout, storeDial)
	o.ConnWriteTimeout = cmp.Or(o.ConnWriteTimeout, storeWrite)
	if o.Sentinel.MasterSet != "" {
		o.Sentinel.TLSConfig = o.TLSConfig
		o.Sentinel.TopologyRefreshInterval = storeSentinel
	}
	return o, nil
}

// validStore returns what is wrong with the settings of the store.
func (c *Config) validStore() error {
	if c.Store == "" {
		if c.StoreCA != "" || c.StoreCert != "" || c.StoreKey != "" || c.StorePrefix != "" || c.StoreTimeout != 0 || c.StoreBatched || c.StoreMerge != 0 || c.StoreNodes != 0 {
			return errors.New("store: missing: must be set where another setting of the store is")
		}
		return nil
	}
	o, err := storeOptions(c.Store)
	switch {
	case err != nil:
		return fmt.Errorf("store: %w", err)
	case o.TLSConfig == nil && (c.StoreCA != "" || c.StoreCert != ""):
		return errors.New("store-ca and store-cert: set for a store without TLS: its URL must begin with rediss://")
	case (c.StoreCert == "") != (c.StoreKey == ""):
		return errors.New("store-cert and store-key: one is missing: must be both or none")
	case len(c.Follow) > 0:
		return errors.New("follow and store: both set: must be one of them, as a store judges by its own clock")
	case c.StoreMerge != 0 && !c.StoreBatched:
		return errors.New("store-merge: set without store-batched: must be set with it only")
	case c.StoreMerge < 0 || c.StoreMerge > time.Second:
		return fmt.Errorf("store-merge: %v: must be at most 1s", c.StoreMerge)
	case strings.ContainsAny(c.StorePrefix, "{}"):
		return fmt.Errorf("store-prefix: %q: must not contain a brace", c.StorePrefix)
	}
	return nil
}

// newSharedStore returns the store of c, which is valid. It does not connect.
func newSharedStore(c *Config, log *slog.Logger) *sharedStore {
	o, _ := storeOptions(c.Store)
	s := &sharedStore{options: o, config: latelyredis.Config{Prefix: c.StorePrefix, Batched: c.StoreBatched, MergeEvery: c.StoreMerge, Nodes: c.StoreNodes}, log: slog.New(loglimit.New(log.Handler()))}
	s.options.DialCtxFn = s.dial
	switch {
	case o.TLSConfig != nil:
		s.connect = s.dialTLS
	case o.DialCtxFn != nil:
		s.connect = o.DialCtxFn // to a Unix socket
	default:
		s.connect = func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	s.began = time.Now()
	s.health.since = s.began
	return s
}

// dial connects to the store, or to Sentinel, and checks what it sends.
func (s *sharedStore) dial(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	conn, err := s.connect(ctx, address, dialer, config)
	if err != nil {
		return nil, err
	}
	return latelyredis.CheckedConn(conn, func(err error) {
		s.damaged.Add(1)
		s.log.Error("the store sent a damaged reply; rules decide as their on_store_failure says until it is connected again", "error", err)
	}), nil
}

// storeFiles are the files for TLS to the store.
type storeFiles struct {
	roots *x509.CertPool
	cert  *tls.Certificate
}

// readStoreFiles reads the certificates for the store.
func (c *Config) readStoreFiles() (*storeFiles, error) {
	f := new(storeFiles)
	if c.StoreCA != "" {
		pem, err := fileperm.ReadFile(c.StoreCA, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("store-ca: %w", err)
		}
		if f.roots = x509.NewCertPool(); !f.roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("store-ca: %s: must have a certificate in PEM form", c.StoreCA)
		}
	}
	if c.StoreCert == "" {
		return f, nil
	}
	var err error
	f.cert, err = keyPair("store-", c.StoreCert, c.StoreKey)
	return f, err
}

// dialTLS connects with the certificates as they are now.
func (s *sharedStore) dialTLS(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	config = config.Clone()
	if f := s.files.Load(); f != nil {
		config.RootCAs = f.roots
		if f.cert != nil {
			config.Certificates = []tls.Certificate{*f.cert}
		}
	}
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
}

// address returns where the store is, without user and password.
func (s *sharedStore) address() string { return strings.Join(s.options.InitAddress, ",") }

// prepare makes s the store of set, which calls onBan and onUnban, and returns it. It does not connect.
func (s *sharedStore) prepare(set *ratelimit.Set, onBan func(ratelimit.BanRecord), onUnban func(rule string, key []string)) (store.Store[*ratelimit.Set, ratelimit.BanRecord], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set, s.config.OnBan, s.config.OnUnban = set, onBan, onUnban
	return s, latelyredis.Validate(set)
}

// open connects, unless s is connected.
func (s *sharedStore) open() error {
	if s.opened.Load() != nil {
		return nil
	}
	client, err := rueidis.NewClient(s.options)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	opened, err := latelyredis.New(client, s.set, s.config)
	if err != nil {
		client.Close()
		return err
	}
	s.client = client
	s.opened.Store(opened)
	s.counters.Connect(client)
	return nil
}

// newCounters returns the counters that servers share, as soon as s is connected.
func (s *sharedStore) newCounters(unknown func(string)) (c *latelyredis.Counters, err error) {
	s.counters, err = latelyredis.NewCounters(latelyredis.CountersConfig{Prefix: s.config.Prefix, Unknown: unknown})
	return s.counters, err
}

// close closes the connections.
func (s *sharedStore) close() {
	if opened := s.opened.Load(); opened != nil {
		s.counters.Close()
		opened.Close()
		s.client.Close()
	}
}

// call calls do with the opened store, and counts an error. Clients are told to try again.
func (s *sharedStore) call(do func(*latelyredis.Store) error) error {
	opened, err := s.opened.Load(), errNotReached
	if opened != nil {
		err = do(opened)
	}
	if s.note(err) {
		return overloaded(err)
	}
	return err
}

// overloaded returns err, of the store, as one after which a client tries again.
func overloaded(err error) error {
	return &engine.Error{Code: api.Overload, Message: "the store of limits failed: " + storeText(err)}
}

// note counts and logs err. It reports false if it is nil or the caller's.
func (s *sharedStore) note(err error) bool {
	if err == nil || errors.Is(err, store.ErrStale) || errors.Is(err, ratelimit.ErrKeyTooLong) {
		return false
	}
	s.failures.Add(1)
	s.log.Warn("a call of the store failed; rules decide as their on_store_failure says", "error", storeText(err))
	return true
}

// Decide implements store.Store.
func (s *sharedStore) Decide(ctx context.Context, batch []*request) {
	opened := s.opened.Load()
	if opened != nil {
		opened.Decide(ctx, batch)
	}
	for _, r := range batch {
		if opened == nil {
			r.Err = errNotReached
		}
		s.note(r.Err)
	}
}

// DecideKnown implements store.Store.
func (s *sharedStore) DecideKnown(r *request) bool {
	opened := s.opened.Load()
	return opened != nil && opened.DecideKnown(r)
}

// Nodes implements store.Store.
func (s *sharedStore) Nodes() int {
	if opened := s.opened.Load(); opened != nil {
		return opened.Nodes()
	}
	return s.config.Nodes
}

// Settle implements store.Store.
func (s *sharedStore) Settle(ctx context.Context, x *settlement) error {
	return s.call(func(st *latelyredis.Store) error { return st.Settle(ctx, x) })
}

// Adjust implements store.Store.
func (s *sharedStore) Adjust(ctx context.Context, x *adjustment) error {
	return s.call(func(st *latelyredis.Store) error { return st.Adjust(ctx, x) })
}

// Update implements store.Store. The rules change at once, whether Redis can be reached or not.
func (s *sharedStore) Update(ctx context.Context, set *ratelimit.Set, published func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if opened := s.opened.Load(); opened != nil {
		err = opened.Update(ctx, set, published)
	} else if err = latelyredis.Validate(set); err == nil {
		published()
	}
	if err == nil {
		s.set = set
	}
	return err
}

// Ban implements store.Store.
func (s *sharedStore) Ban(ctx context.Context, b ratelimit.BanRecord) error {
	return s.call(func(st *latelyredis.Store) error { return st.Ban(ctx, b) })
}

// Unban implements store.Store.
func (s *sharedStore) Unban(ctx context.Context, rule string, key []byte) (held bool, err error) {
	err = s.call(func(st *latelyredis.Store) error {
		held, err = st.Unban(ctx, rule, key)
		return err
	})
	return held, err
}

// Bans implements store.Store.
func (s *sharedStore) Bans() store.BanCopy[*ratelimit.Set] {
	bans := store.BanCopy[*ratelimit.Set]{Err: errNotReached}
	if opened := s.opened.Load(); opened != nil {
		bans = opened.Bans()
	}
	if bans.Err != nil {
		bans.Err = overloaded(bans.Err)
	}
	return bans
}

// storeRules returns err, of rules of which the store cannot keep one, with the place in the
// rules file.
func storeRules(f *files, err error) error {
	if bad, ok := errors.AsType[*latelyredis.RuleError](err); ok && f.rules != nil {
		return f.rules.RuleError(bad.Rule, bad.Err.Error())
	}
	return err
}
