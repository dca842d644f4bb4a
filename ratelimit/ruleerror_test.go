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
	const is = `ratelimit: rule is %q; allowed is the name of a rule of the set`
	var rules []ratelimit.Rule
	for _, name := range []string{"login", "login-ip", "per-client", "upload", "Ünïcode", "x"} {
		rules = append(rules, limit(t, name, per(1, time.Second)))
	}
	set := mustSet(t, rules...)
	long := strings.Repeat("abcdefgh", 20)
	for name, want := range map[string]string{
		"logn":       `; the nearest is "login"`,
		"LOGIN":      `; the nearest is "login"`,
		"login-iq":   `; the nearest are "login-ip", "login"`,
		"client":     `; the nearest is "per-client"`,
		"per-clinet": `; the nearest is "per-client"`,
		"pload ":     `; the nearest is "upload"`,
		"y":          `: "login", "login-ip", "per-client" and 3 more`,
		"":           `: "login", "login-ip", "per-client" and 3 more`,
		"\x00\n":     `: "login", "login-ip", "per-client" and 3 more`,
		"ünïcode":    `; the nearest is "Ünïcode"`,
		long:         `: "login", "login-ip", "per-client" and 3 more`,
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
		`, which has none`: mustSet(t),
		`: "login"`:        mustSet(t, rules[0]),
		`: "login", "x"`:   mustSet(t, rules[0], rules[5]),
	} {
		if _, err := set.Named("abc"); err.Error() != fmt.Sprintf(is, "abc")+want {
			t.Errorf("%s", err)
		}
	}
	if _, err := set.Named("logn"); err == nil {
		t.Error("a rule that there is not is named")
	}
	if r, err := set.Named("upload"); err != nil || r != set.Rule(3) {
		t.Errorf("upload is %+v, %v", r, err)
	}
}

// TestRuleErrorOfVerbs asks every verb by rule for one that there is not.
func TestRuleErrorOfVerbs(t *testing.T) {
	l := mustLimiter(t, mustSet(t, limit(t, "login", per(1, time.Second))), ratelimit.Config{})
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
				continue // it says that the rule is missing
			}
			if !ok || e.Name != rule || rule == "logon" && (len(e.Nearest) != 1 || e.Nearest[0] != "login") {
				t.Errorf("%s of %q: %v", name, rule, err)
			}
		}
		if err := verb("login"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
