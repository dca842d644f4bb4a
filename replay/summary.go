package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// summary returns a sentence about what stands out: the busiest key, the busiest bar, and how many events
// were refused. It is empty if there is no event.
func (rep *Report) summary() string {
	if rep.First == nil {
		return ""
	}
	var parts []string
	if len(rep.Top) > 0 {
		k := rep.Top[0]
		parts = append(parts, fmt.Sprintf("%s made %s of the events", keyText(k.Key), percent(k.Count, rep.Events)))
	}
	if t := rep.Timeline; t != nil && len(t.Events) > 1 && slices.Max(t.Events) > 1 {
		most := slices.Max(t.Events)
		bar := time.Duration(t.BarSeconds * float64(time.Second))
		at := t.Start.Add(time.Duration(slices.Index(t.Events, most)) * bar)
		parts = append(parts, fmt.Sprintf("the busiest %s began at %s UTC with %s of them", rulevalue.FormatDuration(bar), exactStamp(Epoch{at}, time.UTC), count(most)))
	}
	if t := rep.Timeline; t != nil && t.Refused != nil {
		n := int64(0)
		for _, refused := range t.Refused {
			n += refused
		}
		parts = append(parts, rep.refusedText(n))
	}
	if n := len(parts); n > 1 {
		parts[n-1] = "and " + parts[n-1]
	}
	return strings.Join(parts, "; ") + "."
}

// refusedText returns how many events were refused, and the rule that refused most of them.
func (rep *Report) refusedText(n int64) string {
	if n == 0 {
		return "no event was refused"
	}
	var by string
	most := int64(0)
	for i := range rep.Rules {
		if r := &rep.Rules[i]; r.Refused != nil && *r.Refused > most {
			by, most = ", most by "+r.Name, *r.Refused
		}
	}
	return fmt.Sprintf("%s (%s) %s refused%s", plural(int(n), "event", "events"), percent(n, rep.Events), verb(int(n), "was", "were"), by)
}
