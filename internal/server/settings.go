package server

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// A Setting is one setting of a [Config]. It can be given as the flag --name, as the
// variable LATELY_NAME with underscores, and as name in the settings file. The flag
// overrides the variable, and the variable overrides the file.
type Setting struct {
	Name    string
	Usage   string
	Default string // in words
	Bool    bool   // a flag without a value
	List    bool   // a flag or variable may have several values
	Lines   bool   // of a list: they are separated by line ends, not by commas
	Secret  bool   // errors do not show the value

	set func(values []string) error
}

// Set sets the setting. The error has the form "name: value: must be ...", and wraps its
// end.
func (s *Setting) Set(values ...string) error {
	if !s.List && len(values) != 1 {
		return fmt.Errorf("%s: %d values: must be one", s.Name, len(values))
	}
	switch err := s.set(values); {
	case err != nil && s.Secret:
		return fmt.Errorf("%s: %w", s.Name, err)
	case err != nil:
		return fmt.Errorf("%s: %q: %w", s.Name, strings.Join(values, ","), err)
	}
	return nil
}

// SetText is Set from the text of a variable, or of a flag, which may be given several times.
func (s *Setting) SetText(texts ...string) error {
	switch {
	case s.List && s.Lines:
		texts = strings.Split(strings.Join(texts, "\n"), "\n")
	case s.List:
		texts = strings.Split(strings.Join(texts, ","), ",")
	}
	return s.Set(texts...)
}

