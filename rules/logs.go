package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/eventfield"
	"github.com/lately-go/lately/internal/rulevalue"
	"github.com/lately-go/lately/internal/when"
	"github.com/lately-go/lately/match"
)

// A Log describes a log that a server follows.
type Log struct {
	Name, Format string   // the fields log and format of events
	Fields       []string // that its events can have
}

// selecting is the fields that say what kind of event it is.
var selecting = []string{eventfield.Log, eventfield.Format, "filter", "program"}

// MixedLogs returns a sentence for each limit and ban that does not select logs, if several logs
// of different formats have all its fields.
func (f *File) MixedLogs(logs []Log) (sentences []string) {
	for i := range f.Limits.Len() {
		r := f.Limits.Rule(i)
		needed := when.Needs(&r.When)
		if slices.ContainsFunc(when.Fields(&r.When), func(field string) bool { return slices.Contains(selecting, field) }) {
			continue
		}
		var judged []Log
		for _, l := range logs {
			if l.has(needed) && l.hasKey(r.Key) {
				judged = append(judged, l)
			}
		}
		if sentence := mixed(r.Name, judged); sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	return sentences
}

func (l *Log) has(fields []string) bool {
	return !slices.ContainsFunc(fields, func(field string) bool { return !slices.Contains(l.Fields, field) })
}

// hasKey reports whether events of l can have a key: of "user | client", one is enough.
func (l *Log) hasKey(k match.Key) bool {
	return !slices.ContainsFunc(k.Fields(), func(field string) bool {
		return !slices.ContainsFunc(strings.Split(field, "|"), func(one string) bool {
			one, _, _ = strings.Cut(strings.TrimSpace(one), "/") // of "client/24"
			return slices.Contains(l.Fields, one)
		})
	})
}

// mixed returns that a rule judges the events of logs of different formats, or "" if it does not.
func mixed(rule string, logs []Log) string {
	if !slices.ContainsFunc(logs, func(l Log) bool { return l.Format != logs[0].Format }) {
		return ""
	}
	var names []string
	for _, l := range logs[:min(len(logs), 8)] {
		names = append(names, fmt.Sprintf("%s (%s)", l.Name, l.Format))
	}
	if more := len(logs) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("rule %q judges the events of logs of different formats, %s: if it is about one of them, add a line such as `log: %q` to its when",
		rule, rulevalue.Join(names, "and"), logs[0].Name)
}
