package replay

import (
	"context"
	"fmt"

	"github.com/lately-go/lately/accesslog"
)

// Frequent sets the size of tables of frequent values.
func (c *Config) Frequent(values int) { c.frequent = values }

// InPieces makes c read blocks that are little longer than the longest line, and judge chunks of about that many events: a
// small log has many of both.
func (c *Config) InPieces(events int) { c.blockSize, c.chunkEvents = accesslog.MaxLine+100, events }

// RunDecisions is Run, and also returns a byte for each event in the order of judging, 'A' if it was allowed and 'D' if it
// was refused: under a rules file for every event, under the first what-if for events with its key.
func RunDecisions(ctx context.Context, c Config) (report *Report, decisions string, err error) {
	r, err := newRun(c)
	if err != nil {
		return nil, "", err
	}
	e := r.newEvents()
	report, err = r.read(ctx, func(ctx context.Context, t *timeline) error {
		err := e.judge(ctx, t)
		if j := e.judgings[0]; j.option == "" {
			decisions += string(j.outcomes.all())
		} else {
			decisions += string(j.outcomes.judged())
		}
		return err
	})
	if err != nil {
		return report, decisions, err
	}
	return report, decisions, e.finish(report)
}

// MostRefused returns the keys with the most refused events in a report of a rule.
func MostRefused(r *RuleReport) string { return fmt.Sprint(r.mostRefused) }

// Protects reports whether a list of protected values protects a network, or an address.
func Protects(field string, list []string, value string) bool {
	return newKeyList(field, list).hasAny([]string{field}, []string{value})
}

// TestText is Test of a text.
var TestText = testText