// Variable returns the name of the variable.
func (s *Setting) Variable() string {
	return "LATELY_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Settings returns all settings of c. Flags with their help, variables, names in the
// settings file and the table in the documentation come from this list.
func (c *Config) Settings() []Setting {
	return []Setting{
		{Name: "rules", Usage: "rules `file` with limits, bans, hot keys and counters; several are one set of rules; may be given several times, a variable has one a line", List: true, Lines: true, set: list(&c.RulesFiles, text)},
		{Name: "demo", Usage: "generate made-up traffic and judge it by built-in rules, to try the console and lately top; only on loopback and in memory", Bool: true, Default: "false", set: one(&c.Demo, yesNo)},
		{Name: "follow", Usage: "log to follow, `FILE[=FORMAT]`: a file, a directory or pattern of logs, a FIFO, - for the standard input, journal or journal:UNIT; may be given several times, in a variable one per line", List: true, Lines: true, set: followedLogs(&c.Follow)},
		{Name: "tz", Usage: "`[FILE=]ZONE` for times without a zone, in one followed log or in all, such as UTC, Europe/Vienna or +05:30; may be given several times", Default: "the zone of the machine", List: true, Lines: true, set: list(&c.Zones, logZone)},
		{Name: "lateness", Usage: "largest `duration` by which an event may be older than its log's newest, for judging events in order, such as 5s", set: one(&c.Lateness, duration)},
		{Name: "silence", Usage: "warn when a followed log has no new line for this `duration`, such as 10m", set: one(&c.Silence, duration)},
		{Name: "resp", Usage: "`address` of the RESP listener, or unix:PATH for a Unix socket, or off", Default: DefaultRESP, set: one(&c.RESP, text)},
		{Name: "http", Usage: "`address` of the HTTP listener and the console, or unix:PATH for a Unix socket, or off", Default: DefaultHTTP, set: one(&c.HTTP, text)},
		{Name: "socket-mode", Usage: "permissions of Unix sockets, such as 0660; clients need to be able to write; 0600 if not set", set: one(&c.Socket.Mode, socketMode)},
		{Name: "socket-owner", Usage: "owner of Unix sockets: `USER`, USER:GROUP or :GROUP", set: one(&c.Socket.Owner, socketOwner)},
		{Name: "data", Usage: "`directory` for counts and bans; without it nothing is written to disk", set: one(&c.Data, text)},
		{Name: "token-file", Usage: "`file` of tokens and their roles; created if it is missing", set: one(&c.TokenFile, text)},
		{Name: "tls-cert", Usage: "`file` of the TLS certificate", set: one(&c.TLSCert, text)},
		{Name: "tls-key", Usage: "`file` of the key of tls-cert", set: one(&c.TLSKey, text)},
		{Name: "tls-client-ca", Usage: "`file` with the CA certificates of clients, whose names have roles in token-file", set: one(&c.TLSClientCA, text)},
		{Name: "store", Usage: "`URL` of the Redis or Valkey that servers share limits and bans in, such as redis://user:password@host:6379, rediss:// with TLS; without it they are in memory", Secret: true, set: one(&c.Store, storeURL)},
		{Name: "store-ca", Usage: "`file` with the CA certificates for the store (default: the system's)", set: one(&c.StoreCA, text)},
		{Name: "store-cert", Usage: "`file` of the client certificate for the store", set: one(&c.StoreCert, text)},
		{Name: "store-key", Usage: "`file` of the key of store-cert", set: one(&c.StoreKey, text)},
		{Name: "store-prefix", Usage: "`text` that begins all keys in the store, instead of lately:", set: one(&c.StorePrefix, text)},
		{Name: "store-timeout", Usage: "how long a call to the store may take before on_store_failure decides; 20ms if not set", set: one(&c.StoreTimeout, duration)},
		{Name: "store-batched", Usage: "allow events without a call of the store, and report them some milliseconds later: faster, with up to an eighth more than a limit", Bool: true, Default: "false", set: one(&c.StoreBatched, yesNo)},
		{Name: "store-nodes", Usage: "least `number` of servers that share the store; a server that starts while the store is unavailable divides limits by it; 1 if not set", set: one(&c.StoreNodes, number)},
		{Name: "no-tokens", Usage: "allow listening beyond loopback without tokens: everyone who can connect is an admin", Bool: true, Default: "false", set: one(&c.NoTokens, yesNo)},
		{Name: "no-tls", Usage: "allow listening beyond loopback without TLS", Bool: true, Default: "false", set: one(&c.NoTLS, yesNo)},
		{Name: "trusted-proxy", Usage: "`network` of trusted proxies, which name the client, for forward-auth and in logs, or unix for proxies on the Unix socket of HTTP; may be a list", List: true, set: c.setProxies},
		{Name: "refusal-page", Usage: "`file` with the HTML page for browsers whose requests are refused by forward-auth; other clients get a problem document", set: one(&c.RefusalPage, text)},
		{Name: "geo", Usage: "mmdb `file` of countries or autonomous systems, for rules with the fields country and asn; may be given several times, a variable has one a line", List: true, Lines: true, set: list(&c.Geo, text)},
		{Name: "host", Usage: "host `name` of the HTTP listener, besides loopback addresses; may be a list", List: true, set: list(&c.Hosts, hostName)},
		{Name: "memory", Usage: "`bytes` for the whole server, such as 2GiB: a quarter for limits and bans, a quarter for counters", Default: "1GiB", set: one(&c.Memory, size)},
		{Name: "keep-events", Usage: "`bytes` for the last events, such as 64MiB, on which a draft of the rules can be tried; if not set, none are kept", set: one(&c.KeepEvents, size)},
		{Name: "max-bans", Usage: "`number` of bans, remembered ones included", Default: "1048576", set: one(&c.MaxBans, number)},
		{Name: "snapshot-every", Usage: "how often counts are written to the data directory", Default: "1m", set: one(&c.SnapshotEvery, duration)},
		{Name: "max-connections", Usage: "`number` of connections to each listener; reduced if memory is below 1GiB", Default: "10000", set: one(&c.MaxConnections, number)},
		{Name: "peer-connections", Usage: "`number` of connections from one address, or one IPv6 /64", Default: "half of max-connections", set: one(&c.PeerConnections, number)},
		{Name: "max-subscribers", Usage: "`number` of event subscribers of each listener", Default: "2048", set: one(&c.MaxSubscribers, number)},
		{Name: "idle-timeout", Usage: "how long a connection may be without a request before it is closed, or never; a subscriber is not idle", Default: "5m", set: one(&c.IdleTimeout, orOff("never"))},
		{Name: "shutdown-timeout", Usage: "how long a server that shuts down waits for requests in progress", Default: "10s", set: one(&c.ShutdownTimeout, duration)},
		{Name: "shutdown-delay", Usage: "how long /readyz fails after SIGTERM before the listeners close, or 0", Default: "2s", set: one(&c.ShutdownDelay, orOff("0", "0s"))},
		{Name: "rules-poll", Usage: "how often the rules file is read to detect changes, or never", Default: "2s", set: one(&c.RulesPoll, orOff("never"))},
		{Name: "nftables", Usage: "have the kernel drop packets of banned clients; needs nft and CAP_NET_ADMIN", Bool: true, Default: "false", set: one(&c.Enforce.NFTables, yesNo)},
		{Name: "deny-file", Usage: "`file` that lists banned clients, for a proxy", set: one(&c.Enforce.DenyFile.Path, text)},
		{Name: "deny-format", Usage: "`format` of the deny file: nginx (the default) or haproxy", set: one(&c.Enforce.DenyFile.Format, text)},
		{Name: "deny-command", Usage: "shell `command` that makes the proxy read the deny file", set: one(&c.Enforce.DenyFile.Command, text)},
		{Name: "deny-every", Usage: "minimum time between runs of deny-command; expired bans wait up to six times as long; 10s if not set", set: one(&c.Enforce.DenyFile.Every, duration)},
		{Name: "crowdsec", Usage: "answer CrowdSec's bouncers on the HTTP listener", Bool: true, Default: "false", set: one(&c.Enforce.CrowdSec, yesNo)},
		{Name: "webhook", Usage: "`URL` to which bans and their ends are sent", set: one(&c.Enforce.Webhook.URL, text)},
		{Name: "webhook-secret-file", Usage: "`file` with the key that signs webhook requests", set: one(&c.Enforce.Webhook.SecretFile, text)},
		{Name: "log-format", Usage: "`format` of the log on stderr: text or json", Default: "text", set: one(&c.LogJSON, logFormat)},
		{Name: "log-level", Usage: "lowest `level` of lines in the log: debug, info, warn or error", Default: "info", set: one(&c.LogLevel, logLevel)},
	}
}

// ReadEnvironment sets in c the settings of the LATELY_* variables of environ. others are the
// names of LATELY_* variables that are not settings. An empty variable counts as not set, so
// that a container can be started without a default of its image. Other LATELY_* variables
// are errors, unless Kubernetes sets them; see serviceLink.
func ReadEnvironment(c *Config, environ []string, others ...string) error {
	all := c.Settings()
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, "LATELY_") || slices.Contains(others, name) {
			continue
		}
		i := slices.IndexFunc(all, func(s Setting) bool { return s.Variable() == name })
		switch {
		case i < 0 && serviceLink.MatchString(line):
			continue
		case i < 0:
			return fmt.Errorf("unknown variable %s: must be a setting of `lately serve --help`, such as %s", name, all[0].Variable())
		case value == "":
			continue
		}
		if err := all[i].SetText(value); err != nil {
			return fmt.Errorf("variable %s: %w", name, err)
		}
	}
	return nil
}

