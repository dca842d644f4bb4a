package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Config says how a Server runs. Its zero value is the defaults: in memory, on
// loopback, without rules and without tokens. Flags, LATELY_* variables and the
// settings file all fill this struct; see [Setting].
type Config struct {
	// RulesFiles is the paths of the rules files, see [rules.Load].
	RulesFiles []string

	// Demo has the server make traffic up, and judge it by rules of its own; see package demo.
	// It then listens on loopback only, and has no files, store or logs.
	Demo bool

	// RESP and HTTP are the addresses to listen on, HOST:PORT or unix:PATH; "" means the
	// defaults, and "off" none.
	RESP, HTTP string

	// Socket says who may connect to those that are Unix sockets.
	Socket listen.Socket

	// Data is the directory where counts and bans are kept; "" means that
	// nothing is written.
	Data string

	// TokenFile is the file of the tokens and their roles; see package
	// internal/server/access. New creates a missing file, with a token for each role.
	// "" means that everyone who can connect is an admin. Beyond loopback
	// that must be allowed with NoTokens.
	TokenFile string

	// TLSCert and TLSKey are the files of the certificate and its key, for
	// both listeners. "" means no TLS. Beyond loopback that must be allowed
	// with NoTLS.
	TLSCert, TLSKey string

	// TLSClientCA is the file of the CA certificates of clients, whose names have roles in TokenFile. ""
	// means that clients are not asked for certificates.
	TLSClientCA string

	// Follow is the logs whose events are judged, at their own times. Lateness and Silence
	// are as in [follow.Config]. Zones are the zones of times that name none, by default that of
	// the machine.
	Follow            []follow.Log
	Zones             []LogZone
	Lateness, Silence time.Duration

	// Stdin is for a log of Follow that is the standard input.
	Stdin *follow.Input

	// Decided is called with each event of these logs and the decision about it; nil means
	// that nothing is. Both are valid until it returns.
	Decided func(*match.Event, ratelimit.Decision)

	// Store is the URL of the Redis or Valkey in which limits and bans are kept, shared with
	// other servers; "" means this process's memory. It may have a password: it is never
	// logged or shown.
	Store string

	// StoreCA, StoreCert and StoreKey are the files of the certificates that Store's
	// certificate is checked by, and of the client's own certificate and key. "" means
	// those of the system, and none.
	StoreCA, StoreCert, StoreKey string

	// StorePrefix begins the names of all keys in Store; "" means "lately:".
	StorePrefix string

	// StoreTimeout bounds each call of Store; 0 means 20 ms.
	StoreTimeout time.Duration

	// StoreBatched has the server allow events by itself and report them to Store some milliseconds
	// later, see latelyredis.Config.
	StoreBatched bool

	// StoreNodes is how many servers share Store at least: each takes this part of a limit
	// until it has heard of the others. 0 means 1.
	StoreNodes int

	// Geo is mmdb files by which events get the fields country and asn.
	Geo []string

	// NoTokens and NoTLS let the server listen beyond loopback without
	// tokens, and without TLS. Neither switches off what the fields above set.
	NoTokens, NoTLS bool

	// TrustedProxies is the networks of proxies that may name the client, for
	// forward-auth. Bans of them are not enforced. With TrustUnix, so may whoever connects to
	// the Unix socket of HTTP.
	TrustedProxies []netip.Prefix
	TrustUnix      bool

	// RefusalPage is the file of an HTML page for browsers whose requests forward-auth refuses, see
	// [latelyhttp.NewPage]; "" means that all get a problem document.
	RefusalPage string

	// Enforce is what refuses banned clients besides the server.
	Enforce enforce.Targets

	// Hosts is the host names of the HTTP listener, besides loopback addresses and its
	// own address.
	Hosts []string

	// Memory bounds the memory of the whole process in bytes, connections, subscribers
	// and the runtime included. The command sets the runtime's memory limit to it. 0
	// means what the budgets need, by default DefaultMemory; the least is 256 MiB.
	Memory int64

	// KeepEvents bounds the memory of the last events, on which a draft of the rules can be
	// tried, in bytes; 0 means that none are kept.
	KeepEvents int64

	// MaxBans bounds the bans, remembered ones included; 0 means a million.
	MaxBans int

	// The budgets of limits and bans, and of counters: a quarter of Memory each.
	limitBudget, counterBudget int64

	// The budgets of CL.THROTTLE, of hot rules, and of requests and answers in transit: a
	// sixteenth of Memory each.
	callerBudget, hotBudget, requestBudget int64

	// maxSettled is how many ids of reservations are remembered as settled: a half of that.
	maxSettled int

	// maxEnforced is how many networks are enforced: another sixteenth of Memory.
	maxEnforced int

	// SnapshotEvery is how often counts are written to Data; 0 means a minute.
	SnapshotEvery time.Duration

	// Limits bounds the connections and subscribers of each listener, and how
	// long a server that shuts down waits for requests in progress.
	access.Limits

	// ShutdownDelay is how long /readyz fails after Terminate before the listeners
	// close; 0 means two seconds, less than 0 no delay.
	ShutdownDelay time.Duration

	// RulesPoll is how often the rules file is read to detect changes; 0 means two
	// seconds, less than 0 never.
	RulesPoll time.Duration

	// LogJSON and LogLevel are the format and the level of Logger; 0 means
	// [slog.LevelInfo].
	LogJSON  bool
	LogLevel slog.Level
}

