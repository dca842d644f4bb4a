package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// TestRulesOfManyFields judges by a rules file with ten fields, each of which some events lack.
func TestRulesOfManyFields(t *testing.T) {
	var yaml, log strings.Builder
	yaml.WriteString("version: 1\nfields: {f0: {}, f1: {}, f2: {}, f3: {}, f4: {}, f5: {}, f6: {}, f7: {}, f8: {}}\nlimits:\n")
	spec := "json:time=t@s,client=client"
	for f := range 9 {
		fmt.Fprintf(&yaml, "  - {name: r%d, key: f%d, limit: 1 per 1m}\n", f, f)
		spec += fmt.Sprintf(",f%d=f%d", f, f)
	}
	// Line i has the client and all fields but number i mod 9, each with the
	// value i mod 18.
	for i := range 36 {
		fmt.Fprintf(&log, "{\"t\":%d,\"client\":\"c\"", 1000+i)
		for f := range 9 {
			if f != i%9 {
				fmt.Fprintf(&log, ",\"f%d\":\"v%d\"", f, i%18)
			}
		}
		log.WriteString("}\n")
	}
	file := must.Get(rules.Parse("rules.yaml", []byte(yaml.String())))(t)
	report, decisions, err := RunDecisions(t.Context(), Config{
		Files: []string{"-"}, Stdin: strings.NewReader(log.String()), Format: spec, Rules: file,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Each value comes twice within a minute: once allowed, once refused.
	if want := strings.Repeat("A", 18) + strings.Repeat("D", 18); decisions != want {
		t.Errorf("decisions %s, want %s", decisions, want)
	}
	for _, rule := range report.Rules {
		if *rule.Allowed != 16 || *rule.Refused != 16 || *rule.KeysRefused != 16 {
			text, _ := json.Marshal(rule)
			t.Errorf("want 16 allowed, 16 refused, 16 keys refused: %s", text)
		}
	}
}

// TestWhatIfsOfManyFields counts by another field under each what-if.
func TestWhatIfsOfManyFields(t *testing.T) {
	c := Config{Files: []string{"-"}, Format: "csv:time=1@s,client=2,f0=3,f1=4,f2=5,f3=6,f4=7,f5=8,f6=9", Stdin: strings.NewReader(
		"1,a,v,v,v,v,v,v,v\n2,b,v,,v,,v,,v\n3,c,w,w,w,w,w,w,v\n")}
	want := []int64{1, 0, 1, 0, 1, 0, 2} // of the events of v, all but the first
	for i := range want {
		w := must.Get(ParseWhatIf(Limit, "1/1m"))(t)
		w.Key = fmt.Sprintf("f%d", i)
		c.WhatIfs = append(c.WhatIfs, w)
	}
	report := must.Get(Run(t.Context(), c))(t)
	for i, n := range want {
		if got := *report.Rules[i].Refused; got != n {
			t.Errorf("%d refused by f%d, want %d", got, i, n)
		}
	}
}
