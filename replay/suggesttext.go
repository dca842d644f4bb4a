package replay

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/match"
)

// header returns the comments at the top of the rules file.
func (s *Suggestion) header() string {
	var b strings.Builder
	comment := func(format string, args ...any) { fmt.Fprintf(&b, "# "+format+"\n", args...) }
	comment("Limits for %s events by %s, from %s to %s UTC.", count(s.Events), plural(s.keys(), s.Field, "distinct values of "+s.Field),
		s.First.UTC().Format(time.DateTime), s.Last.UTC().Format(time.DateTime))
	s.attackers(comment)
	if n := s.monitors(); n > 0 {
		comment("%s under allow, and left out below.", plural(n, "monitor is", "monitors are"))
	}
	if s.Share > 0 {
		comment("Each limit is the least that never refuses %v %% of its keys, judged alone on this log.", s.Share)
	} else {
		comment("Each limit is the least that never refuses one of the others, judged alone on this log.")
	}
	comment("All together refuse %s (%s) of %s, and start %s.", plural(int(s.All.Refused), "event", "events"),
		percent(s.All.Refused, s.Events), s.All.refusedKeys(s.Share == 0), plural(int(s.All.Bans), "ban", "bans"))
	for note := range s.notes() {
		comment("Note that %s.", note)
	}
	if s.Cut != nil {
		comment("They are for a part of the log: %s.", s.Cut.text(time.UTC))
	}
	comment("A ban is for a key that makes more than twice the limit.")
	return b.String()
}

// keys returns the number of keys of the log.
func (s *Suggestion) keys() int { return int(s.All.Keys) + s.monitors() }

func (s *Suggestion) monitors() (n int) {
	for i := range s.Outliers {
		if s.Outliers[i].Kind == Monitor {
			n++
		}
	}
	return n
}

// refusedKeys returns a sentence about how many keys are ever refused, with their kinds if outliers were looked for.
func (t *SuggestedTotals) refusedKeys(auto bool) string {
	if !auto || t.Outliers == 0 {
		return plural(int(t.KeysRefused), "key", "keys")
	}
	return fmt.Sprintf("%s of %s and %s of %s", count(t.OutliersRefused), plural(int(t.Outliers), "such key", "such keys"),
		count(t.KeysRefused-t.OutliersRefused), plural(int(t.Keys-t.Outliers), "other", "others"))
}

// shownOutliers is how many outliers that look like attackers are named, and how many crawlers.
const shownOutliers = 10