// The addresses by default.
const (
	DefaultRESP = "127.0.0.1:7379"
	DefaultHTTP = "127.0.0.1:7380"
)

// Off is the address of a listener that is switched off.
const Off = "off"

// Validate returns the error that New would return for c, without reading files.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}

// withDefaults returns c with its defaults, or an error that names a wrong field.
func (c Config) withDefaults() (Config, error) {
	c.RESP = cmp.Or(c.RESP, DefaultRESP)
	c.HTTP = cmp.Or(c.HTTP, DefaultHTTP)
	c.SnapshotEvery = cmp.Or(c.SnapshotEvery, time.Minute)
	c.RulesPoll = cmp.Or(c.RulesPoll, 2*time.Second)
	c.ShutdownDelay = cmp.Or(c.ShutdownDelay, 2*time.Second)
	if err := cmp.Or(c.validDemo(), c.shareMemory()); err != nil {
		return c, err
	}
	c.Limits = c.Limits.WithDefaults()
	switch {
	case c.RESP == Off && c.HTTP == Off && len(c.Follow) == 0:
		return c, errors.New("resp and http: both off: must be at most one of them, unless a log is followed")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return c, errors.New("tls-cert and tls-key: one is missing: must be both or none")
	case c.TLSClientCA != "" && (c.TLSCert == "" || c.TokenFile == ""):
		return c, errors.New("tls-client-ca: must be set with tls-cert, tls-key and token-file, which has the roles of certificates")
	case c.KeepEvents != 0 && (c.KeepEvents < mib || c.KeepEvents > maxKeepEvents):
		return c, fmt.Errorf("keep-events: %d bytes: must be 0, or 1MiB to 1GiB", c.KeepEvents)
	case c.IdleTimeout > 0 && c.IdleTimeout < time.Second:
		return c, fmt.Errorf("idle-timeout: %v: must be 1s or more, or never", c.IdleTimeout)
	case c.SnapshotEvery < time.Second:
		return c, fmt.Errorf("snapshot-every: %v: must be 1s or more", c.SnapshotEvery)
	}
	_, err := c.ZonedLogs()
	for _, valid := range []func() error{c.Enforce.Validate, c.validStore, c.validSockets} {
		if err == nil {
			err = valid()
		}
	}
	return c, err
}

// Logger returns a logger that writes to w as c says.
func (c Config) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// validSockets returns an error for an address that is wrong or not safe, and for settings of Unix sockets and TLS that no listener uses.
func (c *Config) validSockets() error {
	resp, respUnix := listen.SocketPath(c.RESP)
	http, httpUnix := listen.SocketPath(c.HTTP)
	sockets, tcp := respUnix || httpUnix, !respUnix && c.RESP != Off || !httpUnix && c.HTTP != Off
	switch {
	case respUnix && httpUnix && resp == http:
		return fmt.Errorf("resp and http: both %s: must be a socket for each", c.RESP)
	case !sockets && c.Socket != (listen.Socket{}):
		return errors.New("socket-mode and socket-owner: set without a Unix socket: must be with resp or http unix:PATH")
	case sockets && !tcp && c.TLSCert != "":
		return errors.New("tls-cert: set with Unix sockets only, which have no TLS: must be without, or with resp or http HOST:PORT")
	}
	return cmp.Or(c.safe("resp", c.RESP), c.safe("http", c.HTTP))
}

// safe returns an error for an address that other machines can reach without tokens or TLS,
// unless these were switched off by their own setting.
func (c *Config) safe(name, addr string) error {
	if addr == Off {
		return nil
	}
	if path, unix := listen.SocketPath(addr); unix {
		if err := listen.ValidSocketPath(path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s: %q: must be an address such as %s, a socket such as unix:/run/lately/%s.sock, or %s", name, addr, DefaultRESP, name, Off)
	}
	if loopback(host) {
		return nil
	}
	var missing, fixes []string
	if c.TokenFile == "" && !c.NoTokens {
		missing, fixes = append(missing, "tokens"), append(fixes, "set token-file (or no-tokens to make everyone an admin)")
	}
	if c.TLSCert == "" && !c.NoTLS {
		missing, fixes = append(missing, "TLS"), append(fixes, "set tls-cert and tls-key (or no-tls to send everything unencrypted)")
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%s: other machines can reach %s without %s: use a loopback address, or %s",
		name, addr, strings.Join(missing, " and "), strings.Join(fixes, " and "))
}

// loopback reports whether only this machine can reach host.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
