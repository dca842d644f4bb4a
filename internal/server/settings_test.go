package server

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
)

// Every setting can be given in three ways, with the same effect.
func TestSettingsThreeWays(t *testing.T) {
	values := map[string]string{
		"rules": "r.yaml", "demo": "true", "resp": "127.0.0.1:1", "http": "off", "data": "d", "token-file": "t", "tls-cert": "c", "tls-key": "k", "tls-client-ca": "q", "refusal-page": "p",
		"no-tokens": "true", "no-tls": "true", "follow": "access.log=clf", "tz": "access.log=UTC", "lateness": "5s", "silence": "10m", "trusted-proxy": "10.0.0.0/8,unix,192.0.2.1", "host": "a.example,b.example", "geo": "a.mmdb", "memory": "4GiB",
		"keep-events": "64MiB", "store": "rediss://u:p@h", "store-ca": "a", "store-cert": "b", "store-key": "e", "store-prefix": "x-", "store-timeout": "5ms", "store-batched": "true", "store-nodes": "3", "max-bans": "1000", "snapshot-every": "30s", "max-connections": "5", "peer-connections": "4",
		"max-subscribers": "3", "idle-timeout": "10m", "socket-mode": "0660", "socket-owner": "lately:www-data", "shutdown-timeout": "1m", "shutdown-delay": "3s", "rules-poll": "never", "nftables": "true", "deny-file": "f", "deny-format": "haproxy", "deny-command": "reload it", "deny-every": "1m", "crowdsec": "true", "webhook": "https://example.org/", "webhook-secret-file": "s", "log-format": "json", "log-level": "warn",
	}
	clf := must.Get(accesslog.ParseFormat("clf"))(t)
	want := Config{
		RulesFiles: []string{"r.yaml"}, Demo: true, RESP: "127.0.0.1:1", HTTP: "off", Data: "d", TokenFile: "t", TLSCert: "c", TLSKey: "k", TLSClientCA: "q", RefusalPage: "p", NoTokens: true, NoTLS: true,
		Follow: []follow.Log{{Path: "access.log", Format: clf}}, Zones: []LogZone{{"access.log", time.UTC}}, Lateness: 5 * time.Second, Silence: 10 * time.Minute,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32")},
		TrustUnix:      true, Socket: listen.Socket{Mode: 0o660, Owner: "lately:www-data"},
		Hosts: []string{"a.example", "b.example"}, Memory: 4 << 30, KeepEvents: 64 << 20, MaxBans: 1000, Geo: []string{"a.mmdb"},
		Store: "rediss://u:p@h", StoreCA: "a", StoreCert: "b", StoreKey: "e", StorePrefix: "x-", StoreTimeout: 5 * time.Millisecond, StoreBatched: true, StoreNodes: 3,
		SnapshotEvery: 30 * time.Second, ShutdownDelay: 3 * time.Second, RulesPoll: -1, LogJSON: true, LogLevel: slog.LevelWarn,
		Enforce: enforce.Targets{
			NFTables: true, DenyFile: enforce.DenyFile{Path: "f", Format: "haproxy", Command: "reload it", Every: time.Minute},
			CrowdSec: true, Webhook: enforce.Webhook{URL: "https://example.org/", SecretFile: "s"},
		},
		Limits: access.Limits{MaxConnections: 5, PeerConnections: 4, MaxSubscribers: 3, IdleTimeout: 10 * time.Minute, ShutdownTimeout: time.Minute},
	}
	var flags, variables, file Config
	var environ []string
	var yaml strings.Builder
	for _, s := range flags.Settings() {
		v, ok := values[s.Name]
		if !ok {
			t.Fatalf("no test of the setting %s", s.Name)
		}
		if err := s.SetText(v); err != nil {
			t.Error(err)
		}
		environ = append(environ, s.Variable()+"="+v)
		if s.List {
			v = "[" + v + "]"
		}
		yaml.WriteString(s.Name + ": " + v + "\n")
	}
	if err := ReadEnvironment(&variables, append(environ, "PATH=/bin", "LATELY_CONFIG=x"), "LATELY_CONFIG"); err != nil {
		t.Error(err)
	}
	if err := ReadSettings(&file, "lately.yaml", []byte(yaml.String())); err != nil {
		t.Error(err)
	}
	for name, got := range map[string]Config{"flags": flags, "variables": variables, "file": file} {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
}

// A wrong setting is rejected with its source and what it must be.
func TestSettingsMistakes(t *testing.T) {
	for _, x := range []struct{ yaml, want string }{
		{"memory: lots\n", `lately.yaml:1:9: memory: "lots": must be a number of bytes such as 268435456, 256MiB or 2GiB`},
		{"shutdown-delay: none\n", `lately.yaml:1:17: shutdown-delay: "none": must be a duration such as 2s, or 0`},
		{"resp: 127.0.0.1:1\nshutdown-timeout: soon\n", `lately.yaml:2:19: shutdown-timeout: "soon": must be a duration such as 30s or 5m`},
		{"max-bnas: 1\n", `lately.yaml:1:1: unknown setting "max-bnas": did you mean max-bans?`},
		{"memory: 1GiB\nnothing-like-it: 1\n", `lately.yaml:2:1: unknown setting "nothing-like-it": must be one that lately serve --help lists, such as rules`},
		{"version: 1\nlimits: []\n", `lately.yaml:1:1: this looks like a rules file, since it has "version": give it with --rules, or name it in the settings file as "rules: lately.yaml"`},
		{"max-bans: [1, 2]\n", `lately.yaml:1:11: max-bans: 2 values: must be one`},
		{"max-bans: 0\n", `must be a number from 1`},
		{"no-tls: perhaps\n", `must be true or false`},
		{"trusted-proxy: everyone\n", `must be addresses and networks such as 10.0.0.0/8`},
		{"host: http://x\n", `must be host names such as lately.example.org`},
		{"host: a:1\n", `must be host names such as lately.example.org`},
		{"rules-poll: 1\n", `must be a duration such as 2s, or never`},
		{"log-format: xml\n", `lately.yaml:1:13: log-format: "xml": must be text or json`},
		{"log-level: loud\n", `lately.yaml:1:12: log-level: "loud": must be debug, info, warn or error`},
		{"log-level: info+4\n", `must be debug, info, warn or error`},
		{"- resp\n", `file: a list: must be a mapping of settings`},
		{"memory: 9999999TiB\n", `must be a number of bytes`},
	} {
		err := ReadSettings(new(Config), "lately.yaml", []byte(x.yaml))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: got %v, want %s", x.yaml, err, x.want)
		}
	}
	for _, line := range []string{"LATELY_BUDJET=1", "LATELY_MAX_BANS=none", "LATELY_LOG_LEVEL=loud"} {
		err := ReadEnvironment(new(Config), []string{line})
		if err == nil || !strings.Contains(err.Error(), "must be") || !strings.Contains(err.Error(), strings.Split(line, "=")[0]) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A server that strangers can reach has tokens and TLS, unless a flag turns them off by name.
func TestConfigBeyondLoopback(t *testing.T) {
	for _, x := range []struct {
		c    Config
		want string // "" is allowed
	}{
		{Config{}, ""},
		{Config{RESP: "localhost:1", HTTP: "[::1]:2"}, ""},
		{Config{RESP: "[::ffff:127.0.0.1]:1"}, ""},
		{Config{RESP: "0.0.0.0:7379"}, "without tokens and TLS: use a loopback address, or set token-file (or no-tokens "},
		{Config{RESP: "0.0.0.0:7379"}, " and set tls-cert and tls-key (or no-tls "},
		{Config{HTTP: ":7380"}, "http: other machines can reach :7380"},
		{Config{HTTP: "192.0.2.1:1", TokenFile: "t"}, "without TLS: use a loopback address, or set tls-cert and tls-key"},
		{Config{HTTP: "192.0.2.1:1", TLSCert: "c", TLSKey: "k"}, "without tokens: use a loopback address, or set token-file"},
		{Config{HTTP: "example.org:1", TokenFile: "t", TLSCert: "c", TLSKey: "k"}, ""},
		{Config{RESP: "0.0.0.0:7379", NoTokens: true}, "without TLS"},
		{Config{RESP: "0.0.0.0:7379", NoTLS: true}, "without tokens"},
		{Config{RESP: "0.0.0.0:7379", TokenFile: "t", NoTLS: true}, ""},
		{Config{RESP: "0.0.0.0:7379", NoTokens: true, TLSCert: "c", TLSKey: "k"}, ""},
		{Config{RESP: "0.0.0.0:7379", NoTokens: true, NoTLS: true}, ""},
		{Config{RESP: "off", HTTP: "off"}, "must be at most one"},
		{Config{TLSCert: "c"}, "must be both or none"},
		{Config{TLSClientCA: "q", TokenFile: "t"}, "tls-client-ca: must be set with tls-cert, tls-key and token-file"},
		{Config{TLSClientCA: "q", TLSCert: "c", TLSKey: "k"}, "tls-client-ca: must be set with"},
		{Config{RESP: "7379"}, "must be an address"},
		{Config{RESP: "unix:/r", HTTP: "unix:/h", Socket: listen.Socket{Mode: 0o666}}, ""},
		{Config{RESP: "unix:/r", TLSCert: "c", TLSKey: "k"}, ""},
		{Config{RESP: "unix:r"}, `resp: "r": must be an absolute path without blanks`},
		{Config{HTTP: "unix:/" + strings.Repeat("x", 200)}, "too long for a Unix socket"},
		{Config{RESP: "unix:/a", HTTP: "unix:///a"}, "must be a socket for each"},
		{Config{Socket: listen.Socket{Mode: 0o660}}, "set without a Unix socket"},
		{Config{RESP: "unix:/r", HTTP: "off", TLSCert: "c", TLSKey: "k"}, "set with Unix sockets only"},
		{Config{Demo: true, RESP: "unix:/r", HTTP: "unix:/h"}, ""},
		{Config{SnapshotEvery: 1}, "must be 1s or more"},
		{Config{Limits: access.Limits{IdleTimeout: 1}}, "idle-timeout: 1ns: must be 1s or more, or never"},
	} {
		_, err := x.c.withDefaults()
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: got %v, want %q", x.c, err, x.want)
		}
	}
}

// The level and the format of the log follow the settings.
func TestConfigLogger(t *testing.T) {
	for _, x := range []struct {
		format, level string
		want          []string // how lines begin
	}{
		{"", "", []string{"time=", "time=", "time="}}, // info, warn, error
		{"json", "", []string{`{"time":`, `{"time":`, `{"time":`}},
		{"json", "ERROR", []string{`{"time":`}},
		{"text", "debug", []string{"time=", "time=", "time=", "time="}},
		{"json", "debug", []string{`{"time":`, `{"time":`, `{"time":`, `{"time":`}},
	} {
		var c Config
		for _, s := range c.Settings() {
			if v := map[string]string{"log-format": x.format, "log-level": x.level}[s.Name]; v != "" {
				must.Do(t, s.SetText(v))
			}
		}
		var out strings.Builder
		log := c.Logger(&out)
		log.Debug("a")
		log.Info("b")
		log.Warn("c")
		log.Error("d")
		lines := strings.SplitAfter(out.String(), "\n")
		ok := len(lines) == len(x.want)+1
		for i := range x.want {
			ok = ok && strings.HasPrefix(lines[i], x.want[i])
		}
		if !ok || !strings.Contains(lines[len(lines)-2], "d") {
			t.Errorf("%q and %q:\n%s", x.format, x.level, out.String())
		}
	}
}

// The documented default of a setting is the value in effect without it.
func TestSettingsDefaults(t *testing.T) {
	want := must.Get(Config{}.withDefaults())(t)
	got := want
	for _, s := range got.Settings() {
		switch s.Name {
		case "tz", "max-bans", "peer-connections": // described in words, or set in the engine
		default:
			if s.Default == "" {
				continue
			}
			if err := s.SetText(s.Default); err != nil {
				t.Error(err)
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("by the named defaults:\n%+v\nby the defaults:\n%+v", got, want)
	}
}

func FuzzReadSettings(f *testing.F) {
	f.Add([]byte("resp: 127.0.0.1:1\nhost: [a, b]\n"))
	f.Add([]byte("budget: 1e9"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Config
		if err := ReadSettings(&c, "f", data); err == nil && (c.MaxBans < 0 || c.Memory < 0) {
			t.Errorf("%q is read as %+v", data, c)
		}
	})
}

// TestSettingsTable compares the table in the documentation with the settings. Run it
// with UPDATE=1 to write the table.
func TestSettingsTable(t *testing.T) {
	const path, begin, end = "../../docs/operations.md", "<!-- settings -->\n", "<!-- end of settings -->"
	text := must.Get(os.ReadFile(path))(t)
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of settings", path)
	}
	var table strings.Builder
	table.WriteString("| setting | variable | default | |\n|---|---|---|---|\n")
	for _, s := range new(Config).Settings() {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | %s |\n", s.Name, s.Variable(), s.Default, strings.ReplaceAll(s.Usage, "`", ""))
	}
	want := before + begin + table.String() + end + after
	if os.Getenv("UPDATE") != "" {
		must.Do(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	if want != string(text) {
		t.Errorf("the table of settings in %s is out of date; run this test with UPDATE=1", path)
	}
}
