package rules

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// pollInterval is how often [Watch] reads the rules file.
const pollInterval = 2 * time.Second

// settleTime is how long the contents of a changed file must stay the same before they
// are read as rules: an editor that writes in place may not have written all of them.
const settleTime = 50 * time.Millisecond

// Open returns a Limiter that enforces the limits and bans of the rules file at path,
// with a memory store of the default size. A Limiter does not count the counters and
// hot rules of a file. The error is that of [Load].
func Open(path string) (*ratelimit.Limiter, error) {
	f, err := Load(path)
	if err != nil {
		return nil, err
	}
	return ratelimit.NewLimiter(f.Limits, ratelimit.Config{})
}

// Watch puts the rules file at path in force in limiter, at once and after each change
// of the file, until ctx is done. Run it in its own goroutine:
//
//	go rules.Watch(ctx, "rules.yaml", limiter, func(f *rules.File, err error) {
//		if err != nil {
//			slog.Error("the old rules stay in force", "error", err)
//			return
//		}
//		slog.Info("new rules are in force", "rules", f.Limits.Len(), "warnings", f.Warnings)
//	})
//
// Watch calls report, unless it is nil, once for each version of the file: with the
// file that is now in force, or with the reason why the rules before it stay in force.
// A file that is missing or has mistakes changes nothing. Counts and bans are carried
// over as [ratelimit.Limiter.Update] says.
//
// Watch reads the file and the files of its allow list every 2 seconds, by their
// paths: editors may replace them, and they may be symbolic links.
func Watch(ctx context.Context, path string, limiter *ratelimit.Limiter, report func(*File, error)) {
	for f, err := range changes(ctx, path, never, pollInterval) {
		if err == nil {
			err = limiter.Update(f.Limits)
		}
		if err != nil {
			f = nil
		}
		if report != nil {
			report(f, err)
		}
	}
}

// Changes reads the file that f was loaded from, and the files of its allow list, once per
// interval, and yields it each time that the contents of one have changed, at first from
// those of f: the new File, or the error of [Load]. A file that cannot be read yields one
// error until it can be read again. The sequence ends when ctx is done.
func (f *File) Changes(ctx context.Context, interval time.Duration) iter.Seq2[*File, error] {
	return changes(ctx, f.Name, reading{string(f.Text), true, f.read}, interval)
}

// A reading is what was found when a file was read. The zero reading is that of a file that
// cannot be read.
type reading struct {
	text string
	ok   bool
	read []version // of the files of its allow list
}

func (r *reading) equal(other *reading) bool {
	return r.text == other.text && r.ok == other.ok && slices.Equal(r.read, other.read)
}

// never is what was found before a file is read.
var never = reading{text: "never"}

// changes yields the file at path whenever it is not what it was: at first last.
func changes(ctx context.Context, path string, last reading, interval time.Duration) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		before := never
		for ctx.Err() == nil {
			text, err := readFile(path)
			now, wait := reading{text: string(text), ok: err == nil}, interval
			for _, v := range last.read {
				now.read = append(now.read, v.current())
			}
			switch {
			case now.equal(&last):
			case now.equal(&before):
				last = now
				var f *File
				if err == nil {
					r := &reader{file: path, onDisk: true}
					f, err = r.readWhole(text)
					last.read = r.read
				}
				if !yield(f, err) {
					return
				}
			default:
				wait = settleTime
			}
			before = now
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}
