package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/internal/server/eventlist"
	logs "github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/match"
)

const (
	feedBatch = 128 << 10       // bytes of events that are sent before there are no more lines
	feedEvery = 5 * time.Second // a batch is sent, of no event if there is none
	feedUntil = time.Second / 4 // the same while events wait at the server for older ones

	// Between two attempts while the server is away.
	firstWait = 50 * time.Millisecond
	maxWait   = 5 * time.Second
)

// A feeder sends the events of logs to a server. It keeps nothing that the server has not:
// the server has the state of its follower together with what the events have counted.
type feeder struct {
	client        *client.Client
	log           *slog.Logger
	name, process string

	session string
	number  uint64
	state   []byte    // that the server has
	events  []byte    // to be sent
	newest  time.Time // of the events
	until   time.Time // up to which they were judged last; the zero time if events do not wait
	sent    time.Time
	away    bool // the server did not answer last
	report  feedReport
}

// A feedReport is what a feeder has done.
type feedReport struct {
	api.FeedResult
	TooLong     uint64 `json:"too_long"`     // events that were not sent
	Sessions    uint64 `json:"sessions"`     // of the feed: one, and one more after each failure
	AnswersLost uint64 `json:"answers_lost"` // batches that the server has judged, whose events the other numbers lack
}

// errBehind means that the server lost events it had acknowledged: it was restarted from an older
// snapshot, or without one.
var errBehind = errors.New("the server has an earlier state")

// toServer follows the logs, and sends their events to a server until it is interrupted.
func (c *followCommand) toServer(cmd *cobra.Command, config *server.Config) error {
	name := c.name
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return fmt.Errorf("--name: missing: must be given, since the machine has none: %w", err)
		}
	}
	to, err := c.connect.client()
	if err != nil {
		return err
	}
	defer to.Close()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // which ends a process by default
	defer signal.Stop(hangup)
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
	defer stop()
	zoned, err := config.ZonedLogs()
	if err != nil {
		return err
	}
	f := &feeder{client: to, log: config.Logger(cmd.ErrOrStderr()), name: name, process: rand.Text()}
	go f.warnNoReload(ctx, hangup)
	err = f.run(ctx, logs.Config{Logs: zoned, Lateness: config.Lateness, Silence: config.Silence, Log: f.log, Stdin: logs.NewInput(cmd.InOrStdin())})
	if err != nil && ctx.Err() == nil {
		return serverFailed(ctx, to, err)
	}
	if c.json {
		return notWritten(writeJSON(cmd.OutOrStdout(), &f.report))
	}
	r := &f.report
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "events: %d, refused: %d, bans: %d, too long: %d, sessions: %d, answers lost: %d\n", r.Events, r.Refused, r.Bans, r.TooLong, r.Sessions, r.AnswersLost)
	return notWritten(err)
}

// warnNoReload logs that SIGHUP has no effect, until ctx is done.
func (f *feeder) warnNoReload(ctx context.Context, hangup <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			f.log.Info("SIGHUP: nothing to reload: the server has the rules, and rotated logs are found automatically", "server", f.client.Addr())
		}
	}
}

// run follows logs until ctx is done.
func (f *feeder) run(ctx context.Context, c logs.Config) error {
	c.Judge = f.add
	c.Passed = func(p logs.Point) error { return f.passed(ctx, p) }
	if _, err := logs.New(c); err != nil {
		return err
	}
	if err := f.open(ctx); err != nil {
		return err
	}
	for {
		follower, err := logs.New(c)
		if err != nil {
			return err
		}
		if len(f.state) > 0 {
			if err := follower.Resume(f.state); err != nil {
				return err
			}
		}
		f.events, f.sent = f.events[:0], time.Time{}
		follower.Open()
		if err := follower.Run(ctx); err != errBehind {
			return err
		}
		f.log.Warn("the server has not counted all events that were sent: they are sent again", "server", f.client.Addr())
	}
}

// add adds an event to the batch.
func (f *feeder) add(ev *match.Event) {
	if n, ok := eventlist.Size(ev); !ok || n > logs.MaxFeedEvent {
		f.report.TooLong++
		f.log.Warn("an event is too long to be sent, and not counted", "bytes", n, "max", logs.MaxFeedEvent)
		return
	}
	if ev.Time.After(f.newest) {
		f.newest = ev.Time
	}
	f.events = eventlist.Append(f.events, ev.Time, ev)
}

// passed sends the batch, if it is long enough, or no line is waiting.
func (f *feeder) passed(ctx context.Context, p logs.Point) error {
	every := feedEvery
	if !f.until.IsZero() && f.newest.After(f.until) {
		every = feedUntil
	}
	due := len(f.events) >= feedBatch || !p.More && (len(f.events) > 0 || time.Since(f.sent) >= every)
	if !due {
		return nil
	}
	state, err := p.State()
	if err != nil {
		return err
	}
	if err := f.send(ctx, &api.FeedBatch{Feed: f.name, Events: f.events, State: state, Until: p.Until(), Logs: p.Logs()}); err != nil {
		return err
	}
	f.events, f.sent = f.events[:0], time.Now()
	return nil
}

// send returns when the server has judged a batch.
func (f *feeder) send(ctx context.Context, b *api.FeedBatch) error {
	for attempt := 0; ; attempt++ {
		b.Session, b.Number = f.session, f.number+1
		result, err := f.client.SendFeed(ctx, *b)
		if err == nil {
			if f.away {
				f.log.Info("the server answers again", "server", f.client.Addr())
			}
			f.away, f.number, f.state, f.until = false, b.Number, b.State, b.Until
			f.report.Add(result)
			return nil
		}
		if err := f.failed(ctx, err, attempt); err != nil {
			return err
		}
		before := f.state
		if err := f.open(ctx); err != nil {
			return err
		}
		switch {
		case bytes.Equal(f.state, b.State): // only the answer was lost
			f.until = b.Until
			f.report.AnswersLost++
			return nil
		case !bytes.Equal(f.state, before):
			return errBehind
		}
	}
}

// open begins a session, and waits for the server if it is away.
func (f *feeder) open(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		feed, err := f.client.OpenFeed(ctx, api.FeedOpening{Feed: f.name, Process: f.process})
		if err == nil {
			f.session, f.number, f.state = feed.Session, 0, feed.State
			f.report.Sessions++
			return nil
		}
		if err := f.failed(ctx, err, attempt); err != nil {
			return err
		}
	}
}

// failed waits until the next attempt, and logs once that the server is away. If err is not of
// that kind, it returns it.
func (f *feeder) failed(ctx context.Context, err error, attempt int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	answer, answered := errors.AsType[*client.Error](err)
	switch {
	case answered && answer.Code == api.NoFeed: // it was restarted
	case answered && !answer.Temporary():
		return err
	case !f.away:
		f.away = true
		f.log.Warn("the server does not answer: no lines are read until it does", "server", f.client.Addr(), "error", err)
	}
	// With full jitter, so that followers do not come all at once.
	return wait.For(ctx, mathrand.N(wait.Backoff(firstWait, maxWait, attempt+1)))
}
