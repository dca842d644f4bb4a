package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/rules"
)

// A topWant says what is to be read of a server.
type topWant struct {
	counter string // "" is the first
	span    time.Duration
	n       int  // keys
	whole   bool // with what seldom changes, and the chart's last minute
	turn    int  // which of the model's wishes it is
}

// A topReading is what a server was like at a moment: two round trips' worth.
type topReading struct {
	want     topWant
	at       time.Time
	status   api.Status
	counters []api.Counter
	counter  string        // whose keys are in top
	span     time.Duration // of top: that of want, or the counter's longest if that is less
	top      []api.KeyCount
	perRule  *api.Rate // of the span; nil if the server is too young
	bans     []api.Ban
	held     int // bans
	hot      []api.HotKey
	refused  []api.RefusedKey
	note     string // what is not as wanted

	// Of a whole one.
	rules  []api.Rule
	minute []api.Rate
}

// How many bans and refused keys are asked for.
const (
	topBans        = 50
	topRefusedKeys = 50
)

// refusedSpan is the span over which refused keys are asked for: servers count them for
// an hour.
func refusedSpan(span time.Duration) time.Duration { return min(span, time.Hour) }

// readTop reads what is wanted.
func readTop(ctx context.Context, c *client.Client, w topWant) (*topReading, error) {
	r := &topReading{want: w, at: time.Now()}
	err := together(
		func() (err error) { r.status, err = c.Status(ctx); return err },
		func() (err error) { r.counters, err = c.Counters(ctx); return err },
		func() (err error) {
			if w.whole {
				var book api.RuleSet
				book, err = c.Rules(ctx)
				r.rules = book.Rules
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
		func() (err error) { r.refused, err = c.Refused(ctx, topRefusedKeys, refusedSpan(w.span)); return err },
	)
	return r, err
}

// together makes several requests at once, for a link may be slow, and returns the
// first error.
func together(requests ...func() error) error {
	errs := make([]error, len(requests))
	var wg sync.WaitGroup
	for i, request := range requests {
		wg.Go(func() { errs[i] = request() })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// choose settles which counter is read, and over which span.
func (r *topReading) choose() {
	r.span = r.want.span
	if len(r.counters) == 0 {
		if r.want.counter != "" {
			r.note = fmt.Sprintf("there is no counter %q, nor any other", r.want.counter)
		}
		return
	}
	i := 0
	if r.want.counter != "" {
		i = slices.IndexFunc(r.counters, func(c api.Counter) bool { return c.Name == r.want.counter })
	}
	if i < 0 {
		var names []string
		for _, c := range r.counters {
			names = append(names, c.Name)
		}
		r.note = fmt.Sprintf("there is no counter %q; allowed is %s", r.want.counter, strings.Join(names, ", "))
		return
	}
	r.counter = r.counters[i].Name
	r.span = min(r.span, longest(&r.counters[i]))
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
	r.top, err = c.Top(ctx, r.counter, r.want.n, r.span)
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

// A topJSON is a frame for programs.
type topJSON struct {
	Addr    string         `json:"addr"`
	Time    time.Time      `json:"time"`
	Version string         `json:"version"`
	Uptime  int64          `json:"uptime_s"`
	Totals  api.Totals     `json:"totals"`
	Memory  api.Memory     `json:"memory"`
	Minute  []api.Rate     `json:"rates"` // of the last minute, each second
	Span    string         `json:"span"`
	Rules   []topRuleJSON  `json:"rules"`
	Counter string         `json:"counter"`
	Top     []api.KeyCount `json:"top"`
	Held    int            `json:"bans_held"`
	Bans    []api.Ban      `json:"bans"`
	Hot     []api.HotKey   `json:"hot"`

	Refused []api.RefusedKey `json:"refused"`
}

// A topRuleJSON is what a rule has decided in the span.
type topRuleJSON struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Sentence string `json:"sentence"`
	InShadow bool   `json:"in_shadow"`
	api.RuleTotals
}

// uptime returns how long the server has run, in whole seconds.
func uptime(r *topReading) time.Duration { return time.Duration(r.status.Uptime) * time.Second }

func newTopJSON(addr string, r *topReading) *topJSON {
	j := &topJSON{
		Addr: addr, Time: r.at.UTC().Truncate(time.Millisecond), Version: r.status.Version, Uptime: r.status.Uptime,
		Totals: r.status.Totals, Memory: r.status.Memory, Minute: append([]api.Rate{}, r.minute...), Span: rules.FormatDuration(r.span),
		Rules: []topRuleJSON{}, Counter: r.counter, Top: append([]api.KeyCount{}, r.top...), Held: r.held, Bans: append([]api.Ban{}, r.bans...), Hot: append([]api.HotKey{}, r.hot...), Refused: append([]api.RefusedKey{}, r.refused...),
	}
	for _, rule := range r.rules {
		line := topRuleJSON{Name: rule.Name, Kind: rule.Kind, Sentence: rule.Sentence, InShadow: rule.Shadow}
		if r.perRule != nil {
			line.RuleTotals = r.perRule.Rules[rule.Name]
		}
		j.Rules = append(j.Rules, line)
	}
	return j
}