// serviceLink matches the variables, NAME=VALUE, that Kubernetes sets in each pod for a
// Service whose name is "lately" or begins with "lately-". The value decides as well:
// LATELY_PORT=8080 is a mistake of a user, LATELY_PORT=tcp://10.96.0.7:7379 is not.
var serviceLink = regexp.MustCompile(`^LATELY_([A-Z0-9_]+_)?(` + strings.Join([]string{
	`SERVICE_HOST=[0-9a-fA-F.:]+`,
	`SERVICE_PORT(_[A-Z0-9_]+)?=[0-9]+`,
	`PORT(_[0-9]+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://[0-9a-fA-F.:\[\]]+`,
	`PORT_[0-9]+_(TCP|UDP|SCTP)_PROTO=(tcp|udp|sctp)`,
	`PORT_[0-9]+_(TCP|UDP|SCTP)_PORT=[0-9]+`,
	`PORT_[0-9]+_(TCP|UDP|SCTP)_ADDR=[0-9a-fA-F.:]+`,
}, "|") + `)$`)

// A form is the texts that a setting accepts: must says which, and parse reads one.
type form[T any] struct {
	must  string
	parse func(text string) (v T, ok bool)
}

// one sets a field to a value of that form.
func one[T any](field *T, f form[T]) func([]string) error {
	return func(texts []string) error {
		v, ok := f.parse(texts[0])
		if !ok {
			return errors.New("must be " + f.must)
		}
		*field = v
		return nil
	}
}

