package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/event/geo"
	"github.com/lately-go/lately/internal/http/refusal"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/demo"
	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/server/httpapi"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/server/respapi"
	"github.com/lately-go/lately/match"
)

// A Server is an engine with its listeners and its state on disk. Make one with
// [New] and call [Server.Run] once.
type Server struct {
	config  Config
	version string
	log     *slog.Logger
	engine  *engine.Engine
	journal *journal.Journal // or nil
	logs    *follow.Follower // or nil
	feeds   *follow.Feeds
	enforce *enforce.Enforcer // or nil
	store   *sharedStore      // or nil
	geo     *geo.DB           // or nil
	demo    *demo.Demo        // or nil

	tokens atomic.Pointer[access.Tokens]

	cert  atomic.Pointer[tls.Certificate]
	cas   atomic.Pointer[x509.CertPool] // of clients
	page  atomic.Pointer[refusal.Page]
	saved atomic.Int64 // when the last snapshot was written, as Unix nanoseconds; 0: never

	judgeWaiting func(*match.Event) // in keepReleasing

	reloading sync.Mutex
	saving    sync.Mutex
	written   writtenState  // under saving
	saveNow   chan struct{} // requests a snapshot before its time
	storage   storage
	terminate chan struct{}
	ending    atomic.Bool // Terminate was called

	resp listener
	http listener
}

// A listener is an open port and the function that serves it.
type listener struct {
	net.Listener
	serve func(ctx context.Context, l net.Listener) error
}

