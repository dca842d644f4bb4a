package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/lately-go/lately/server/access"
)

// Config says how a Server runs. Its zero value is the defaults: in memory, on
// loopback, without rules and without tokens. Flags, LATELY_* variables and the
// settings file all fill this struct; see [Settings].
type Config struct {
	// RulesFile is the path of the rules file; "" means that there is none.
	RulesFile string

	// RESP and HTTP are the addresses to listen on; "" means the defaults,
	// and "off" none.
	RESP, HTTP string

	// Data is the directory where counts and bans are kept; "" means that
	// nothing is written.
	Data string

	// TokenFile is the file with the tokens and their roles; see package
	// server/access. One that is not there is made by New, with a token for
	// each role. "" means that everyone who can connect may do everything,
	// which is allowed on loopback only, unless Insecure.
	TokenFile string

	// TLSCert and TLSKey are the files of the certificate and its key, for
	// both listeners; "" means no TLS, which is allowed on loopback only, unless
	// Insecure.
	TLSCert, TLSKey string

	// Insecure lets the server listen beyond loopback without tokens or
	// without TLS.
	Insecure bool

	// TrustedProxies is the networks whose word about who a client is counts,
	// for forward-auth.
	TrustedProxies []netip.Prefix

	// Hosts is the names by which the HTTP listener may be called, next to
	// loopback's and the address it listens on.
	Hosts []string

	// Budget, CounterBudget and Bans are as in engine.Config.
	Budget, CounterBudget int64
	Bans                  int

	// SnapshotEvery is how often counts are written to Data; 0 means a minute.
	SnapshotEvery time.Duration

	// Bounds is how many connections and subscribers each listener can have,
	// and how long a server that is told to end waits for what is under way.
	access.Bounds

	// Watch is how often the rules file is looked at for changes; 0 means two
	// seconds, less than 0 never.
	Watch time.Duration

	// LogJSON and LogLevel are for Logger: lines of JSON instead of text, and
	// what is worth a line; 0 means [slog.LevelInfo]. New takes any logger.
	LogJSON  bool
	LogLevel slog.Level
}

// The addresses of a server that is not told others.
const (
	DefaultRESP = "127.0.0.1:7379"
	DefaultHTTP = "127.0.0.1:7380"
)

// Off is the address of a listener that there is not.
const Off = "off"

// Validate returns the error that New would return for c itself, without looking at
// the files that it names.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}

// withDefaults returns c with what is not set, or the error that names the field
// that is wrong, its value and what is allowed.
func (c Config) withDefaults() (Config, error) {
	set(&c.RESP, DefaultRESP)
	set(&c.HTTP, DefaultHTTP)
	set(&c.SnapshotEvery, time.Minute)
	set(&c.Watch, 2*time.Second)
	var err error
	if c.Bounds, err = c.Bounds.WithDefaults(); err != nil {
		return c, err
	}
	switch {
	case c.RESP == Off && c.HTTP == Off:
		return c, errors.New("resp and http are both off; allowed is at most one of them")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return c, errors.New("tls-cert and tls-key are not both set; allowed is both or none")
	case c.SnapshotEvery < time.Second:
		return c, fmt.Errorf("snapshot-every is %v; allowed is from 1s", c.SnapshotEvery)
	}
	for _, l := range []struct{ name, addr string }{{"resp", c.RESP}, {"http", c.HTTP}} {
		if err := c.safe(l.name, l.addr); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Logger returns a logger that writes to w as c says.
func (c Config) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func set[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// safe returns an error for an address that strangers could reach unseen.
func (c *Config) safe(name, addr string) error {
	if addr == Off {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s is %q; allowed is an address such as %s, or %s", name, addr, DefaultRESP, Off)
	}
	if c.Insecure || loopback(host) {
		return nil
	}
	switch missing := c.TokenFile == ""; {
	case missing && c.TLSCert == "":
		return fmt.Errorf("%s is %s, which others can reach; allowed is a loopback address, or token-file, tls-cert and tls-key with it, or insecure", name, addr)
	case missing:
		return fmt.Errorf("%s is %s, which others can reach, and there are no tokens; allowed is a loopback address, or token-file with it, or insecure", name, addr)
	case c.TLSCert == "":
		return fmt.Errorf("%s is %s, which others can reach, and tokens would be sent in the clear; allowed is a loopback address, or tls-cert and tls-key with it, or insecure", name, addr)
	}
	return nil
}

// loopback reports whether only this machine can reach host.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
