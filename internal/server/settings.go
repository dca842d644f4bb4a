package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

// A Setting is one setting of a [Config]. It can be given as the flag --name, as the
// variable LATELY_NAME with underscores, and as name in the settings file. The flag
// overrides the variable, and the variable overrides the file.
type Setting struct {
	Name    string
	Usage   string
	Default string // in words
	Bool    bool   // a flag without a value
	List    bool   // commas separate the values of a flag or variable

	set func(values []string) error
}

// Set sets the setting. The error has the form "name: value: must be ...", and wraps its
// end.
func (s *Setting) Set(values ...string) error {
	if !s.List && len(values) != 1 {
		return fmt.Errorf("%s: %d values: must be one", s.Name, len(values))
	}
	if err := s.set(values); err != nil {
		return fmt.Errorf("%s: %q: %w", s.Name, strings.Join(values, ","), err)
	}
	return nil
}

// SetText is Set from the text of a flag or a variable.
func (s *Setting) SetText(value string) error {
	if s.List {
		return s.Set(strings.Split(value, ",")...)
	}
	return s.Set(value)
}

// Variable returns the name of the variable.
func (s *Setting) Variable() string {
	return "LATELY_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Settings returns all settings of c. Flags with their help, variables, names in the
// settings file and the table in the documentation come from this list.
func (c *Config) Settings() []Setting {
	return []Setting{
		{Name: "rules", Usage: "rules `file` with limits, bans, hot keys and counters", set: setText(&c.RulesFile)},
		{Name: "resp", Usage: "`address` of the RESP listener, or off", Default: DefaultRESP, set: setText(&c.RESP)},
		{Name: "http", Usage: "`address` of the HTTP listener and the console, or off", Default: DefaultHTTP, set: setText(&c.HTTP)},
		{Name: "data", Usage: "`directory` for counts and bans; without it nothing is written to disk", set: setText(&c.Data)},
		{Name: "token-file", Usage: "`file` of tokens and their roles; created if it is missing", set: setText(&c.TokenFile)},
		{Name: "tls-cert", Usage: "`file` of the TLS certificate", set: setText(&c.TLSCert)},
		{Name: "tls-key", Usage: "`file` of its key", set: setText(&c.TLSKey)},
		{Name: "no-tokens", Usage: "allow listening beyond loopback without tokens: everyone who can connect is an admin", Bool: true, Default: "false", set: setBool(&c.NoTokens)},
		{Name: "no-tls", Usage: "allow listening beyond loopback without TLS", Bool: true, Default: "false", set: setBool(&c.NoTLS)},
		{Name: "event-time", Usage: "judge by the times of events (CHECK ... AT) instead of the clock, to compare with replay", Bool: true, Default: "false", set: setBool(&c.EventTime)},
		{Name: "trusted-proxy", Usage: "`network` of proxies that are trusted to name the client, for forward-auth; may be a list", List: true, set: c.setProxies},
		{Name: "host", Usage: "host `name` of the HTTP listener, besides loopback addresses; may be a list", List: true, set: c.setHosts},
		{Name: "memory", Usage: "`bytes` for the whole server, such as 2GiB; more if the limits below need it", Default: "1GiB", set: setBytes(&c.Memory)},
		{Name: "memory-limit", Usage: "`bytes` for limits and bans, such as 256MiB", Default: "a quarter of memory", set: setBytes(&c.MemoryLimit)},
		{Name: "counter-budget", Usage: "`bytes` for counters", Default: "a quarter of memory", set: setBytes(&c.CounterBudget)},
		{Name: "max-bans", Usage: "`number` of bans, remembered ones included", Default: "1048576", set: setNumber(&c.MaxBans)},
		{Name: "snapshot-every", Usage: "how often counts are written to the data directory", Default: "1m", set: setDuration(&c.SnapshotEvery, "")},
		{Name: "max-connections", Usage: "`number` of connections of each listener; fewer with less memory than 1GiB", Default: "10000", set: setNumber(&c.MaxConnections)},
		{Name: "peer-connections", Usage: "`number` of them that one address can have, or one /64 of IPv6", Default: "half of max-connections", set: setNumber(&c.PeerConnections)},
		{Name: "max-subscribers", Usage: "`number` of subscribers to events of each listener", Default: "2048", set: setNumber(&c.MaxSubscribers)},
		{Name: "shutdown-timeout", Usage: "how long a server that shuts down waits for requests in progress", Default: "10s", set: setDuration(&c.ShutdownTimeout, "")},
		{Name: "shutdown-delay", Usage: "how long /readyz fails after SIGTERM before the listeners close, or 0", Default: "2s", set: setDuration(&c.ShutdownDelay, "0")},
		{Name: "rules-poll", Usage: "how often the rules file is read to detect changes, or never", Default: "2s", set: setDuration(&c.RulesPoll, "never")},
		{Name: "log-format", Usage: "`format` of the log on stderr: text or json", Default: "text", set: c.setLogFormat},
		{Name: "log-level", Usage: "lowest `level` of lines in the log: debug, info, warn or error", Default: "info", set: c.setLogLevel},
	}
}

// ReadSettings sets in c the settings of a settings file. The error is [rules.Errors].
func ReadSettings(c *Config, file string, data []byte) error {
	all := c.Settings()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	given, err := rules.ParseSettings(file, data, names)
	if err != nil {
		return err
	}
	var errs rules.Errors
	for i := range given {
		s := &all[slices.Index(names, given[i].Name)]
		if err := s.Set(given[i].Values...); err != nil {
			errs = append(errs, given[i].Error(file, err.Error()))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// ReadEnvironment sets in c the settings of the LATELY_* variables of environ. others are the
// names of LATELY_* variables that are not settings. An empty variable counts as not
// set, so that a container can be started without a default of its image. Any other
// unknown LATELY_* variable is an error, most likely a typing mistake, unless
// Kubernetes sets it for a Service; see serviceLink.
func ReadEnvironment(c *Config, environ []string, others ...string) error {
	all := c.Settings()
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, "LATELY_") || slices.Contains(others, name) {
			continue
		}
		i := slices.IndexFunc(all, func(s Setting) bool { return s.Variable() == name })
		switch {
		case i < 0 && serviceLink(name, value):
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

func setText(field *string) func([]string) error {
	return func(v []string) error {
		if v[0] == "" {
			return errors.New("must be not empty")
		}
		*field = v[0]
		return nil
	}
}

func setBool(field *bool) func([]string) error {
	return func(v []string) error {
		b, err := strconv.ParseBool(v[0])
		if err != nil {
			return errors.New("must be true or false")
		}
		*field = b
		return nil
	}
}

func setNumber(field *int) func([]string) error {
	return func(v []string) error {
		n, err := strconv.Atoi(v[0])
		if err != nil || n < 1 {
			return errors.New("must be a number from 1")
		}
		*field = n
		return nil
	}
}

// setDuration sets a duration. The word off, if there is one, sets it to -1.
func setDuration(field *time.Duration, off string) func([]string) error {
	return func(v []string) error {
		d, err := rules.ParseDuration(v[0])
		switch {
		case off != "" && (v[0] == off || off == "0" && v[0] == "0s"):
			d = -1
		case err != nil && off != "":
			return errors.New("must be a duration such as 2s, or " + off)
		case err != nil:
			return errors.New("must be a duration such as 30s or 5m")
		}
		*field = d
		return nil
	}
}

func setBytes(field *int64) func([]string) error {
	return func(v []string) error {
		n, ok := parseBytes(v[0])
		if !ok {
			return errors.New("must be a number of bytes such as 268435456, 256MiB or 2GiB")
		}
		*field = n
		return nil
	}
}

// parseBytes parses a number of bytes.
func parseBytes(s string) (int64, bool) {
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if digits, ok := strings.CutSuffix(s, unit); ok {
			s, shift = digits, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > (1<<62)>>shift {
		return 0, false
	}
	return n << shift, true
}

func (c *Config) setLogFormat(v []string) error {
	if v[0] != "text" && v[0] != "json" {
		return errors.New("must be text or json")
	}
	c.LogJSON = v[0] == "json"
	return nil
}

func (c *Config) setLogLevel(v []string) error {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if strings.EqualFold(v[0], level.String()) {
			c.LogLevel = level
			return nil
		}
	}
	return errors.New("must be debug, info, warn or error")
}

func (c *Config) setProxies(v []string) error {
	var prefixes []netip.Prefix
	for _, s := range v {
		p, err := match.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return errors.New("must be addresses and networks such as 10.0.0.0/8")
		}
		prefixes = append(prefixes, p)
	}
	c.TrustedProxies = prefixes
	return nil
}

func (c *Config) setHosts(v []string) error {
	var hosts []string
	for _, s := range v {
		if s = strings.TrimSpace(s); s == "" || strings.ContainsAny(s, "/@ ") {
			return errors.New("must be host names such as lately.example.org")
		}
		hosts = append(hosts, s)
	}
	c.Hosts = hosts
	return nil
}
