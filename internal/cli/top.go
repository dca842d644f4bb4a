package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/server/access"
)

func newTop() *cobra.Command {
	var f connectFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a running server: top keys, refusals, bans and hot keys",
		Long: `Top shows a running server live: decisions per second, refusals by rule, the top keys of a
counter, the most refused keys, the latest bans and the hot keys. The token needs the role read, and to ban and
unban the role admin.

Keys: s sort, / filter, 1-6 span (1s, 10s, 1m, 5m, 1h, 24h), c next counter, p pause, ? help, q quit. Tab focuses a
panel of keys, which then gets the free lines, up and down choose a key; enter inspects it, b bans it, u unbans it.
A count is shown as LO or LO-HI: the true count lies between. A lost connection is shown and reopened.
With NO_COLOR set there are no colours; without UTF-8 in LC_ALL, LC_CTYPE or LANG the screen is drawn in ASCII.`,
		Example: "  lately top\n  lately top --addr https://lately.example.org --token-file token",
		Args:    flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runTop(cmd.Context(), &f, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.register(cmd, access.Admin)
	return cmd
}

func runTop(ctx context.Context, f *connectFlags, in io.Reader, out io.Writer) error {
	c, err := f.client()
	if err != nil {
		return err
	}
	defer c.Close()
	if !isTerminal(out) || !isTerminal(in) {
		return errors.New("top: no terminal: must be run in one; lately status, rules and bans print the state of a server once")
	}
	// At most ten frames a second, and of each only the changes, for slow links.
	paint := newTopPaint(os.Getenv("NO_COLOR") == "")
	paint.ascii = !utf8Terminal(os.Getenv)
	return topShow(ctx, c, paint, tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(10))
}

// topShow shows the live view until the user quits.
func topShow(ctx context.Context, c *client.Client, paint topPaint, options ...tea.ProgramOption) error {
	shown, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newTopModel(c.Addr(), topWant{span: time.Minute}, paint)
	m.now = time.Now()
	m.ask = func(w topWant) tea.Cmd {
		return func() tea.Msg {
			reading, err := readTop(shown, c, w)
			return topRead{w, reading, err}
		}
	}
	m.inspect = func(d *topDetail) tea.Cmd { return func() tea.Msg { return inspect(shown, c, d) } }
	m.act = func(a topAction) tea.Cmd { return func() tea.Msg { return perform(shown, c, a) } }
	p := tea.NewProgram(m, append(options, tea.WithContext(shown))...)
	var following sync.WaitGroup
	following.Go(func() { follow(shown, c, p.Send) })
	_, err := p.Run()
	cancel()
	following.Wait()
	switch {
	case errors.Is(err, tea.ErrInterrupted):
		return context.Canceled
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return inputErrorOf("the terminal: " + err.Error())
	case m.fatal != nil:
		return serverFailed(ctx, c, m.fatal)
	}
	return nil
}

// follow sends the events of the server to the model, and the state of the connection.
func follow(ctx context.Context, c *client.Client, send func(tea.Msg)) {
	for event, err := range c.Events(ctx) {
		if err == nil {
			send(topEvent{event})
		} else {
			send(topLost{err, time.Now()})
		}
	}
}
