package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestReportBansOfOthers replaces a ban of a rule by a ban by hand, between the decision and the hook: the hook does not
// run for it.
func TestReportBansOfOthers(t *testing.T) {
	key := must.Get(match.NewKey(match.Fold{}, "client"))(t)
	set := must.Get(NewSet(SetConfig{}, Rule{Name: "r", Key: key, Ban: &Ban{After: 1, Span: time.Minute, For: time.Minute}}))(t)
	told := 0
	m := must.Get(NewMemory(set, Config{OnBan: func(BanRecord) { told++ }}))(t)
	for source, want := range map[string]int{"rule": 1, "manual": 0} {
		name := "by " + source
		b := BanRecord{Rule: "r", Key: []string{name}, Since: time.Unix(1, 0), Until: time.Unix(100, 0), Source: source}
		must.Do(t, m.Ban(context.Background(), b))
		mr := m.rules.Load().rules[0]
		probes := []probe{{memoryRule: mr, hash: mr.records.table.Hash(name), key: name, extended: true}}
		for now, want := range map[int64]int{2e9: want, 200e9: 0} {
			told = 0
			if m.tellBans(probes, &Request{Subjects: make([]Subject, 1)}, now); told != want {
				t.Errorf("a ban by %s, at %d: the hook ran %d times, want %d", source, now, told, want)
			}
		}
	}
}
