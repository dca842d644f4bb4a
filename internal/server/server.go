package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/fileperm"
	"github.com/lately-go/lately/internal/journal"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/httpapi"
	"github.com/lately-go/lately/internal/server/respapi"
	"github.com/lately-go/lately/rules"
)

// A Server is an engine with its listeners and its state on disk. Make one with
// [New] and run it with [Server.Run], once.
type Server struct {
	config  Config
	version string
	log     *slog.Logger
	engine  *engine.Engine
	dir     *journal.Dir // or nil

	rules  atomic.Pointer[rules.File] // in force; nil without a rules file
	tokens atomic.Pointer[access.Tokens]

	cert  atomic.Pointer[tls.Certificate]
	saved atomic.Int64 // when the last snapshot was written, as Unix nanoseconds; 0: never

	reloading sync.Mutex
	saving    sync.Mutex
	saveNow   chan struct{} // a snapshot is wanted before its time
	storage   storage
	terminate chan struct{}
	ending    atomic.Bool // Terminate was called

	resp listener
	http listener
}

// A listener is one way in.
type listener struct {
	net.Listener
	serve func(ctx context.Context, l net.Listener) error
}

// New returns a Server that is ready to run: the rules are read, the state is
// restored, the addresses are taken. The error is a sentence for the one who
// started it; nothing is left behind then but a token file that was made. version
// is told to clients.
func New(c Config, version string, log *slog.Logger) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, version: version, log: log, saveNow: make(chan struct{}, 1), terminate: make(chan struct{}, 2), storage: storage{log: log}}
	if err := s.start(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start() error {
	file, err := s.readRules()
	if err != nil {
		return err
	}
	s.rules.Store(file)
	if err := s.makeTokens(); err != nil {
		return err
	}
	tokens, tokensErr := s.readTokens()
	cert, certErr := s.readCertificate()
	if err := errors.Join(tokensErr, certErr); err != nil {
		return err
	}
	s.setTokens(tokens)
	s.cert.Store(cert)
	s.warnOfRules(file)
	s.engine, err = engine.New(engine.Config{
		Rules: file, EventTime: s.config.EventTime, Budget: s.config.MemoryLimit, CounterBudget: s.config.CounterBudget, ThrottleBudget: s.config.throttleBudget, Bans: s.config.MaxBans, Log: s.log,
	})
	if err != nil {
		return err
	}
	if err := s.restore(); err != nil {
		return err
	}
	return s.listen()
}

// readRules loads the rules file, if there is one.
func (s *Server) readRules() (*rules.File, error) {
	if s.config.RulesFile == "" {
		return nil, nil
	}
	return rules.Load(s.config.RulesFile)
}

// warnOfRules logs the warnings about a rules file that `lately validate` prints.
func (s *Server) warnOfRules(file *rules.File) {
	if file == nil {
		return
	}
	for _, w := range file.Warnings {
		s.log.Warn("rules file: "+w.Message, "file", w.File, "line", w.Line, "column", w.Column)
	}
}

// makeTokens creates a missing token file, when the server starts: a file that is
// missing later is most likely being replaced.
func (s *Server) makeTokens() error {
	path := s.config.TokenFile
	if path == "" {
		return nil
	}
	if s.config.NoTokens {
		s.log.Warn("no-tokens has no effect: token-file is set", "file", path)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // what is wrong with it, reading it says
	}
	_, err := access.Generate(path)
	switch {
	case errors.Is(err, fs.ErrExist): // another process was faster
		return nil
	case err != nil:
		return err
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	s.log.Warn("token file created, with a new token for each role", "file", path)
	return nil
}

// readTokens reads the token file, if there is one.
func (s *Server) readTokens() (*access.Tokens, error) {
	if s.config.TokenFile == "" {
		return nil, nil
	}
	return access.Load(s.config.TokenFile)
}

// setTokens puts tokens in force. Other tokens end sessions, streams and connections;
// the same ones must not.
func (s *Server) setTokens(tokens *access.Tokens) {
	if tokens != nil && !tokens.Equal(s.tokens.Load()) {
		s.tokens.Store(tokens)
	}
}

// readCertificate reads the certificate and its key, if there are any.
func (s *Server) readCertificate() (*tls.Certificate, error) {
	if s.config.TLSCert == "" {
		return nil, nil
	}
	cert, err := keyPair(s.config.TLSCert, s.config.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("tls-cert %s and tls-key %s: %w", s.config.TLSCert, s.config.TLSKey, err)
	}
	return &cert, nil
}

// maxPEM is the size of the largest file of certificates or keys, in bytes.
const maxPEM = 1 << 20

// keyPair reads a certificate and its key.
func keyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := fileperm.ReadFile(certFile, maxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := fileperm.ReadFile(keyFile, maxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// tls returns the configuration of TLS, or nil.
func (s *Server) tls() *tls.Config {
	if s.config.TLSCert == "" {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil },
	}
}

// listen takes the addresses and makes what serves them.
func (s *Server) listen() error {
	c := &s.config
	common := engine.ListenerConfig{
		Engine: s.engine, Tokens: s.tokens.Load, Rejected: access.NewRejectedLogins(s.log), Budget: access.NewBudget(c.requestBudget), Log: s.log,
		Reload: s.reload, Version: s.version, TLS: s.tls(), Limits: c.Limits,
	}
	var respStats func() engine.ListenerStats
	if c.RESP != Off {
		r, err := respapi.New(common)
		if err != nil {
			return err
		}
		s.resp.serve, respStats = r.Serve, r.Stats
		if s.resp.Listener, err = net.Listen("tcp", c.RESP); err != nil {
			return fmt.Errorf("resp: %w", err)
		}
	}
	if c.HTTP != Off {
		h, err := httpapi.New(httpapi.Config{
			ListenerConfig: common, RulesText: s.rulesText, SnapshotAge: s.snapshotAge, Storage: s.storageState, Ready: s.ready, RESP: respStats,
			TrustedProxies: c.TrustedProxies, Hosts: c.Hosts,
		})
		if err != nil {
			return err
		}
		s.http.serve = h.Serve
		if s.http.Listener, err = net.Listen("tcp", c.HTTP); err != nil {
			return fmt.Errorf("http: %w", err)
		}
	}
	return nil
}

func (s *Server) rulesText() ([]byte, error) {
	if file := s.rules.Load(); file != nil {
		return file.Text, nil
	}
	return nil, nil
}

// snapshotAge returns how old the newest snapshot is, or for how long s has run without
// one, and false if s writes none.
func (s *Server) snapshotAge() (time.Duration, bool) {
	if s.dir == nil {
		return 0, false
	}
	if at := s.saved.Load(); at != 0 {
		return time.Since(time.Unix(0, at)), true
	}
	return time.Since(s.engine.Status().Started), true
}

// Engine returns what the listeners ask.
func (s *Server) Engine() *engine.Engine { return s.engine }

// Addresses returns where the server listens, "" for a listener that is off.
func (s *Server) Addresses() (resp, http string) { return s.resp.address(), s.http.address() }

func (l *listener) address() string {
	if l.Listener == nil {
		return ""
	}
	return l.Addr().String()
}

// Secure reports whether the listeners speak TLS.
func (s *Server) Secure() bool { return s.config.TLSCert != "" }

// Reload reads the rules file, the tokens and the certificate again, and puts all of
// them in force or, on an error, none: what was in force stays. New rules that would
// drop bans are an error.
func (s *Server) Reload() error {
	_, err := s.reload(false)
	return err
}

// reload is Reload for which bans may be dropped, if dropBans is set. It returns what
// has changed in the rules.
func (s *Server) reload(dropBans bool) (api.RuleChanges, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	notify("RELOADING=1")
	defer notify("READY=1")
	changes, err := s.replace(dropBans)
	if err != nil {
		s.log.Error("reload failed; what was in force stays", "error", err)
		return changes, err
	}
	s.log.Info("reloaded", "rules", s.config.RulesFile,
		"added", strings.Join(changes.Added, ", "), "removed", strings.Join(changes.Removed, ", "),
		"changed", strings.Join(changes.Changed, ", "), "bans_dropped", changes.BansDropped)
	return changes, nil
}

// replace reads all files first, and changes nothing before all of them are good.
func (s *Server) replace(dropBans bool) (changes api.RuleChanges, err error) {
	file, err := s.readRules()
	tokens, tokensErr := s.readTokens()
	cert, certErr := s.readCertificate()
	if err := errors.Join(err, tokensErr, certErr); err != nil {
		s.engine.ReloadFailed(err)
		return changes, err
	}
	if file != nil {
		// Subscribers that learn of new rules request their text, so it is stored first.
		before := s.rules.Swap(file)
		if changes, err = s.engine.Replace(file, dropBans); err != nil {
			s.rules.Store(before)
			return changes, err
		}
		s.warnOfRules(file)
	}
	s.setTokens(tokens)
	s.cert.Store(cert)
	return changes, nil
}

// Run serves until ctx is done, then lets what is under way finish, writes a last
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
				stop() // one that fails ends all
			})
		}
	}
	if file := s.rules.Load(); file != nil && s.config.RulesPoll > 0 {
		others.Go(func() {
			for range file.Changes(serving, s.config.RulesPoll) {
				_ = s.Reload()
			}
		})
	}
	if s.dir != nil {
		others.Go(func() { s.keepSaving(serving) })
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
	if s.dir != nil {
		err = errors.Join(err, s.save())
	}
	return err
}

