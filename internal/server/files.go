package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/geo"
	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/internal/http/refusal"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/demo"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/rules"
)

// files is what a server reads from files when it starts and when it reloads. Each is
// nil if there is no such file.
type files struct {
	rules  *rules.File
	tokens *access.Tokens
	cert   *tls.Certificate
	cas    *x509.CertPool // of clients
	page   *refusal.Page
	store  *storeFiles
}

// readFiles reads all files. If the rules are good, it calls create before it reads the
// others. The error has the mistakes of all files.
func (s *Server) readFiles(create func() error) (f files, err error) {
	var errs [7]error
	if paths := s.config.RulesFiles; len(paths) > 0 {
		f.rules, errs[0] = rules.Load(paths...)
	} else if s.config.Demo {
		f.rules, errs[0] = demo.Rules()
	}
	if create != nil && errs[0] == nil {
		if err := create(); err != nil {
			return f, err
		}
	}
	if path := s.config.TokenFile; path != "" {
		f.tokens, errs[1] = access.Load(path)
	}
	if s.config.TLSCert != "" {
		f.cert, errs[2] = keyPair("tls-", s.config.TLSCert, s.config.TLSKey)
	}
	if path := s.config.TLSClientCA; path != "" {
		var pem []byte
		if f.cas, pem, errs[5] = readCAs("tls-client-ca", path); f.tokens != nil {
			f.tokens = f.tokens.With(pem)
		}
	}
	if path := s.config.RefusalPage; path != "" {
		f.page, errs[6] = readPage(path)
	}
	if s.store != nil {
		f.store, errs[3] = s.config.readStoreFiles()
	}
	switch {
	case s.geo != nil:
		_, errs[4] = s.geo.Refresh()
	case len(s.config.Geo) > 0: // at the start
		s.geo, errs[4] = geo.Open(s.config.Geo...)
	}
	return f, errors.Join(errs[:]...)
}

// keepGeo reads the files of countries and autonomous systems again when they have changed, until ctx is done.
func (s *Server) keepGeo(ctx context.Context) {
	last := ""
	for wait.For(ctx, s.config.RulesPoll) == nil {
		read, err := s.geo.Refresh()
		if len(read) > 0 {
			s.log.Info("geo: read again", "files", strings.Join(read, ", "))
		}
		now := ""
		if err != nil {
			now = err.Error()
		}
		if now != "" && now != last {
			s.log.Error("a file of geo cannot be read; the old contents stay in use", "error", err)
		}
		last = now
	}
}

// maxPEM is the size of the largest file of certificates or keys, in bytes.
const maxPEM = 1 << 20

// readCAs reads the CA certificates of a file that a setting names. It returns the text of the file, too.
func readCAs(setting, path string) (*x509.CertPool, []byte, error) {
	pem, err := fileperm.ReadFile(path, maxPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", setting, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("%s: %s: must have a certificate in PEM form", setting, path)
	}
	return pool, pem, nil
}

// maxPage is the size of the largest page for refused requests, in bytes: each refused browser receives it.
const maxPage = 64 << 10

// readPage reads the page for refused requests.
func readPage(path string) (*refusal.Page, error) {
	text, err := fileperm.ReadFile(path, maxPage)
	if err != nil {
		return nil, fmt.Errorf("refusal-page: %w", err)
	}
	page, err := refusal.NewPage(string(text))
	if err != nil {
		return nil, fmt.Errorf("refusal-page: %s: %w", path, err)
	}
	return page, nil
}

// keyPair reads a certificate and its key, of settings with these names.
func keyPair(settings, certFile, keyFile string) (*tls.Certificate, error) {
	cert, err := fileperm.ReadFile(certFile, maxPEM)
	key, keyErr := fileperm.ReadFile(keyFile, maxPEM)
	var pair tls.Certificate
	if err = errors.Join(err, keyErr); err == nil {
		pair, err = tls.X509KeyPair(cert, key)
	}
	if err != nil {
		return nil, fmt.Errorf("%[1]scert %[2]s and %[1]skey %[3]s: %[4]w", settings, certFile, keyFile, err)
	}
	return &pair, nil
}

