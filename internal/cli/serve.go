package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lately-go/lately/internal/fileperm"
	"github.com/lately-go/lately/internal/server"
)

// serveCommand is the flags of serve that are no settings of the server.
type serveCommand struct {
	config string
	flags  []settingFlag
}

// configVariable names the settings file, as --config does.
const configVariable = "LATELY_CONFIG"

func newServe() *cobra.Command {
	var c serveCommand
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve limits, bans and counts over RESP and HTTP, with a console",
		Long: `Serve enforces a rules file for programs in any language: over RESP, which every Redis client speaks, and over
HTTP and JSON, with forward-auth for nginx, HAProxy, Envoy, Traefik and Caddy, and a web console. Without any flag it starts in memory,
on loopback, without rules; counters can be added to at once.

Each flag but --config is also a variable, LATELY_ and its name in capitals with underscores, and a name in the
settings file. A flag counts before a variable, and that before the file.

SIGHUP reads rules, tokens and certificate again; a file with mistakes leaves those in force. SIGTERM and
interrupt end it in order: what is under way is finished, and with --data a last snapshot is written. Before that, SIGTERM
has /readyz say no for --shutdown-delay, so that load balancers send their requests elsewhere; a second one ends the delay.`,
		Example: `  lately serve
  lately serve --rules rules.yaml --data /var/lib/lately
  LATELY_HTTP=127.0.0.1:8080 lately serve`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("serve has the argument %q; allowed are flags only", args[0])
			}
			return nil
		},
		Annotations: map[string]string{endsInOrder: "yes"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&c.config, "config", "", "settings `file`, or the variable "+configVariable)
	settings := server.Settings()
	c.flags = make([]settingFlag, len(settings))
	for i := range settings {
		c.flags[i].setting = &settings[i]
		f := flags.VarPF(&c.flags[i], settings[i].Name, "", settings[i].Usage)
		f.DefValue = settings[i].Default
		if settings[i].Bool {
			f.NoOptDefVal = "true"
		}
	}
	return cmd
}

// A settingFlag is the flag of a setting. It keeps what was said until the variables
// and the settings file have been read, for which they come first.
type settingFlag struct {
	setting *server.Setting
	values  []string
}

var _ pflag.Value = new(settingFlag)

// Set checks the value and keeps it.
func (f *settingFlag) Set(value string) error {
	if err := f.setting.SetText(new(server.Config), value); err != nil {
		_, text, _ := strings.Cut(err.Error(), "must be ")
		return errors.New("must be " + text)
	}
	if !f.setting.List {
		f.values = nil
	}
	f.values = append(f.values, value)
	return nil
}

// String returns the default, for the help.
func (f *settingFlag) String() string {
	if f.setting == nil {
		return ""
	}
	return f.setting.Default
}

// Type says nothing: the usage names the value.
func (f *settingFlag) Type() string {
	if f.setting != nil && f.setting.Bool {
		return "bool"
	}
	return "value"
}

func (c *serveCommand) run(cmd *cobra.Command) error {
	config, err := c.settings(os.Environ())
	if err != nil {
		return err
	}
	// Before the state is read, which takes its time: a signal that nobody waits for ends the process.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	s, err := server.New(config, versionText(), config.Logger(cmd.ErrOrStderr()))
	if err != nil {
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
	go reloadOnHangup(ctx, s, hangup)
	go terminateOn(ctx, s, term)
	announce(cmd.OutOrStdout(), s)
	if err := s.Run(ctx); err != nil {
		return &inputError{strings.Split(err.Error(), "\n")}
	}
	return nil
}

// settings returns what file, variables and flags say.
func (c *serveCommand) settings(environ []string) (config server.Config, err error) {
	path := c.config
	for _, line := range environ {
		if name, value, _ := strings.Cut(line, "="); name == configVariable && path == "" {
			path = value
		}
	}
	if path != "" {
		data, err := readFile(path)
		if err != nil {
			return config, fmt.Errorf("settings file: %w", err)
		}
		if err := server.ReadSettings(&config, path, data); err != nil {
			return config, err
		}
	}
	if err := server.ReadEnvironment(&config, environ, configVariable); err != nil {
		return config, err
	}
	for i := range c.flags {
		if f := &c.flags[i]; len(f.values) > 0 {
			if err := f.setting.SetText(&config, strings.Join(f.values, ",")); err != nil {
				return config, err
			}
		}
	}
	return config, nil
}

// maxSettings is the largest settings file, in bytes.
const maxSettings = 1 << 20

func readFile(path string) ([]byte, error) { return fileperm.ReadFile(path, maxSettings) }

// reloadOnHangup reloads at each SIGHUP. What is wrong is in the log.
func reloadOnHangup(ctx context.Context, s *server.Server, hangup <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			_ = s.Reload()
		}
	}
}

// terminateOn ends the server at SIGTERM after its delay, and at a second one at once.
func terminateOn(ctx context.Context, s *server.Server, term <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-term:
			s.Terminate()
		}
	}
}

// announce says where the server listens.
func announce(w io.Writer, s *server.Server) {
	resp, http := s.Addresses()
	scheme, tls := "http", ""
	if s.Secure() {
		scheme, tls = "https", " --tls"
	}
	if resp != "" {
		host, port := split(resp)
		fmt.Fprintf(w, "RESP     %s    redis-cli -h %s -p %s%s\n", resp, host, port, tls)
	}
	if http != "" {
		fmt.Fprintf(w, "HTTP     %s://%s\nconsole  %s://%s/\n", scheme, http, scheme, http)
	}
}

func split(addr string) (host, port string) {
	i := strings.LastIndexByte(addr, ':')
	return strings.Trim(addr[:i], "[]"), addr[i+1:]
}