// attackers writes which outliers look like attackers.
func (s *Suggestion) attackers(comment func(format string, args ...any)) {
	n, events := 0, int64(0)
	for i := range s.Outliers {
		if !s.Outliers[i].Kind.ordinary() && s.Outliers[i].Kind != Monitor {
			n++
			events += s.Outliers[i].Events
		}
	}
	if s.keys() == 1 {
		comment("All events have one %s, and there is nothing to compare it with. If it is a proxy, use --trusted-proxy.", s.Field)
	}
	if n == 0 {
		return
	}
	comment("%s of %s %s %s of the events, and %s:", count(int64(n)), plural(s.keys(), "key", "keys"), verb(n, "has", "have"),
		percent(events, s.Events), verb(n, "looks like an attacker", "look like attackers"))
	shown := 0
	for i := range s.Outliers {
		if o := &s.Outliers[i]; !o.Kind.ordinary() && o.Kind != Monitor && shown < shownOutliers {
			comment("  %s, %s", keyText(o.Key), o.text(s.Events))
			shown++
		}
	}
	if n > shown {
		comment("  and %s more", count(int64(n-shown)))
	}
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// text returns what is remarkable about o.
func (o *Outlier) text(events int64) string {
	return fmt.Sprintf("%s: %s (%s), %s", o.Kind, plural(int(o.Events), "event", "events"), percent(o.Events, events), o.about)
}

// allow writes the section allow: the monitors, and the crawlers in comments, since an agent
// can be forged.
func (s *Suggestion) allow(b *strings.Builder) {
	if s.Field != match.Client.String() {
		return
	}
	shown := make(map[OutlierKind]int)
	for _, kind := range []OutlierKind{Monitor, Crawler} {
		for i := range s.Outliers {
			o := &s.Outliers[i]
			prefix, ok := o.allowPrefix()
			if o.Kind != kind || !ok {
				continue
			}
			if shown[kind]++; kind == Crawler && shown[kind] > shownOutliers {
				continue
			}
			switch {
			case kind == Monitor && shown[kind] == 1:
				b.WriteString("allow: # delete those that you do not know\n")
			case kind == Crawler && shown[kind] == 1:
				b.WriteString("# Crawlers by their agent: add those to allow whose addresses you have verified.\n")
			}
			if kind == Monitor {
				fmt.Fprintf(b, "  # %s\n  - %s\n", o.text(s.Events), prefixText(prefix))
			} else {
				fmt.Fprintf(b, "#  - %s # %s\n", prefixText(prefix), o.text(s.Events))
			}
		}
	}
	if more := shown[Crawler] - shownOutliers; more > 0 {
		fmt.Fprintf(b, "#  and %s more\n", count(int64(more)))
	}
}

// prefixText returns an address or a network, as a scalar of YAML.
func prefixText(p netip.Prefix) string {
	text := p.String()
	if p.IsSingleIP() {
		text = p.Addr().String()
	}
	return strconv.Quote(text)
}

// file returns the rules file.
func (s *Suggestion) file() string {
	var b strings.Builder
	b.WriteString("version: 1\n")
	s.fields(&b)
	s.allow(&b)
	b.WriteString("limits:\n")
	for i := range s.Limits {
		l := &s.Limits[i]
		l.comments(&b)
		fmt.Fprintf(&b, "  - name: %s\n    key: %s\n", l.Name, keyYAML(s.Field, s.key))
		if len(l.conditions) > 0 {
			var when []string
			for _, c := range l.conditions {
				when = append(when, c[0]+": "+strconv.QuoteToGraphic(c[1]))
			}
			fmt.Fprintf(&b, "    when: {%s}\n", strings.Join(when, ", "))
		}
		span := rulevalue.FormatDuration(l.span)
		fmt.Fprintf(&b, "    limit: %d per %s\n", l.N, span)
		if l.ban != nil {
			fmt.Fprintf(&b, "    ban: {after: %d refusals in %s, for: %s}\n", l.ban.After, span, rulevalue.FormatDuration(l.ban.For))
		}
	}
	return b.String()
}

// keyYAML returns a key that was given as that text, as a value of YAML.
func keyYAML(text string, key match.Key) string {
	if !strings.Contains(text, ",") {
		return text
	}
	names := keyFields(key)
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// fields writes the section fields: fields of the log that are not known without a declaration.
func (s *Suggestion) fields(b *strings.Builder) {
	names := keyvalue.Fields(s.key)
	for i := range s.Limits {
		for _, c := range s.Limits[i].conditions {
			names = append(names, c[0])
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !intake.NeedsSource(name) })
	for i, name := range names {
		if i == 0 {
			b.WriteString("fields: # as the log has them; for a server that is asked about requests, say where these have the value: {header: NAME}\n")
		}
		fmt.Fprintf(b, "  %s: {}\n", name)
	}
}

// comments writes what the limit does to the log, and the proof that it is the least.
func (l *SuggestedRule) comments(b *strings.Builder) {
	comment := func(format string, args ...any) { fmt.Fprintf(b, "  # "+format+"\n", args...) }
	span := rulevalue.FormatDuration(l.span)
	if others := l.Keys - l.Outliers; l.auto && l.Outliers > 0 {
		comment("%d per %s refuses %s of the %s and %s of %s; %d refuses %s of these.", l.N, span, count(l.OutliersRefused),
			plural(int(l.Outliers), "attacker", "attackers"), count(l.KeysRefused-l.OutliersRefused), plural(int(others), "other", "others"), l.N-1, count(l.OneLessRefuses))
	} else {
		comment("%d per %s never refuses %s of %s; %d refuses %s.", l.N, span,
			count(l.Keys-l.KeysRefused), plural(int(l.Keys), "key", "keys"), l.N-1, count(l.OneLessRefuses))
	}
	comment("On this log it refuses %s of %s (%s) and starts %s of %s.", count(l.Refused), plural(int(l.Events), "event", "events"),
		percent(l.Refused, l.Events), plural(int(l.Bans), "ban", "bans"), plural(int(l.BannedKeys), "key", "keys"))
	if !l.auto && l.needed == l.Keys && l.Keys > 1 {
		comment("The share of %s keys is all of them; a lower --share refuses the busiest.", count(l.Keys))
	}
	if len(l.mostRefused) > 0 {
		var most []string
		for _, k := range l.mostRefused {
			most = append(most, fmt.Sprintf("%s (%s)", keyText(k.Key), count(k.refused)))
		}
		comment("Most refused: %s.", strings.Join(most, ", "))
	}
	if l.AlwaysEnough > l.N {
		comment("The log's times lack fractions: %d is enough whatever they are.", l.AlwaysEnough)
	}
}
