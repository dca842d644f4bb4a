package httpapi

import (
	"errors"
	"net/netip"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// rulesAnswer is the rules in force.
type rulesAnswer struct {
	File     string         `json:"file"`
	Text     string         `json:"text"`
	Since    time.Time      `json:"since"`
	Error    *string        `json:"error" doc:"why the file could not be read the last time; the rules of before stay in force"`
	Rules    []ruleInfo     `json:"rules"`
	Counters []counterInfo  `json:"counters"`
	Allow    []netip.Prefix `json:"allow"`
}

type ruleInfo struct {
	Name     string     `json:"name"`
	Kind     string     `json:"kind" doc:"limit, ban or hot"`
	Fields   []string   `json:"fields" doc:"of its key"`
	Sentence string     `json:"sentence"`
	Shadow   bool       `json:"shadow"`
	Stats    *ruleStats `json:"stats" doc:"null for a hot rule"`
}

type ruleStats struct {
	Allowed     uint64 `json:"allowed"`
	Refused     uint64 `json:"refused" doc:"by a limit of the rule"`
	Banned      uint64 `json:"banned" doc:"refused by a ban of the rule"`
	Shadow      uint64 `json:"shadow" doc:"that the rule would have refused, were it not in shadow mode"`
	Skipped     uint64 `json:"skipped" doc:"not judged, because a ban of another rule held"`
	BansStarted uint64 `json:"bans_started"`
	Keys        int    `json:"keys"`
	Bans        int    `json:"bans"`
}

func listRules(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	file, status := c.s.engine.Rules(), c.s.engine.Status()
	a := rulesAnswer{
		File: file.Name, Since: status.RulesSince.UTC(), Error: errorText(status.RulesError),
		Rules: []ruleInfo{}, Counters: c.s.counters(), Allow: append([]netip.Prefix{}, file.Allow...),
	}
	if c.s.config.RulesText != nil {
		text, err := c.s.config.RulesText()
		if err != nil {
			return err
		}
		a.Text = string(text)
	}
	for _, r := range c.s.engine.RuleInfos() {
		a.Rules = append(a.Rules, ruleInfo{r.Name, r.Kind, r.Fields, r.Sentence, r.Shadow, statsOf(r.Stats)})
	}
	return c.answer(&a)
}

func statsOf(s *ratelimit.RuleStats) *ruleStats {
	if s == nil {
		return nil
	}
	return &ruleStats{s.Allowed, s.Refused, s.Banned, s.Shadow, s.Skipped, s.BansStarted, s.Keys, s.Bans}
}

func errorText(err error) *string {
	if err == nil {
		return nil
	}
	return new(err.Error())
}

// A checkedRules says what is in a text, if it were the rules file.
type checkedRules struct {
	OK        bool      `json:"ok"`
	Sentences []string  `json:"sentences,omitempty"`
	Warnings  []mistake `json:"warnings,omitempty"`
	Errors    []mistake `json:"errors,omitempty"`
}

func checkRules(c *call) error {
	file, err := rules.Parse("rules", c.body)
	if errs, ok := errors.AsType[rules.Errors](err); ok {
		return c.answer(checkedRules{Errors: mistakes(errs)})
	}
	if err != nil {
		return err
	}
	return c.answer(checkedRules{OK: true, Sentences: file.Sentences(), Warnings: mistakes(file.Warnings)})
}

// A reloadRequest reads the rules file again.
type reloadRequest struct {
	DropBans bool `json:"drop_bans,omitempty" doc:"drop the bans under rules that are removed or get another key; else such rules are refused"`
}

// A reloaded says what a reload has changed, by the names of rules, and of counters
// with "counter " before them.
type reloaded struct {
	OK          bool     `json:"ok"`
	Added       []string `json:"added"`
	Removed     []string `json:"removed"`
	Changed     []string `json:"changed"`
	BansDropped int      `json:"bans_dropped" doc:"bans that held under rules that were removed or got another key"`
}

func reload(c *call) error {
	var req reloadRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if c.s.config.Reload == nil {
		return &engine.Error{Code: engine.BadArg, Message: "there is no rules file; the server was started without one"}
	}
	changes, err := c.s.config.Reload(req.DropBans)
	if err != nil {
		c.audit("reload by hand failed", "error", err)
		return err
	}
	c.audit("rules reloaded by hand")
	list := func(names []string) []string { return append([]string{}, names...) }
	return c.answer(reloaded{true, list(changes.Added), list(changes.Removed), list(changes.Changed), changes.BansDropped})
}
