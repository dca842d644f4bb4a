package rules

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/ratelimit"
)

func TestParseLimit(t *testing.T) {
	for _, c := range []struct {
		text      string
		algorithm ratelimit.Algorithm
		want      ratelimit.Limit
	}{
		{"60 per 1m", ratelimit.Sliding, ratelimit.Limit{N: 60, Span: time.Minute}},
		{"  10_000  per 1h", ratelimit.Fixed, ratelimit.Limit{N: 10_000, Span: time.Hour}},
		{"0 per 1s", ratelimit.Exact, ratelimit.Limit{Span: time.Second}},
		{"60/1m", ratelimit.Sliding, ratelimit.Limit{N: 60, Span: time.Minute}},
		{"60 / 1m", ratelimit.Sliding, ratelimit.Limit{N: 60, Span: time.Minute}},
		{"60 per minute", ratelimit.Sliding, ratelimit.Limit{N: 60, Span: time.Minute}},
		{"100/hour", ratelimit.Exact, ratelimit.Limit{N: 100, Span: time.Hour}},
		{"100/day", ratelimit.Calendar, ratelimit.Limit{N: 100, Per: ratelimit.PerDay}},
		{"60/minute burst 10", ratelimit.GCRA, ratelimit.Limit{N: 60, Span: time.Minute, Burst: 10}},
		{"60 per 1m", ratelimit.GCRA, ratelimit.Limit{N: 60, Span: time.Minute}},
		{"60 per 1m burst 1_000", ratelimit.GCRA, ratelimit.Limit{N: 60, Span: time.Minute, Burst: 1000}},
		{"60\tper 1m  burst 1", ratelimit.LeakyBucket, ratelimit.Limit{N: 60, Span: time.Minute, Burst: 1}},
		{"1000 per month", ratelimit.Calendar, ratelimit.Limit{N: 1000, Per: ratelimit.PerMonth}},
		{"1000 per second", ratelimit.Calendar, ratelimit.Limit{N: 1000, Per: ratelimit.PerSecond}},
		{"1000 per 7d", ratelimit.Calendar, ratelimit.Limit{N: 1000, Per: ratelimit.PerWeek}},
		{"1000 per 1440m", ratelimit.Calendar, ratelimit.Limit{N: 1000, Per: ratelimit.PerDay}},
		{"20 at once for 30s", ratelimit.InFlight, ratelimit.Limit{N: 20, Span: 30 * time.Second}},
	} {
		if got, err := rulevalue.LimitOf(c.text, c.algorithm); err != nil || got != c.want {
			t.Errorf("parseLimit(%q, %v) = %v, %v; want %v", c.text, c.algorithm, got, err, c.want)
		}
	}
	for _, s := range []string{"", "60", "60 per", "per 1m", "60 per 1 m", "_1 per 1m", "1_ per 1m", "-1 per 1m", "1.5 per 1m", "60 PER 1m", "60//1m", "60/", "/1m", "60/1m/1m", "60 per month", "60/month", "60/m"} {
		if got, err := rulevalue.LimitOf(s, ratelimit.Sliding); err == nil {
			t.Errorf("parseLimit(%q) = %v, %v; want an error", s, got, err)
		}
	}
}

// TestFormsOfAlgorithms gives every form to every algorithm: each accepts its own, one with a burst also a limit without,
// and calendar the spans that are periods. Package ratelimit accepts them too.
func TestFormsOfAlgorithms(t *testing.T) {
	texts := map[string][]string{
		"60 per 1m": {
			"sliding", "exact", "two-bucket", "gcra", "token-bucket", "leaky-bucket", "fixed", "calendar",
		},
		"60 per 61s":          {"sliding", "exact", "two-bucket", "gcra", "token-bucket", "leaky-bucket", "fixed"},
		"60 per 1m burst 100": {"gcra", "token-bucket", "leaky-bucket"},
		"60 per month":        {"calendar"},
		"60 at once for 1m":   {"in-flight"},
	}
	for text, takers := range texts {
		for _, name := range limit.Algorithms() {
			f, err := Parse("r", []byte(oneLimit("name: x", "key: client", "limit: "+text, "algorithm: "+name)))
			if takes := strings.Contains(" "+strings.Join(takers, " ")+" ", " "+name+" "); takes != (err == nil) {
				t.Errorf("%s, %s: %v", text, name, err)
			}
			if err != nil {
				continue
			}
			if got := f.Limits.Rules()[0]; got.Algorithm.String() != name || got.Limits[0].N != 60 {
				t.Errorf("%s, %s: the rule is %+v", text, name, got)
			}
			if _, err := ratelimit.NewLimiter(f.Limits, ratelimit.Config{}); err != nil {
				t.Errorf("%s, %s: the store does not take it: %v", text, name, err)
			}
		}
	}
}

