package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/internal/server"
	logs "github.com/lately-go/lately/internal/server/follow"
)

// serveCommand is the flags of serve.
type serveCommand struct {
	config   string // path of the settings file
	settings settingFlags
}

// settingFlags is the flags of settings of a server.
type settingFlags []settingFlag

// configVariable names the settings file, as --config does.
const configVariable = "LATELY_CONFIG"

func newServe() *cobra.Command {
	var c serveCommand
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve limits, bans and counts over RESP and HTTP, with a console",
		Long: `Serve enforces a rules file for programs in any language: over RESP, which every Redis client speaks, and over
HTTP and JSON, with forward-auth for nginx, HAProxy, Envoy, Traefik and Caddy, and a web console. Without any flag it starts in memory,
on loopback, without rules; counters can be used at once. With --demo it has rules and made-up traffic, to try it out.

Each flag except --config is also a variable, LATELY_ and its name in capitals with underscores, and a name in the
settings file. A flag overrides a variable, and a variable overrides the file.

SIGHUP reads rules, tokens and certificates again; if a file has mistakes, the previous ones stay in force. SIGTERM and interrupt
shut the server down: requests in progress are answered, and with --data a last snapshot is written. After SIGTERM, /readyz
first fails for --shutdown-delay, so that load balancers send their requests elsewhere; a second SIGTERM ends the delay.

Exit codes: 0 it was shut down; 1 it cannot listen on an address, or a listener or the last snapshot failed; 2 the command line, a
setting, or a file that it names is wrong; 130 interrupted before it listened.`,
		Example: `  lately serve --demo
  lately serve --rules rules.yaml --data /var/lib/lately
  LATELY_HTTP=127.0.0.1:8080 lately serve`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&c.config, "config", "", "settings `file`, or the variable "+configVariable)
	c.settings = registerSettings(flags, func(string) bool { return true })
	return cmd
}

// registerSettings adds the flags of the settings with these names.
func registerSettings(flags *pflag.FlagSet, with func(name string) bool) settingFlags {
	settings := new(server.Config).Settings()
	all := make(settingFlags, len(settings))
	for i := range all {
		s := &all[i]
		if s.Setting = settings[i]; !with(s.Name) {
			continue
		}
		f := flags.VarPF(s, s.Name, "", s.Usage)
		f.DefValue = s.Default
		if s.Bool {
			f.NoOptDefVal = "true"
		}
	}
	return all
}

// set sets in config what the flags were given.
func (fs settingFlags) set(config *server.Config) (err error) {
	for i, s := range config.Settings() {
		if values := fs[i].values; values != nil {
			err = errors.Join(err, s.SetText(values...))
		}
	}
	return err
}

// A settingFlag is the flag of a setting. It validates values with a Config of its own,
// and keeps them until the settings file and the variables have been read, which it
// overrides.
type settingFlag struct {
	server.Setting
	values []string
}

// Set validates the value and keeps it.
func (f *settingFlag) Set(value string) error {
	if err := f.SetText(value); err != nil {
		return errors.Unwrap(err) // pflag names flag and value
	}
	if !f.List {
		f.values = nil
	}
	f.values = append(f.values, value)
	return nil
}

// String returns the default, for the help.
func (f *settingFlag) String() string { return f.Default }

// Type returns the type that the help shows if the usage names no value.
func (f *settingFlag) Type() string {
	if f.Bool {
		return "bool"
	}
	return "value"
}

func (c *serveCommand) run(cmd *cobra.Command) error {
	config, err := c.read(os.Environ())
	if err != nil {
		return err
	}
	return runServer(cmd, config, func(s *server.Server) { announce(cmd.OutOrStdout(), s, config.Demo) })
}

// runServer runs a server until an interrupt or SIGTERM. It calls ready before that.
func runServer(cmd *cobra.Command, config server.Config, ready func(*server.Server)) error {
	// Before the state is read, which takes time: by default SIGHUP ends a process.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	config.Stdin = logs.NewInput(cmd.InOrStdin())
	s, err := server.New(config, Version(), config.Logger(cmd.ErrOrStderr()))
	if _, busy := errors.AsType[*net.OpError](err); busy {
		return inputErrorOf(err.Error()) // an address that another process has
	} else if err != nil {
		return err
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(s.Memory())
	}
	term := make(chan os.Signal, 2)
	signal.Notify(term, syscall.SIGTERM)
	defer signal.Stop(term)
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				go s.Reload() // logs what is wrong
			case <-term:
				s.Terminate()
			}
		}
	}()
	ready(s)
	if err := s.Run(ctx); err != nil {
		return inputErrorOf(strings.Split(err.Error(), "\n")...)
	}
	return nil
}

// read returns the settings of the file, the variables and the flags.
func (c *serveCommand) read(environ []string) (config server.Config, err error) {
	if path := cmp.Or(c.config, os.Getenv(configVariable)); path != "" {
		if err := readSettings(&config, path); err != nil {
			return config, err
		}
	}
	if err := server.ReadEnvironment(&config, environ, configVariable, tokenVariable); err != nil {
		return config, err
	}
	return config, c.settings.set(&config)
}

// maxSettings is the largest settings file, in bytes.
const maxSettings = 1 << 20

// readSettings reads a settings file.
func readSettings(config *server.Config, path string) error {
	data, err := fileperm.ReadFile(path, maxSettings)
	if err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	return server.ReadSettings(config, path, data)
}

// announce prints where the server listens, and what to do with a demo.
func announce(w io.Writer, s *server.Server, demo bool) {
	resp, http := s.Addresses()
	scheme, tls := "http", ""
	if s.Secure() {
		scheme, tls = "https", " --tls"
	}
	if path, unix := strings.CutPrefix(resp, "unix:"); unix {
		fmt.Fprintf(w, "RESP     %s    redis-cli -s %s\n", resp, path)
	} else if host, port, err := net.SplitHostPort(resp); err == nil {
		fmt.Fprintf(w, "RESP     %s    redis-cli -h %s -p %s%s\n", resp, host, port, tls)
	}
	if path, unix := strings.CutPrefix(http, "unix:"); unix {
		fmt.Fprintf(w, "HTTP     %s    curl --unix-socket %s http://localhost/healthz\n", http, path)
	} else if http != "" {
		fmt.Fprintf(w, "HTTP     %s://%s\nconsole  %s://%s/\n", scheme, http, scheme, http)
	}
	if demo {
		fmt.Fprint(w, "demo     the traffic is made up: open the console, or run lately top in another terminal\n         end the traffic with the button in the console, and the server with Ctrl-C\n")
	}
}
