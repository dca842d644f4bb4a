package replay

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/rules"
)

// header returns what the rules file says of itself, in comments.
func (s *Suggestion) header() string {
	var b strings.Builder
	comment := func(format string, args ...any) { fmt.Fprintf(&b, "# "+format+"\n", args...) }
	comment("Limits for %s events by %s, from %s to %s UTC.", count(s.Events), plural(int(s.All.Keys), s.Field, "distinct values of "+s.Field),
		s.First.UTC().Format(time.DateTime), s.Last.UTC().Format(time.DateTime))
	comment("Each limit is the least that never refuses %v %% of its keys, judged alone on this log.", s.Share)
	comment("All together refuse %s (%s) of %s, and start %s.", plural(int(s.All.Refused), "event", "events"),
		percent(s.All.Refused, s.Events), plural(int(s.All.KeysRefused), "key", "keys"), plural(int(s.All.Bans), "ban", "bans"))
	if s.Cut != nil {
		comment("They are for a part of the log: %s.", s.Cut.text(time.UTC))
	}
	comment("A ban is for a key that makes more than twice the limit.")
	return b.String()
}

// file returns the rules file.
func (s *Suggestion) file() string {
	var b strings.Builder
	b.WriteString("version: 1\nlimits:\n")
	for i := range s.Limits {
		l := &s.Limits[i]
		l.comments(&b)
		fmt.Fprintf(&b, "  - name: %s\n    key: %s\n", l.Name, s.Field)
		if field, pattern, ok := strings.Cut(l.Group, " "); ok {
			fmt.Fprintf(&b, "    when: {%s: %s}\n", field, strconv.QuoteToGraphic(strings.TrimSpace(pattern)))
		}
		span := rules.FormatDuration(l.span)
		fmt.Fprintf(&b, "    limit: %d per %s\n", l.N, span)
		if l.ban != nil {
			fmt.Fprintf(&b, "    ban: {after: %d refusals in %s, for: %s}\n", l.ban.After, span, rules.FormatDuration(l.ban.For))
		}
	}
	return b.String()
}

// comments writes what the limit does to the log, and the proof that it is the least.
func (l *SuggestedRule) comments(b *strings.Builder) {
	comment := func(format string, args ...any) { fmt.Fprintf(b, "  # "+format+"\n", args...) }
	comment("%d per %s never refuses %s of %s; %d refuses %s.", l.N, rules.FormatDuration(l.span),
		count(l.Keys-l.KeysRefused), plural(int(l.Keys), "key", "keys"), l.N-1, count(l.OneLessRefuses))
	comment("On this log it refuses %s (%s) and starts %s of %s.", plural(int(l.Refused), "event", "events"),
		percent(l.Refused, l.Events), plural(int(l.Bans), "ban", "bans"), plural(int(l.BannedKeys), "key", "keys"))
	if l.needed == l.Keys && l.Keys > 1 {
		comment("The share of %s keys is all of them; a lower --share refuses the busiest.", count(l.Keys))
	}
	if len(l.mostRefused) > 0 {
		var most []string
		for _, k := range l.mostRefused {
			most = append(most, fmt.Sprintf("%s (%s)", keyText(k.Key), count(k.Refused)))
		}
		comment("Most refused: %s.", strings.Join(most, ", "))
	}
	if l.AlwaysEnough > l.N {
		comment("The log's times lack fractions: %d is enough whatever they are.", l.AlwaysEnough)
	}
}