// TestSchemaPatterns compares the forms in the schema with the forms that are
// parsed.
func TestSchemaPatterns(t *testing.T) {
	patterns := make(map[string]*regexp.Regexp)
	for name, n := range parseSchema(t).Defs {
		if n.Pattern != "" {
			patterns[name] = regexp.MustCompile(n.Pattern)
		}
	}
	for _, c := range []struct {
		def, text string
		fits      bool
	}{
		{"limitText", "60 per 1m", true},
		{"limitText", " 6_0  per 1h30m ", true},
		{"limitText", "60 per 1m burst 10", true},
		{"limitText", "60 per month", true},
		{"limitText", "60 at once for 1m", true},
		{"limitText", "60/1m", true},
		{"limitText", "60 / minute burst 10", true},
		{"per", "60/1m", true},
		{"per", "60 per minute", true},
		{"per", "60/", false},
		{"limitText", "60", false},
		{"limitText", "60 in 1m", false},
		{"limitText", "60 per 1m burst", false},
		{"limitText", "60 at once", false},
		{"limitText", "60 at once for 1m burst 10", false},
		{"step", "2_000 below 1000 per 1s", true},
		{"step", "2000 below 1000/1s", true},
		{"step", "2000 under 1000 per 1s", false},
		{"keyField", "user", true},
		{"keyField", "user | client", true},
		{"keyField", "user|x-token|client", true},
		{"keyField", "user |", false},
		{"keyField", "client/24", true},
		{"keyField", "user | client/24,48", true},
		{"keyField", "user/24", false},
		{"keyField", "a|b|c|d|e|f|g|h|i", false},
	} {
		if got := patterns[c.def].MatchString(c.text); got != c.fits {
			t.Errorf("%s: the schema takes %q: %t, want %t", c.def, c.text, got, c.fits)
		}
		problem := ""
		if c.def == "step" {
			if _, err := parseStep(c.text); err != nil {
				problem = err.Error()
			}
		} else if c.def == "keyField" {
			if _, err := Parse("r", []byte("fields: {x-token: {}}\n"+oneLimit("name: x", "key: "+c.text, "limit: 1 per 1s"))); err != nil {
				problem = err.Error()
			}
		} else if _, form, err := rulevalue.AnyLimit(c.text); err != nil || form == rulevalue.NoForm {
			problem = fmt.Sprint("no form ", err)
		}
		if (problem == "") != c.fits {
			t.Errorf("%s: the parser takes %q: %q, want %t", c.def, c.text, problem, c.fits)
		}
	}
}

// The traffic of a step is written like a limit.
func TestStepForms(t *testing.T) {
	for _, c := range []struct {
		text  string
		below float64
	}{
		{"20 below 600 per 1m", 10},
		{"20 below 600/1m", 10},
		{"20 below 600 per minute", 10},
		{"20 below 7200/hour", 2},
		{"20 below 600 per month", 0},
		{"20 below 600", 0},
		{"20 below 600 at once for 1m", 0},
		{"20 600/1m", 0},
		{"below 600/1m", 0},
	} {
		step, err := parseStep(c.text)
		if (err == nil) != (c.below > 0) || err == nil && (step.Limit != 20 || step.Below != c.below) {
			t.Errorf("%q: %+v, %v; want below %v", c.text, step, err, c.below)
		}
	}
}
