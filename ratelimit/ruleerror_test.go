package ratelimit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

func TestRuleError(t *testing.T) {
	const is = `ratelimit: unknown rule %q: `
	var rules []ratelimit.Rule
	for _, name := range []string{"login", "login-ip", "per-client", "upload", "Ünïcode", "x"} {
		rules = append(rules, limitRule(t, name, per(1, time.Second)))
	}
	set := mustSet(t, rules...)
	long := strings.Repeat("abcdefgh", 20)
	const others = `must be one of ["login" "login-ip" "per-client"] and 3 more`
	for name, want := range map[string]string{
		"logn":       `did you mean "login"?`,
		"LOGIN":      `did you mean "login"?`,
		"login-iq":   `did you mean "login-ip"?`,
		"per-clinet": `did you mean "per-client"?`,
		"pload ":     `did you mean "upload"?`,
		"y":          others,
		"":           others,
		"\x00\n":     others,
		long:         others,
	} {
		_, named := set.Named(name)
		err, ok := named.(*ratelimit.RuleError)
		if !ok {
			t.Fatalf("%q: the error is %v", name, named)
		}
		shown := name
		if len(name) > 64 {
			shown = name[:64]
		}
		if got := err.Error(); got != fmt.Sprintf(is, shown)+want || err.Name != shown {
			t.Errorf("%q: %s", name, got)
		}
	}
	for want, set := range map[string]*ratelimit.Set{
		`there are no rules`:           mustSet(t),
		`must be one of ["login"]`:     mustSet(t, rules[0]),
		`must be one of ["login" "x"]`: mustSet(t, rules[0], rules[5]),
	} {
		if _, err := set.Named("abc"); err.Error() != fmt.Sprintf(is, "abc")+want {
			t.Errorf("%s", err)
		}
	}
	if _, err := set.Named("logn"); err == nil {
		t.Error("a rule that there is not is named")
	}
	if r, err := set.Named("upload"); err != nil || r != set.Rules()[3] {
		t.Errorf("upload is %+v, %v", r, err)
	}
}

// TestRuleErrorOfVerbs calls every verb by rule with an unknown rule.
func TestRuleErrorOfVerbs(t *testing.T) {
	l := mustLimiter(t, mustSet(t, limitRule(t, "login", per(1, time.Second))), ratelimit.Config{})
	for name, verb := range map[string]func(rule string) error{
		"Rule":        func(r string) error { _, err := l.Rule(r); return err },
		"Bans.Remove": func(r string) error { _, err := l.Bans().Remove(r, "k"); return err },
		"Bans.Add": func(r string) error {
			return l.Bans().Add(ratelimit.BanRecord{Rule: r, Key: []string{"k"}, Until: time.Now().Add(time.Hour)})
		},
	} {
		for _, rule := range []string{"logon", ""} {
			err := verb(rule)
			e, ok := errors.AsType[*ratelimit.RuleError](err)
			if rule == "" && name == "Bans.Add" {
				continue // the error that the rule is missing
			}
			if !ok || e.Name != rule || rule == "logon" && e.Nearest != "login" {
				t.Errorf("%s of %q: %v", name, rule, err)
			}
		}
		if err := verb("login"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
