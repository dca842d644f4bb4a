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
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/loglimit"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/store/secret"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
	"github.com/redis/rueidis"
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

// A sharedStore is the store of limits and bans in Redis, which counts and logs failures. The server starts without it
// as well: until Redis was reached for the first time, every call fails, and rules decide as their on_store_failure says.
type sharedStore struct {
	options rueidis.ClientOption
	connect func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)
	config  latelyredis.Config
	timeout time.Duration
	log     *slog.Logger // bounded
	files   atomic.Pointer[storeFiles]
	secret  *secret.Secret    // of this server
	shared  func(text string) // is called with the secret in the store

	*latelyredis.Store
	counters *latelyredis.Counters
	conn     storeConn

	failures atomic.Uint64
	damaged  atomic.Uint64 // replies
	health   storeHealth
}

var _ store.Store[*ratelimit.Set, ratelimit.BanRecord] = (*sharedStore)(nil)

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
		o.Sentinel.Dialer.Timeout = o.Dialer.Timeout
		o.Sentinel.Dialer.KeepAlive = rueidis.DefaultTCPKeepAlive // without it, rueidis waits for one that is stopped for ever
		o.Sentinel.TopologyRefreshInterval = storeSentinel
	}
	return o, nil
}

// validStore returns what is wrong with the settings of the store.
func (c *Config) validStore() error {
	if c.Store == "" {
		if c.StoreCA != "" || c.StoreCert != "" || c.StoreKey != "" || c.StorePrefix != "" || c.StoreTimeout != 0 || c.StoreBatched || c.StoreNodes != 0 {
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
	case strings.ContainsAny(c.StorePrefix, "{}"):
		return fmt.Errorf("store-prefix: %q: must not contain a brace", c.StorePrefix)
	}
	return nil
}

// newSharedStore returns the store of c, which is valid. It does not connect.
func newSharedStore(c *Config, log *slog.Logger) *sharedStore {
	o, _ := storeOptions(c.Store)
	s := &sharedStore{options: o, config: latelyredis.Config{Prefix: c.StorePrefix, Batched: c.StoreBatched, Nodes: c.StoreNodes}, timeout: cmp.Or(c.StoreTimeout, onceTimeout), log: slog.New(loglimit.New(log.Handler()))}
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
	s.health.since = time.Now()
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
		s.log.Error("the store sent a damaged reply; on_store_failure of each rule decides until the connection is restored", "error", err)
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
		var err error
		if f.roots, _, err = readCAs("store-ca", c.StoreCA); err != nil {
			return nil, err
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
func (s *sharedStore) prepare(set *ratelimit.Set, onBan func(ratelimit.BanRecord), onUnban func(rule string, key []string)) (_ store.Store[*ratelimit.Set, ratelimit.BanRecord], err error) {
	s.config.OnBan, s.config.OnUnban = onBan, onUnban
	s.Store, err = latelyredis.New(&s.conn, set, s.config)
	return s, err
}

// newCounters returns the counters that servers share, as soon as share was called.
func (s *sharedStore) newCounters(unknown func(string)) (c *latelyredis.Counters, err error) {
	s.counters, err = latelyredis.NewCounters(latelyredis.CountersConfig{Prefix: s.config.Prefix, Unknown: unknown})
	return s.counters, err
}

// share begins to share counters. If the store can be reached, it connects, and returns when the bans of all servers were
// read, or after a second.
func (s *sharedStore) share(file *rules.File) {
	const again = 5 * time.Millisecond
	s.counters.Connect(&s.conn)
	s.beat(context.Background(), file)
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	for s.conn.client() != nil && s.Ready() != nil && wait.For(ctx, again) == nil {
	}
}

// open connects, unless s is connected.
func (s *sharedStore) open() error {
	if s.conn.client() != nil {
		return nil
	}
	client, err := rueidis.NewClient(s.options)
	if err == nil {
		s.conn.connected.Store(&connected{client, latelyredis.NewConn(client)})
	}
	return err
}

// close closes the connections.
func (s *sharedStore) close() {
	if s.counters != nil {
		s.counters.Close()
	}
	if s.Store != nil {
		s.Store.Close()
	}
	if client := s.conn.client(); client != nil {
		client.Close()
	}
}

// failed counts the error of a call of the store, and returns the error for the client: to try again, unless the client caused it.
func (s *sharedStore) failed(err error) error {
	if s.note(err) {
		return overloaded(err)
	}
	return err
}

// overloaded returns err, of the store, as one after which a client tries again.
func overloaded(err error) error {
	return apierror.New(api.Overload, "the store of limits failed: %s", storeText(err))
}

// note counts and logs err. It reports false if it is nil or the caller's.
func (s *sharedStore) note(err error) bool {
	if err == nil || errors.Is(err, store.ErrStale) || errors.Is(err, ratelimit.ErrKeyTooLong) {
		return false
	}
	s.failures.Add(1)
	s.log.Warn("a call of the store failed; on_store_failure of each rule decides", "error", storeText(err))
	return true
}

// Decide implements store.Store.
func (s *sharedStore) Decide(ctx context.Context, batch []*request) {
	s.Store.Decide(ctx, batch)
	for _, r := range batch {
		s.note(r.Err)
	}
}

// Settle implements store.Store.
func (s *sharedStore) Settle(ctx context.Context, x *settlement) error {
	return s.failed(s.Store.Settle(ctx, x))
}

// Adjust implements store.Store.
func (s *sharedStore) Adjust(ctx context.Context, x *adjustment) error {
	return s.failed(s.Store.Adjust(ctx, x))
}

// Ban implements store.Store.
func (s *sharedStore) Ban(ctx context.Context, b ratelimit.BanRecord) error {
	return s.failed(s.Store.Ban(ctx, b))
}

// Unban implements store.Store.
func (s *sharedStore) Unban(ctx context.Context, rule string, key []byte) (bool, error) {
	held, err := s.Store.Unban(ctx, rule, key)
	return held, s.failed(err)
}

// Bans implements store.Store.
func (s *sharedStore) Bans() store.BanCopy[*ratelimit.Set] {
	bans := s.Store.Bans()
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