// list sets a field to values of that form.
func list[T any](field *[]T, f form[T]) func([]string) error {
	return func(texts []string) error {
		all := make([]T, len(texts))
		for i, text := range texts {
			if err := one(&all[i], f)([]string{strings.TrimSpace(text)}); err != nil {
				return err
			}
		}
		*field = all
		return nil
	}
}

var (
	text     = form[string]{"not empty", func(s string) (string, bool) { return s, s != "" }}
	storeURL = form[string]{strings.TrimPrefix(storeMust, "must be "), func(s string) (string, bool) {
		_, err := storeOptions(s)
		return s, err == nil
	}}
	yesNo  = form[bool]{"true or false", valid(strconv.ParseBool)}
	number = form[int]{"a number from 1", func(s string) (int, bool) {
		n, err := strconv.Atoi(s)
		return n, err == nil && n >= 1
	}}
	duration   = form[time.Duration]{"a duration such as 30s or 5m", valid(rulevalue.ParseDuration)}
	size       = form[int64]{"a number of bytes such as 268435456, 256MiB or 2GiB", valid(rulevalue.ParseBytes)}
	logFormat  = form[bool]{"text or json", func(s string) (isJSON, ok bool) { return s == "json", s == "json" || s == "text" }}
	logLevel   = form[slog.Level]{"debug, info, warn or error", parseLevel}
	network    = form[netip.Prefix]{"addresses and networks such as 10.0.0.0/8, or unix", valid(address.ParsePrefix)}
	socketMode = form[fs.FileMode]{"permissions in octal digits such as 0660", func(s string) (fs.FileMode, bool) {
		mode, err := strconv.ParseUint(s, 8, 32)
		return fs.FileMode(mode), err == nil && 0 < mode && mode <= 0o777
	}}
	socketOwner = form[string]{"USER, USER:GROUP or :GROUP", func(s string) (string, bool) {
		return s, regexp.MustCompile(`^[^:\s]*:?[^:\s]+$`).MatchString(s)
	}}
	hostName = form[string]{"host names such as lately.example.org", func(s string) (string, bool) {
		return s, s != "" && !strings.ContainsAny(s, "/@ :")
	}}
)

// setProxies sets what trusted-proxy lists: networks, and the word unix.
func (c *Config) setProxies(texts []string) error {
	networks := slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return strings.TrimSpace(s) == "unix" })
	c.TrustUnix = len(networks) < len(texts)
	return list(&c.TrustedProxies, network)(networks)
}

// orOff is duration, or one of the words that set it to -1.
func orOff(words ...string) form[time.Duration] {
	return form[time.Duration]{"a duration such as 2s, or " + words[0], func(s string) (time.Duration, bool) {
		if slices.Contains(words, s) {
			return -1, true
		}
		return duration.parse(s)
	}}
}

// valid is parse with a bool for its error.
func valid[T any](parse func(string) (T, error)) func(string) (T, bool) {
	return func(s string) (T, bool) {
		v, err := parse(s)
		return v, err == nil
	}
}

func parseLevel(s string) (slog.Level, bool) {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	i := slices.IndexFunc(levels, func(l slog.Level) bool { return strings.EqualFold(s, l.String()) })
	if i < 0 {
		return 0, false
	}
	return levels[i], true
}
