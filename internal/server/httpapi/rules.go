package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keptevents"
	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

func listRules(c *call) (api.RuleSet, error) {
	file, status := c.s.Engine.Rules(), c.s.Engine.Status().Rules
	return api.RuleSet{
		File: file.Name, Text: string(file.Text), Since: status.Since, Error: status.Error,
		Rules: c.s.Engine.RuleInfos(), Counters: c.s.Engine.Counters().List(), Allow: allowOf(&file.Allow),
	}, nil
}

// allowOf returns the allow list for the answer of GET /v1/rules.
func allowOf(a *rules.Allow) api.Allow {
	list := api.Allow{Clients: append([]netip.Prefix{}, a.Clients...), Files: []api.AllowFile{}}
	for i := range a.Files {
		list.Files = append(list.Files, api.AllowFile{Name: a.Files[i].Name, Prefixes: len(a.Files[i].Prefixes)})
	}
	return list
}

func checkRules(c *call) (v api.RulesValidation, err error) {
	file, err := c.s.Engine.Rules().Draft("rules", c.body)
	if err != nil {
		errs, _ := errors.AsType[rules.Errors](err)
		return api.RulesValidation{Errors: mistakes(errs)}, nil
	}
	return api.RulesValidation{OK: true, Sentences: file.Sentences(), Warnings: mistakes(file.Warnings)}, nil
}

func reload(c *call, req *api.ReloadRequest) (changes api.RuleChanges, err error) {
	changes, err = c.s.config.Reload(req.DropBans)
	if err != nil {
		c.audit("reload by hand failed", "error", err)
		return changes, err
	}
	c.audit("rules reloaded by hand")
	return changes, nil
}

// tryRules judges the events that the engine keeps under the rules in force and under a
// draft, as lately diff does those of a log. One draft at a time is tried, on one core.
func tryRules(c *call, req *api.TrialRequest) (trial api.Trial, err error) {
	trial.Unknown = []string{}
	draft, err := c.s.Engine.Rules().Draft("draft", []byte(req.Rules))
	if err != nil {
		errs, _ := errors.AsType[rules.Errors](err)
		trial.Errors = mistakes(errs)
		return trial, nil
	}
	trial.Warnings = mistakes(draft.Warnings)
	top := cmp.Or(req.Top, 20)
	if top < 1 || top > 1000 {
		return trial, badArg("top: %d: must be 1 to 1000", top)
	}
	if !c.s.trying.CompareAndSwap(false, true) {
		return trial, apierror.New(api.Overload, "another draft is being tried; try again later")
	}
	defer c.s.trying.Store(false)
	events, ok := c.s.Engine.KeptEvents()
	if !ok {
		return trial, apierror.New(api.Conflict, "the server keeps no events: start it with the setting keep-events, such as 64MiB; lately diff compares rules on a log")
	}
	defer events.Close()
	ctx, stop := c.allow(maxTrial)
	defer stop()
	d, err := replay.Diff(ctx, replay.DiffConfig{
		Config: replay.Config{Events: events.All(), Key: req.Field, Top: top, Cores: 1, Budget: trialBudget, Locate: c.s.Engine.Locate()}, Old: c.s.Engine.Rules(), New: draft,
		Protect: strings.FieldsFunc(req.Protect, func(r rune) bool { return r == '\n' }),
	})
	if ctx.Err() != nil {
		return trial, apierror.New(api.Overload, "the draft was not tried within %v: keep fewer events", maxTrial)
	}
	if err != nil {
		return trial, badArg("%v", err)
	}
	trial.Events, trial.Since, trial.Changes = d.Events, events.Since.UTC(), &d.Difference
	if d.First != nil {
		trial.First, trial.Last = d.First.UTC(), d.Last.UTC()
	}
	trial.Unknown = append(c.s.unknownTo(&events.Missed), d.Problems...)
	return trial, nil
}

// unknownTo returns what a trial on kept events does not know.
func (s *Server) unknownTo(m *keptevents.Missed) []string {
	all := []string{
		"What keys had used before these events, and bans that held then: both sets of rules begin with nothing.",
		"What clients would have done instead: a client that is refused may wait, or come again.",
	}
	add := func(n int, format string) {
		if n > 0 {
			all = append(all, fmt.Sprintf(format, n))
		}
	}
	add(m.Keys, "Decisions about a key under one rule, as by TAKE, which have no event: %d.")
	add(m.Long, "Events that are too long to be kept: %d.")
	add(m.Costs, "The costs of events, which count once: %d.")
	add(m.Answers, "Answers to requests that are not kept any more: %d.")
	if s.Store != nil {
		all = append(all, "The events of the other servers that share the store.")
	}
	return all
}

const (
	// maxTrial is how long a trial may take.
	maxTrial = time.Minute

	// trialBudget bounds what each of the two sets of rules counts in.
	trialBudget = 64 << 20

	// TrialMemory is the memory that a trial takes besides its events.
	TrialMemory = 2 * trialBudget
)

// allow lets the request take that long, more than others.
func (c *call) allow(d time.Duration) (context.Context, context.CancelFunc) {
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Time{}) // the context is done when it has passed
	_ = control.SetWriteDeadline(time.Now().Add(d + writeTimeout))
	return context.WithTimeout(c.r.Context(), d)
}
