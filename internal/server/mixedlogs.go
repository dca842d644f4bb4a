package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A followedLog is a log and the fields that its events can have.
type followedLog struct {
	name, format string
	fields       []string
}

// selecting is the fields that say what kind of event it is.
var selecting = []string{eventfield.Log, eventfield.Format, "filter", "program"}

// MixedLogs returns a sentence for each limit and ban that does not select logs, if several logs of different formats
// that are followed have all its fields, as of the present lines of the logs.
func (c *Config) MixedLogs(file *rules.File) []string {
	var logs []followedLog
	for _, l := range follow.Formats(c.Follow) {
		logs = append(logs, followedLog{l.Path, l.Format.String(), l.Format.Fields()})
	}
	return mixedLogs(file.Limits, logs)
}

func mixedLogs(limits *ratelimit.Set, logs []followedLog) (sentences []string) {
	for _, r := range limits.Rules() {
		needed := when.Needs(&r.When)
		if slices.ContainsFunc(when.Fields(&r.When), func(field string) bool { return slices.Contains(selecting, field) }) {
			continue
		}
		var judged []followedLog
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

func (l *followedLog) has(fields []string) bool {
	return !slices.ContainsFunc(fields, func(field string) bool { return !slices.Contains(l.fields, field) })
}

// hasKey reports whether events of l can have a key: of "user | client", one is enough.
func (l *followedLog) hasKey(k match.Key) bool {
	return !slices.ContainsFunc(k.Fields(), func(field string) bool {
		return !slices.ContainsFunc(strings.Split(field, "|"), func(one string) bool {
			one, _, _ = strings.Cut(strings.TrimSpace(one), "/") // of "client/24"
			return slices.Contains(l.fields, one)
		})
	})
}

// mixed returns that a rule judges the events of logs of different formats, or "" if it does not.
func mixed(rule string, logs []followedLog) string {
	if !slices.ContainsFunc(logs, func(l followedLog) bool { return l.format != logs[0].format }) {
		return ""
	}
	var names []string
	for _, l := range logs[:min(len(logs), 8)] {
		names = append(names, fmt.Sprintf("%s (%s)", l.name, l.format))
	}
	if more := len(logs) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("rule %q judges the events of logs of different formats, %s: if it is about one of them, add a line such as `log: %q` to its when",
		rule, rulevalue.Join(names, "and"), logs[0].name)
}
