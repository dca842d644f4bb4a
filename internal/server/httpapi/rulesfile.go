package httpapi

import (
	"errors"
	"net/netip"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/rules"
)

func listRules(c *call) (api.RuleSet, error) {
	file, status := c.s.Engine.Rules(), c.s.Engine.Status()
	return api.RuleSet{
		File: file.Name, Text: string(file.Text), Since: status.RulesSince.UTC(), Error: errorText(status.RulesError),
		Rules: c.s.Engine.RuleInfos(), Counters: c.s.counters(), Allow: append([]netip.Prefix{}, file.Allow...),
	}, nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func checkRules(c *call) (v api.RulesValidation, err error) {
	file, err := rules.Parse("rules", c.body)
	if err != nil {
		errs, _ := errors.AsType[rules.Errors](err)
		return api.RulesValidation{Errors: mistakes(errs)}, nil
	}
	return api.RulesValidation{OK: true, Sentences: file.Sentences(), Warnings: mistakes(file.Warnings)}, nil
}

func reload(c *call, req *api.ReloadRequest) (changes api.RuleChanges, err error) {
	if c.s.Reload == nil {
		return changes, badArg("the server has no rules file: start it with the setting rules")
	}
	changes, err = c.s.Reload(req.DropBans)
	if err != nil {
		c.audit("reload by hand failed", "error", err)
		return changes, err
	}
	c.audit("rules reloaded by hand")
	return changes, nil
}