// use puts tokens and certificate in force, and logs warnings about the rules. Other
// tokens end logins, streams and connections; equal ones must not.
func (s *Server) use(f files) {
	if f.tokens != nil && !f.tokens.Equal(s.tokens.Load()) {
		s.tokens.Store(f.tokens)
	}
	s.cert.Store(f.cert)
	s.cas.Store(f.cas)
	s.page.Store(f.page)
	if n := f.tokens.Certificates(); n > 0 && f.cas == nil {
		s.log.Warn("the certificates of the token file have no effect: the setting tls-client-ca is missing", "file", s.config.TokenFile, "certificates", n)
	}
	if s.store != nil {
		s.store.files.Store(f.store)
	}
	if f.rules != nil {
		for _, w := range f.rules.Warnings {
			s.log.Warn("rules file: "+w.Message, "file", w.File, "line", w.Line, "column", w.Column)
		}
		for _, sentence := range s.config.MixedLogs(f.rules) {
			s.log.Warn("rules file: " + sentence)
		}
	}
}

// createTokens creates a missing token file, when the server starts: a file that is
// missing later is most likely being replaced.
func (s *Server) createTokens() error {
	path := s.config.TokenFile
	if path == "" {
		return nil
	}
	if s.config.NoTokens {
		s.log.Warn("no-tokens has no effect: token-file is set", "file", path)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // readFiles returns other errors
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

// tlsAt returns the configuration of TLS at an address, or nil. A Unix socket has none: no other
// machine can connect to it.
func (s *Server) tlsAt(address string) *tls.Config {
	if _, unix := listen.SocketPath(address); unix || s.config.TLSCert == "" {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil },
	}
}

// Reload reads the rules files, the tokens and the certificate again, and puts all of
// them in force or, on an error, none: what was in force stays. New rules that would
// drop bans are an error.
func (s *Server) Reload() error {
	_, err := s.reload(false)
	return err
}

// keepReloading reloads when the files of the rules have changed, until ctx is done. It compares with the rules in
// force, so that nothing else keeps what files of plans had, and, while a file has mistakes, with what it last read.
func (s *Server) keepReloading(ctx context.Context) {
	for ctx.Err() == nil {
		for range s.engine.Rules().Changes(ctx, s.config.RulesPoll) {
			if s.Reload() == nil {
				break
			}
		}
	}
}

// reload is Reload that drops bans if dropBans is set. It returns what has changed in
// the rules.
func (s *Server) reload(dropBans bool) (api.RuleChanges, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	notify("RELOADING=1")
	defer notify("READY=1")
	changes, err := s.replace(dropBans)
	if err != nil {
		s.log.Error("reload failed; the old rules and files stay in force", "error", err)
		return changes, err
	}
	s.log.Info("reloaded", "rules", strings.Join(s.config.RulesFiles, ", "),
		"added", strings.Join(changes.Added, ", "), "removed", strings.Join(changes.Removed, ", "),
		"changed", strings.Join(changes.Changed, ", "), "bans_dropped", changes.BansDropped)
	return changes, nil
}

// replace reads all files first, and changes nothing before all of them are good.
func (s *Server) replace(dropBans bool) (changes api.RuleChanges, err error) {
	f, err := s.readFiles(nil)
	if err != nil {
		s.engine.ReloadFailed(err)
		return changes, err
	}
	changes = api.RuleChanges{Added: []string{}, Removed: []string{}, Changed: []string{}}
	if f.rules != nil {
		if changes, err = s.engine.Replace(f.rules, dropBans); err != nil {
			return changes, storeRules(&f, err)
		}
	}
	s.use(f)
	return changes, nil
}