// New returns a Server that is ready to run: the rules are read, the state is
// restored, the ports are open. The error is a sentence for the user; a token file that
// was created stays. version is shown to clients.
func New(c Config, version string, log *slog.Logger) (*Server, error) {
	asked := c.MaxConnections
	c, err := c.withDefaults()
	if err == nil {
		err = c.limitConnections(openFiles())
	}
	if err != nil {
		return nil, err
	}
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	if c.MaxConnections < asked {
		log.Warn("max-connections is more than the limit of open files allows; raise that with ulimit -n, or LimitNOFILE of systemd", "max_connections", asked, "lowered_to", c.MaxConnections)
	}
	s := &Server{
		config: c, version: version, log: log, saveNow: make(chan struct{}, 1), terminate: make(chan struct{}, 2),
		storage: storage{log: log, journal: writes{name: "ban journal"}, snapshots: writes{name: "snapshots"}},
	}
	s.feeds = follow.NewFeeds(s.requestSnapshot)
	if err := s.start(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start() error {
	if s.config.Store != "" {
		s.store = newSharedStore(&s.config, s.log)
	}
	f, err := s.readFiles(s.createTokens)
	if err != nil {
		return err
	}
	s.use(f)
	c := engine.Config{
		Rules: f.rules, Budget: s.config.limitBudget, CounterBudget: s.config.counterBudget, KeepEvents: s.config.KeepEvents,
		CallerBudget: s.config.callerBudget, Settled: s.config.maxSettled, HotBudget: s.config.hotBudget, Bans: s.config.MaxBans, Log: s.log, StoreTimeout: s.config.StoreTimeout, Geo: s.geo,
	}
	if s.store != nil {
		c.Store, c.Counters, c.Once = s.store.prepare, s.store.newCounters, s.store.once
	}
	if s.engine, err = engine.New(c); err != nil {
		return storeRules(&f, err)
	}
	if s.config.Demo {
		s.demo = demo.New(s.engine, 1)
	}
	if err := s.openLogs(); err != nil {
		return err
	}
	if err := s.restore(); err != nil {
		return err
	}
	if s.store != nil {
		s.store.secret, s.store.shared = s.engine.Secret(), s.shareSecret
		s.store.share(s.engine.Rules()) // after the restore, whose counts are shared too
	}
	if err := s.startEnforcing(); err != nil {
		return err
	}
	return s.listen()
}

// listenConfig returns what both listeners have in common.
func (s *Server) listenConfig() listen.Config {
	c := listen.Config{
		Engine: s.engine, Tokens: s.tokens.Load, Rejected: new(atomic.Uint64), Budget: access.NewBudget(s.config.requestBudget), Log: s.log,
		Version: s.version, Limits: s.config.Limits,
	}
	if s.store != nil {
		c.Store = s.store.status
	}
	if s.config.TLSClientCA != "" {
		c.ClientCAs = s.cas.Load
	}
	return c
}

// listen takes the addresses and makes the servers of both listeners.
func (s *Server) listen() error {
	c, common := &s.config, s.listenConfig()
	var respListener *listen.Listener
	if c.RESP != Off {
		common.TLS = s.tlsAt(c.RESP)
		r := respapi.New(common)
		s.resp.serve, respListener = r.Serve, r.Listener
		var err error
		if s.resp.Listener, err = c.Socket.Open("resp", c.RESP); err != nil {
			return err
		}
	}
	var storage func() httpapi.Storage
	if s.journal != nil {
		storage = s.storageState
	}
	if c.HTTP != Off {
		common.TLS = s.tlsAt(c.HTTP)
		h, err := httpapi.New(httpapi.Config{
			Config: common, Storage: storage, Ready: s.ready, Reload: s.reload, RESP: respListener, RESPAddress: s.resp.address(),
			TrustedProxies: c.TrustedProxies, TrustUnix: c.TrustUnix, RefusalPage: s.page.Load, Hosts: c.Hosts, Enforcer: s.enforce, Logs: s.logs, Feeds: s.feeds, Demo: s.demo,
		})
		if err != nil {
			return err
		}
		s.http.serve = h.Serve
		if s.http.Listener, err = c.Socket.Open("http", c.HTTP); err != nil {
			return err
		}
	}
	return nil
}

// Engine returns the engine that the listeners use.
func (s *Server) Engine() *engine.Engine { return s.engine }

// Addresses returns where the server listens, HOST:PORT or unix:PATH, "" for a listener that is off.
func (s *Server) Addresses() (resp, http string) { return s.resp.address(), s.http.address() }

func (l *listener) address() string {
	if l.Listener == nil {
		return ""
	}
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

// Secure reports whether the listeners on TCP use TLS.
func (s *Server) Secure() bool { return s.config.TLSCert != "" }

// Run serves until ctx is done, then finishes requests in progress, writes a last
// snapshot and returns. The error is that of a listener or of the snapshot.
func (s *Server) Run(ctx context.Context) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	defer s.close()
	errs := make(chan error, 2)
	var listeners, others sync.WaitGroup
	for _, l := range []*listener{&s.resp, &s.http} {
		if l.Listener != nil {
			listeners.Go(func() {
				errs <- l.serve(serving, l.Listener)
				stop() // if one fails, all end
			})
		}
	}
	for _, task := range s.tasks() {
		if task.needed {
			others.Go(func() { task.run(serving) })
		}
	}
	s.logStart()
	notify("READY=1", "STATUS=serving")
	s.awaitEnd(serving)
	notify("STOPPING=1")
	s.log.Info("shutting down", "shutdown_timeout", s.config.ShutdownTimeout.String())
	stop()
	listeners.Wait()
	others.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	if s.journal != nil {
		s.engine.EndDecisions()
		err = errors.Join(err, s.save())
	}
	return err
}

// A task is what a server does besides listening, until its context is done.
type task struct {
	needed bool
	run    func(context.Context)
}

func (s *Server) tasks() []task {
	return []task{
		{len(s.config.RulesFiles) > 0 && s.config.RulesPoll > 0, s.keepReloading},
		{s.geo != nil && s.config.RulesPoll > 0, s.keepGeo},
		{s.logs != nil, s.followLogs},
		{s.demo != nil, s.demo.Run},
		{true, s.keepReleasing},
		{s.journal != nil, s.keepSaving},
		{s.store != nil, func(ctx context.Context) { s.store.keep(ctx, s.engine.Rules) }},
		{s.enforce != nil, s.keepEnforcing},
	}
}

// Terminate makes Run return after Config.ShutdownDelay. Until then the server answers as
// before, except that /readyz fails: load balancers then send their requests elsewhere
// before the port closes. A second call ends the delay.
func (s *Server) Terminate() {
	select {
	case s.terminate <- struct{}{}:
	default: // called twice before
	}
}

// awaitEnd returns when ctx is done, or after the delay that Terminate starts.
func (s *Server) awaitEnd(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.terminate:
	}
	if s.config.ShutdownDelay <= 0 {
		return
	}
	s.ending.Store(true)
	s.log.Info("not ready any more; the listeners close after the delay", "shutdown_delay", s.config.ShutdownDelay.String())
	delay := time.NewTimer(s.config.ShutdownDelay)
	defer delay.Stop()
	select {
	case <-ctx.Done():
	case <-s.terminate:
	case <-delay.C:
	}
}

// logStart logs what the server serves.
func (s *Server) logStart() {
	resp, http := s.Addresses()
	file := s.engine.Rules()
	s.log.Info("serving", "version", s.version, "resp", cmp.Or(resp, Off), "http", cmp.Or(http, Off), "tls", s.Secure(),
		"tokens", s.tokens.Load() != nil, "rules", strings.Join(s.config.RulesFiles, ", "), "limits_and_bans", len(file.Limits.Rules()), "hot", len(file.Hot),
		"counters", len(file.Counters), "data", s.config.Data, "logs", len(s.config.Follow))
}

// close releases what New acquired.
func (s *Server) close() {
	for _, l := range []*listener{&s.resp, &s.http} {
		if l.Listener != nil {
			l.Close()
		}
	}
	if s.store != nil {
		s.store.close() // it passes bans to the engine
	}
	if s.engine != nil {
		s.engine.Close()
	}
	if s.journal != nil {
		if err := s.journal.Close(); err != nil {
			s.log.Error("data directory", "error", err)
		}
	}
}
