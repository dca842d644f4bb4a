package enforce

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/wait"
)

// A target is a program that refuses what is banned.
type target interface {
	// apply makes changes of what the target refuses, or all that it refuses if whole is
	// set. After an error, the target may have any part of them.
	apply(ctx context.Context, whole bool, changes []change) error

	// verify returns an error if the target does not have what was applied last.
	verify(ctx context.Context) error
}

// pace is how a target takes changes.
type pace struct {
	whole  bool          // always all networks
	pieces bool          // what was applied before an error stays applied
	limit  int           // changes at once; 0 is any number
	pause  time.Duration // between batches, also those that fail, in which changes gather
	ended  time.Duration // from the last batch to one that has only bans that have run out, if it is longer
	verify time.Duration // how often the target is verified; 0 is verifyEvery
}

// execute runs a program with that input, and returns its output. The error has the beginning of
// what it wrote to stderr.
func execute(ctx context.Context, timeout time.Duration, input []byte, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader(input)
	cmd.WaitDelay = time.Second // what it has started may hold its output open
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %.200s", err, bytes.Join(bytes.Fields(failed.Stderr), []byte(" ")))
	}
	return string(out), err
}

const (
	verifyEvery = 5 * time.Second

	// After an error, a target is tried again after retryAfter, then after twice as long
	// each time, up to maxRetry.
	retryAfter = 200 * time.Millisecond
	maxRetry   = 30 * time.Second
)

// A runner keeps one target at the newest version.
type runner struct {
	target
	pace
	name  string
	log   *slog.Logger
	bans  *bans
	watch *watcher
	have  uint64
	last  time.Time // when the last batch was applied

	mu sync.Mutex
	api.EnforcementTarget
}

// run applies changes until ctx is done.
func (r *runner) run(ctx context.Context) {
	verify := time.NewTicker(cmp.Or(r.pace.verify, verifyEvery))
	defer verify.Stop()
	for failures := 0; ; {
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		r.note(err)
		if err != nil {
			failures++
			_ = wait.For(ctx, max(wait.Backoff(retryAfter, maxRetry, failures), r.pause))
			continue
		}
		failures = 0
		_ = wait.For(ctx, r.pause)
		select {
		case <-ctx.Done():
			return
		case <-r.watch.wake:
		case <-verify.C:
			r.reassert(ctx)
		}
	}
}

// follow applies missing changes to the target, in one batch if it takes any number: changes that
// come meanwhile wait for the pause.
func (r *runner) follow(ctx context.Context) error {
	for {
		from := r.have
		if from > 0 && !r.bans.changed(from, time.Since(r.last) < r.ended) {
			return nil
		}
		if r.whole {
			from = 0
		}
		changes, version := r.bans.after(from, r.limit)
		if err := r.apply(ctx, from == 0, changes); err != nil {
			if !r.pieces {
				r.have = 0
			}
			return err
		}
		r.have, r.last = version, time.Now()
		r.bans.reached(r.watch, version)
		r.mu.Lock()
		r.Batches++
		r.mu.Unlock()
		if r.limit == 0 {
			return nil
		}
	}
}

// reassert has all networks applied again if the target has lost some.
func (r *runner) reassert(ctx context.Context) {
	err := r.target.verify(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	r.log.Warn("enforcement was changed by somebody else; the bans are set again", "target", r.name, "found", err)
	r.have = 0
	r.mu.Lock()
	r.Repairs++
	r.mu.Unlock()
}

// note stores the result of following, and logs it if the previous one differs.
func (r *runner) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.Error
	r.Error = ""
	if err != nil {
		r.Failures++
		r.Error = err.Error()
	}
	switch {
	case err != nil && was == "":
		r.log.Error("enforcement fails; it is tried again", "target", r.name, "error", err)
	case err == nil && was != "":
		r.log.Info("enforcement works again", "target", r.name, "last_error", was)
	}
}

// status returns the state of r.
func (r *runner) status() api.EnforcementTarget {
	r.mu.Lock()
	s := r.EnforcementTarget
	r.mu.Unlock()
	lag, dropped := r.bans.lag(r.watch)
	s.Name, s.Lag, s.Dropped = r.name, api.MillisOf(lag), dropped
	return s
}
