package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// TestLimitsFromALog has the lines of a log bring the limit of their client, in the middle of a window: by a number,
// and by the name of a plan.
func TestLimitsFromALog(t *testing.T) {
	type line struct {
		quota, plan string
		want        byte
	}
	lines := []line{
		{"", "", 'A'}, {"", "", 'A'}, {"", "", 'D'}, // the default, 2
		{"4", "pro", 'A'}, {"4", "pro", 'A'}, {"4", "pro", 'D'}, // an upgrade in the middle of the window
		{"3", "mini", 'D'}, {"", "", 'D'}, // a downgrade
		{"99", "max", 'A'}, {"99", "max", 'A'}, {"99", "max", 'D'}, // at most 6
	}
	var log strings.Builder
	want := ""
	for i, l := range lines {
		fmt.Fprintf(&log, "{\"t\":%d,\"client\":\"192.0.2.1\",\"quota\":%q,\"plan\":%q}\n", 1000+i, l.quota, l.plan)
		want += string(l.want)
	}
	for _, limit := range []string{"from: quota", "by: plan, plans: {pro: 4, mini: 3 per 1m, max: 6}"} {
		text := "version: 1\nfields: {quota: {}, plan: {}}\nlimits: [{name: a, key: client, limit: {default: 2 per 1m, at_most: 6, " + limit + "}}]\n"
		file := must.Get(rules.Parse("rules.yaml", []byte(text)))(t)
		report, got, err := RunDecisions(t.Context(), Config{
			Files: []string{"-"}, Stdin: strings.NewReader(log.String()), Format: "json:time=t@s,client=client,quota=quota,plan=plan", Rules: file,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s: decisions %s, want %s", limit, got, want)
		}
		if r := report.Rules[0]; r.N != 2 || r.AtMost != 6 {
			t.Errorf("%s: reported as %d, at most %d, want 2 and 6", limit, r.N, r.AtMost)
		}
	}
}
