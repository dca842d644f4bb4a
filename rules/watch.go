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

// Open returns a Limiter that enforces the limits and bans of the rules files at paths,
// with a memory store of the default size. The counters and hot rules of a file are
// ignored. The errors are those of [Load].
func Open(paths ...string) (*ratelimit.Limiter, error) {
	f, err := Load(paths...)
	if err != nil {
		return nil, err
	}
	return ratelimit.NewLimiter(f.Limits, ratelimit.Config{})
}

// Watch applies the rules files at paths to limiter, at once and after each change of a
// file, until ctx is done. Run it in its own goroutine:
//
//	report := func(f *rules.File, err error) {
//		if err != nil {
//			slog.Error("the old rules stay in force", "error", err)
//			return
//		}
//		slog.Info("new rules are in force", "rules", len(f.Limits.Rules()), "warnings", f.Warnings)
//	}
//	go rules.Watch(ctx, limiter, report, "rules.yaml")
//
// Watch calls report, unless it is nil, once for each version of the files: with the
// new File, or with the reason why the old rules stay. A file that is missing or has
// mistakes changes nothing. Counts and bans are carried over, see
// [ratelimit.Limiter.Update].
//
// Watch reads the files, and the files of their allow lists and plans, every 2
// seconds by their paths: they may be replaced, and may be symbolic links.
func Watch(ctx context.Context, limiter *ratelimit.Limiter, report func(*File, error), paths ...string) {
	for f, err := range changes(ctx, paths, never, pollInterval) {
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

// Changes reads the files that f was loaded from, with their allow lists and plans, once per
// interval. Each time that the contents of one have changed, compared first with f, it yields the
// new File or the error of [Load]. A file that cannot be read yields one error until it can be read
// again. The sequence ends when ctx is done.
func (f *File) Changes(ctx context.Context, interval time.Duration) iter.Seq2[*File, error] {
	paths := make([]string, len(f.sources))
	for i, s := range f.sources {
		paths[i] = s.name
	}
	return changes(ctx, paths, reading{f.sources, f.read, f.plans}, interval)
}

// A reading is what was found when rules files were read. It has no sources if one of them
// cannot be read.
type reading struct {
	sources []source
	read    []version // of the files of their allow lists, and of those of plans
	plans   []*planTable
}

func (r *reading) equal(other *reading) bool {
	return slices.Equal(r.sources, other.sources) && slices.Equal(r.read, other.read)
}

// never is what was found before the files are read.
var never = reading{sources: []source{{"", "never"}}}

// changes yields the files at paths whenever they are not what they were: at first last.
func changes(ctx context.Context, paths []string, last reading, interval time.Duration) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		before := never
		for ctx.Err() == nil {
			sources, err := readFiles(paths)
			now, wait := reading{}, interval
			if err == nil {
				now.sources = sources
			}
			for _, v := range last.read {
				now.read = append(now.read, v.current())
			}
			switch {
			case now.equal(&last):
			case now.equal(&before):
				now.plans = last.plans
				last = now
				var f *File
				if err == nil {
					r := &reader{onDisk: true, plansBefore: last.plans}
					f, err = r.readWhole(sources)
					last.read = r.read
					if err == nil {
						last.plans = r.plans
					}
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
