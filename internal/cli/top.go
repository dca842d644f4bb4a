package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/server/access"
)

// topFlags is the command line of top.
type topFlags struct {
	connectFlags
	counter, span string
	once, asJSON  bool
}

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a running server: top keys, refusals, bans and hot keys",
		Long: `Top shows a running server live: decisions per second, refusals by rule, the top keys of a
counter, the most refused keys, the latest bans and the hot keys. The token needs the role read, and to ban and
unban the role admin.

Keys: s sort, / filter, 1-6 span (1s, 10s, 1m, 5m, 1h, 24h), c next counter, p pause, ? help, q quit. Tab focuses a
panel of keys, which then gets the free lines, up and down choose a key; enter inspects it, b bans it, u unbans it.
A count is shown as LO or LO-HI: the true count lies between. A lost connection is shown and reopened.
With NO_COLOR set there are no colours; without UTF-8 in LC_ALL, LC_CTYPE or LANG the screen is drawn in ASCII.
--once and --json need no terminal.`,
		Example: "  lately top\n  lately top --addr https://lately.example.org --token-file token --counter requests --span 5m",
		Args:    flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.register(cmd, access.Admin)
	flags := cmd.Flags()
	flags.StringVar(&f.counter, "counter", "", "the counter whose top keys are shown (default: the first)")
	flags.StringVar(&f.span, "span", "1m", "the span to look back, 1s to 24h")
	flags.BoolVar(&f.once, "once", false, "print one frame as text and exit")
	flags.BoolVar(&f.asJSON, "json", false, "print the content of a frame as one JSON object and exit")
	return cmd
}

func (f *topFlags) run(ctx context.Context, in io.Reader, out io.Writer) error {
	span, err := rulevalue.ParseDuration(f.span)
	if err != nil || span < time.Second || span > 24*time.Hour {
		return fmt.Errorf("--span: %q: must be a duration from 1s to 24h", f.span)
	}
	if f.once && f.asJSON {
		return errors.New("--json: must not be given with --once")
	}
	c, err := f.client()
	if err != nil {
		return err
	}
	defer c.Close()
	want := topWant{counter: f.counter, span: span, whole: true}
	if f.once || f.asJSON {
		return topOnce(ctx, c, want, f.asJSON, out)
	}
	if !isTerminal(out) || !isTerminal(in) {
		return errors.New("top: no terminal: without one, --once or --json must be set")
	}
	// At most ten frames a second, and of each only the changes, for slow links.
	paint := newTopPaint(os.Getenv("NO_COLOR") == "")
	paint.ascii = !utf8Terminal(os.Getenv)
	return topShow(ctx, c, want, paint, tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(10))
}

// topOnce prints one frame, as text or as JSON.
func topOnce(ctx context.Context, c *client.Client, want topWant, asJSON bool, out io.Writer) error {
	reading, err := readTop(ctx, c, want)
	if err != nil {
		return serverFailed(ctx, c, err)
	}
	if reading.note != "" {
		return inputErrorOf(reading.note)
	}
	if asJSON {
		err = writeJSON(out, newTopJSON(c.Addr(), reading))
	} else {
		m := newTopModel(c.Addr(), want, topPaint{ascii: !utf8Terminal(os.Getenv)})
		m.width, m.height = onceWidth(), onceHeight
		m.read(reading)
		m.live = true
		_, err = io.WriteString(out, m.text())
	}
	return notWritten(err)
}

// The size of a frame that is printed.
const (
	onceHeight = 45
	onceLeast  = 40
	onceMost   = 400
)

// onceWidth is the width of a frame that is printed: COLUMNS, if it is set.
func onceWidth() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil {
		return max(onceLeast, min(n, onceMost))
	}
	return 100
}

// topShow shows the live view until the user quits.
func topShow(ctx context.Context, c *client.Client, want topWant, paint topPaint, options ...tea.ProgramOption) error {
	shown, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newTopModel(c.Addr(), want, paint)
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
