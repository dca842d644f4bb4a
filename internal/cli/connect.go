package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/server/access"
)

// tokenVariable has the token for a server, if --token-file does not name a file.
const tokenVariable = "LATELY_TOKEN"

// answerCodes is the part of the help with the exit codes of commands that ask a server.
const answerCodes = `Exit codes: 0 success; 1 the server cannot be reached or answers with an error, or the output could not
be written; 2 the command line is wrong, and nothing was done; 130 interrupted.`

// connectFlags is the flags of all commands that ask a running server: where it is, and
// the token for it.
type connectFlags struct {
	role                    access.Role // that the token needs
	addr, tokenFile, caFile string
	certFile, keyFile       string
	insecure                bool
}

// register adds the flags to cmd, which needs a token with that role.
func (f *connectFlags) register(cmd *cobra.Command, role access.Role) {
	f.registerAddr(cmd, role, "http://127.0.0.1:7380", "`ADDRESS` of the server's HTTP listener: a URL, HOST:PORT or unix:PATH")
}

// registerAddr is register with another default and help of the address.
func (f *connectFlags) registerAddr(cmd *cobra.Command, role access.Role, byDefault, usage string) {
	f.role = role
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", byDefault, usage)
	flags.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token, or the token file of the server: the token with the lowest role that suffices is sent (default: the token in "+tokenVariable+", if it is set)")
	flags.StringVar(&f.caFile, "ca-file", "", "`FILE` with the certificates (PEM) to trust instead of the system's")
	flags.StringVar(&f.certFile, "cert-file", "", "`FILE` with the client certificate (PEM) for a server with tls-client-ca")
	flags.StringVar(&f.keyFile, "key-file", "", "`FILE` with the key of --cert-file")
	flags.BoolVar(&f.insecure, "insecure", false, "send the token to another machine without encryption")
}

// checkAddr returns an error for a flag of cmd that needs --addr, or that --addr does not
// use: with it, those of the connection and used are allowed.
func (f *connectFlags) checkAddr(cmd *cobra.Command, why string, used ...string) (err error) {
	connecting := []string{"token-file", "ca-file", "cert-file", "key-file", "insecure"}
	used = append(used, "addr")
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch connects := slices.Contains(connecting, flag.Name); {
		case f.addr == "" && connects:
			err = fmt.Errorf("--%s: must be given with --addr: logs are read without a connection", flag.Name)
		case f.addr != "" && !connects && !slices.Contains(used, flag.Name):
			err = fmt.Errorf("--%s: must not be given with --addr: %s", flag.Name, why)
		}
	})
	return err
}

// client returns the client that the flags and the environment describe.
func (f *connectFlags) client() (*client.Client, error) {
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	config := client.Config{Insecure: f.insecure, Token: token}
	if config.TLS, err = f.tls(); err != nil {
		return nil, err
	}
	c, err := client.New(f.addr, config)
	if err != nil {
		return nil, fmt.Errorf("--addr: %w", err)
	}
	return c, nil
}

// tls returns the configuration of TLS, nil for Go's default. The client certificate is read for each
// connection, so that a command that runs for long can use its successor.
func (f *connectFlags) tls() (*tls.Config, error) {
	if f.caFile == "" && f.certFile == "" && f.keyFile == "" {
		return nil, nil
	}
	config := new(tls.Config)
	if f.caFile != "" {
		pem, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ca-file: %s: no certificate: must be certificates as PEM", f.caFile)
		}
	}
	if (f.certFile == "") != (f.keyFile == "") {
		return nil, errors.New("--cert-file and --key-file: one is missing: must be both or none")
	}
	if f.certFile != "" {
		if _, err := tls.LoadX509KeyPair(f.certFile, f.keyFile); err != nil {
			return nil, fmt.Errorf("--cert-file %s and --key-file %s: %w", f.certFile, f.keyFile, err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
			return &cert, err
		}
	}
	return config, nil
}

// token returns the token in --token-file or else in the environment, or "".
func (f *connectFlags) token() (string, error) {
	if f.tokenFile != "" {
		token, err := access.ReadToken(f.tokenFile, f.role)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		return token, nil
	}
	words := strings.Fields(os.Getenv(tokenVariable))
	if len(words) > 1 {
		return "", fmt.Errorf("variable %s: %d words: must be one, the token", tokenVariable, len(words))
	}
	return strings.Join(words, ""), nil
}

// serverFailed is the error of a command that a server does not answer, or refuses to, or that was
// interrupted meanwhile.
func serverFailed(ctx context.Context, c *client.Client, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sentences := []string{fmt.Sprintf("%s: %v", c.Addr(), err)}
	if _, closed := errors.AsType[*net.OpError](err); closed || strings.Contains(err.Error(), "malformed HTTP") {
		sentences[0] += ": must be the HTTP listener of a running server"
	}
	if _, unknown := errors.AsType[*tls.CertificateVerificationError](err); unknown {
		sentences[0] += ": its certificate must be signed by a CA that the system trusts, or by one in --ca-file"
	}
	if answer, ok := errors.AsType[*client.Error](err); ok {
		for _, m := range answer.Mistakes {
			sentences = append(sentences, fmt.Sprintf("line %d, column %d: %s", m.Line, m.Column, m.Message))
		}
	}
	return inputErrorOf(sentences...)
}

// answerFlags is the flags of the commands that print one answer of a server.
type answerFlags struct {
	connectFlags
	json bool
}

// asks makes cmd send a request with its arguments to the server that its flags describe, with a token of
// that role, and print the answer.
func asks[T any](cmd *cobra.Command, role access.Role, ask func(context.Context, *client.Client, []string) (T, error), text func(io.Writer, T)) *answerFlags {
	f := new(answerFlags)
	f.register(cmd, role)
	cmd.Flags().BoolVar(&f.json, "json", false, "print the answer as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return answer(cmd, f, func(ctx context.Context, c *client.Client) (T, error) { return ask(ctx, c, args) }, text)
	}
	return f
}

// answer asks the server that f describes and prints its answer, as JSON or with
// text, whose cells that end with a tab are aligned in columns.
func answer[T any](cmd *cobra.Command, f *answerFlags, ask func(context.Context, *client.Client) (T, error), text func(io.Writer, T)) error {
	c, err := f.client()
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := ask(cmd.Context(), c)
	if err != nil {
		return serverFailed(cmd.Context(), c, err)
	}
	out := cmd.OutOrStdout()
	if f.json {
		return notWritten(writeJSON(out, got))
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	text(table, got)
	return notWritten(table.Flush())
}

// stamp formats a moment for a table.
func stamp(t time.Time) string { return t.UTC().Format(time.DateTime) }

// registerRule adds --rule to cmd. Shells complete it with the names of the server's
// rules.
func (f *connectFlags) registerRule(cmd *cobra.Command, rule *string, usage string) {
	cmd.Flags().StringVar(rule, "rule", "", usage)
	cmd.RegisterFlagCompletionFunc("rule", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := f.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second) // a shell waits
		defer cancel()
		names, err := ruleNames(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// ruleNames returns the names of the server's limits and bans.
func ruleNames(ctx context.Context, c *client.Client) (names []string, err error) {
	set, err := c.Rules(ctx)
	for _, r := range set.Rules {
		if bans(&r) {
			names = append(names, r.Name)
		}
	}
	return names, err
}

// errNoRule is the error of a command line without --rule.
var errNoRule = errors.New("--rule: missing: must be the name of a limit or a ban; lately rules lists them")
