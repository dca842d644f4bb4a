package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
)

// A topWant is what the user wants to see of a server.
type topWant struct {
	counter string // "" is the first
	span    time.Duration
	whole   bool // with the rules and the last minute of the chart
	turn    int  // number of the request
}

// A topReading is the state of a server at one moment, in two round trips.
type topReading struct {
	want     topWant
	at       time.Time
	status   api.Status
	counters []api.Counter
	counter  string        // whose keys are in top
	span     time.Duration // of top: the span of want, at most the counter's longest
	top      []api.KeyCount
	perRule  *api.Rate // of the span; nil if the server is too young
	bans     []api.Ban
	held     int // bans
	hot      []api.HotKey
	hotRules []api.HotRuleStats
	refused  []api.RefusedKey
	note     string // why it differs from want

	// If want.whole is set.
	rules  []api.Rule
	minute []api.Rate
}

// How many keys are requested. A frame shows those that fit and that pass the filter.
const (
	topKeys        = 100
	topBans        = 50
	topRefusedKeys = 50
)

// refusedSpan is the span of refused keys: servers count them for an hour.
func refusedSpan(span time.Duration) time.Duration { return min(span, time.Hour) }

// readTop reads what w wants.
func readTop(ctx context.Context, c *client.Client, w topWant) (*topReading, error) {
	r := &topReading{want: w, at: time.Now()}
	err := together(
		func() (err error) { r.status, err = c.Status(ctx); return err },
		func() (err error) { r.counters, err = c.Counters(ctx); return err },
		func() (err error) {
			if w.whole {
				var set api.RuleSet
				set, err = c.Rules(ctx)
				r.rules = set.Rules
			}
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	r.choose()
	err = together(
		func() error { return r.readKeys(ctx, c) },
		func() error { return r.readRates(ctx, c) },
		func() (err error) {
			if w.whole {
				r.minute, err = c.Rates(ctx, time.Minute, 60, false)
			}
			return err
		},
		func() error {
			page, err := c.Bans(ctx, client.BanQuery{Limit: topBans})
			r.bans, r.held = page.Bans, page.Total
			return err
		},
		func() (err error) { r.hot, err = c.Hot(ctx); return err },
		func() error {
			stats, err := c.HotStats(ctx)
			r.hotRules = stats.Rules
			return err
		},
		func() (err error) { r.refused, err = c.Refused(ctx, topRefusedKeys, refusedSpan(w.span)); return err },
	)
	return r, err
}

// together makes several requests at once and returns the first error.
func together(requests ...func() error) error {
	errs := make([]error, len(requests))
	var wg sync.WaitGroup
	for i, request := range requests {
		wg.Go(func() { errs[i] = request() })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// choose sets the counter that is read, and the span: by default the first counter.
func (r *topReading) choose() {
	r.counter, r.span = r.want.counter, r.want.span
	if r.counter == "" && len(r.counters) > 0 {
		r.counter = r.counters[0].Name
	}
	if i := r.counterIndex(); i >= 0 {
		r.span = min(r.span, longest(&r.counters[i]))
		return
	}
	if r.counter != "" {
		var names []string
		for _, c := range r.counters {
			names = append(names, c.Name)
		}
		r.note = fmt.Sprintf("counter %q: must be %s", r.counter, cmp.Or(strings.Join(names, ", "), "left out, since there is none"))
		r.counter = ""
	}
}

// counterIndex returns the index of the counter whose keys are read, or -1.
func (r *topReading) counterIndex() int {
	return slices.IndexFunc(r.counters, func(c api.Counter) bool { return c.Name == r.counter })
}

// longest returns the longest span of a counter.
func longest(c *api.Counter) time.Duration {
	if len(c.Spans) == 0 {
		return 24 * time.Hour
	}
	return slices.Max(c.Spans).Duration()
}

func (r *topReading) readKeys(ctx context.Context, c *client.Client) (err error) {
	if r.counter == "" {
		return nil
	}
	r.top, err = c.Top(ctx, r.counter, topKeys, r.span)
	if refusal, ok := errors.AsType[*client.Error](err); ok && refusal.Code == api.BadArg {
		r.note, err = refusal.Detail, nil // the counter has gone since it was listed
	}
	return err
}

// readRates reads what each rule has decided in the span, or since the server began
// if that is later.
func (r *topReading) readRates(ctx context.Context, c *client.Client) error {
	span := min(r.want.span, max(uptime(r)-time.Second, time.Second))
	rates, err := c.Rates(ctx, span, 1, true)
	if err == nil && len(rates) > 0 {
		r.perRule = &rates[len(rates)-1]
	}
	return err
}

// uptime returns how long the server has run, in whole seconds.
func uptime(r *topReading) time.Duration { return time.Duration(r.status.Uptime) * time.Second }