// Terminate has Run end after Config.ShutdownDelay, in which the server answers as
// before, but for /readyz, which says that it is about to end: load balancers then send
// their requests elsewhere before the port closes. A second call ends the delay.
func (s *Server) Terminate() {
	select {
	case s.terminate <- struct{}{}:
	default: // two are under way
	}
}

// awaitEnd returns when ctx is done, or at the end of the delay that Terminate begins.
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

// logStart logs what is served.
func (s *Server) logStart() {
	resp, http := s.Addresses()
	file := s.engine.Rules()
	s.log.Info("serving", "version", s.version, "resp", cmp.Or(resp, Off), "http", cmp.Or(http, Off), "tls", s.Secure(),
		"tokens", s.tokens.Load() != nil, "rules", s.config.RulesFile, "limits_and_bans", file.Limits.Len(), "hot", file.Hot.Len(),
		"counters", len(file.Counters), "data", s.config.Data)
}

// close gives back what New took.
func (s *Server) close() {
	for _, l := range []*listener{&s.resp, &s.http} {
		if l.Listener != nil {
			l.Close()
		}
	}
	if s.engine != nil {
		s.engine.Close()
	}
	if s.dir != nil {
		if err := s.dir.Close(); err != nil {
			s.log.Error("data directory", "error", err)
		}
	}
}
