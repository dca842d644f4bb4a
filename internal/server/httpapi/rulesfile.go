package httpapi

import (
	"errors"
	"net/netip"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/rules"
)

func listRules(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	file, status := c.s.Engine.Rules(), c.s.Engine.Status()
	a := api.RuleSet{
		File: file.Name, Since: status.RulesSince.UTC(), Error: errorText(status.RulesError),
		Rules: c.s.Engine.RuleInfos(), Counters: c.s.counters(), Allow: append([]netip.Prefix{}, file.Allow...),
	}
	if c.s.config.RulesText != nil {
		text, err := c.s.config.RulesText()
		if err != nil {
			return err
		}
		a.Text = string(text)
	}
	return c.answer(&a)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func checkRules(c *call) error {
	file, err := rules.Parse("rules", c.body)
	if errs, ok := errors.AsType[rules.Errors](err); ok {
		return c.answer(api.RulesValidation{Errors: mistakes(errs)})
	}
	if err != nil {
		return err
	}
	return c.answer(api.RulesValidation{OK: true, Sentences: file.Sentences(), Warnings: mistakes(file.Warnings)})
}

func reload(c *call) error {
	var req api.ReloadRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if c.s.Reload == nil {
		return &engine.Error{Code: api.BadArg, Message: "there is no rules file; the server was started without one"}
	}
	changes, err := c.s.Reload(req.DropBans)
	if err != nil {
		c.audit("reload by hand failed", "error", err)
		return err
	}
	c.audit("rules reloaded by hand")
	return c.answer(changes)
}
