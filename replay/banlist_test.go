package replay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/replay"
)

// bansOf returns the bans of the first rule in the JSON report, as KEY:START-END.
func bansOf(t *testing.T, r *replay.Report) (bans string, leftOut int64) {
	t.Helper()
	out := must.Get(json.Marshal(r))(t)
	var got struct {
		Rules []struct {
			BanList []struct {
				api.Key
				Start, End json.Number
			} `json:"ban_list"`
			BansLeftOut int64 `json:"bans_left_out"`
		}
	}
	must.Do(t, json.Unmarshal(out, &got))
	var all []string
	for _, b := range got.Rules[0].BanList {
		all = append(all, fmt.Sprintf("%s:%s-%s", strings.Join(b.Values(), " "), b.Start, b.End))
	}
	return strings.Join(all, " "), got.Rules[0].BansLeftOut
}

// TestBanList has the bans of what-ifs and of rules files, with the times from and to
// which they hold; of rules, with steps, and extended by what the client does.
func TestBanList(t *testing.T) {
	log := writeFile(t, "log", []byte("1,a\n1.5,a\n2,b\n2.25,a\n3,b\n20,a\n21,a\n21.75,a\n22,b\n"))
	rule := func(text string) replay.Config {
		return replay.Config{Rules: mustRules(t, "version: 1\nbans:\n- {name: x, key: client, "+text+"}\n")}
	}
	for name, c := range map[string]struct {
		config replay.Config
		want   string
	}{
		"what-if":  {replay.Config{WhatIfs: []replay.WhatIf{whatIf(t, replay.Ban, "1/5s:10s")}}, "a:1.5-11.5 b:3-13 a:21-31"},
		"rule":     {rule("after: 1 hits in 5s, for: 10s"), "a:1.5-11.5 b:3-13 a:21-31"},
		"steps":    {rule("after: 1 hits in 5s, for: [2s, 1m]"), "a:1.5-3.5 b:3-5 a:21-81"},
		"extended": {rule("after: 1 hits in 5s, for: 10s, extend: true"), "a:1.5-12.25 b:3-13 a:21-31.75"},
		"no ban":   {rule("after: 100 hits in 5s, for: 10s"), ""},
	} {
		c.config.Files, c.config.Format = []string{log}, smallFormat
		if got, leftOut := bansOf(t, mustRun(t, c.config)); got != c.want || leftOut != 0 {
			t.Errorf("%s: bans %s, %d left out; want %s", name, got, leftOut, c.want)
		}
	}
}

// TestBanListIsBounded has more bans than are listed.
func TestBanListIsBounded(t *testing.T) {
	var log strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&log, "%d,c%d\n", i, i)
	}
	path := writeFile(t, "log", []byte(log.String()))
	for _, c := range []replay.Config{
		{WhatIfs: []replay.WhatIf{whatIf(t, replay.Ban, "0/1s:1s")}},
		{Rules: mustRules(t, "version: 1\nbans: [{name: x, key: client, after: 1 hits in 1s, for: 1s}]\n")},
	} {
		c.Files, c.Format = []string{path}, smallFormat
		r := mustRun(t, c)
		bans, leftOut := bansOf(t, r)
		if n := int64(len(strings.Fields(bans))); n+leftOut != *r.Rules[0].Bans || n > 1000 || c.Rules == nil && n != 1000 {
			t.Errorf("%d bans, %d listed, %d left out", *r.Rules[0].Bans, n, leftOut)
		}
	}
}

// TestWhatIfsAreAlone has events over all years that can be counted: a what-if that
// remembers for years, or by the calendar, does not change what another one refuses.
func TestWhatIfsAreAlone(t *testing.T) {
	var log strings.Builder
	for year := 1900; year < 2150; year++ {
		fmt.Fprintf(&log, "%04d-06-01T00:00:00Z,a\n%04d-06-01T00:00:30Z,a\n", year, year)
	}
	path := writeFile(t, "log", []byte(log.String()))
	run := func(texts ...string) map[string]string {
		c := replay.Config{Files: []string{path}, Format: "csv:time=1@rfc3339,client=2"}
		for _, text := range texts {
			kind, text, _ := strings.Cut(text, " ")
			c.WhatIfs = append(c.WhatIfs, whatIf(t, replay.Kind(kind), "%s", text))
		}
		r := must.Get(replay.Run(t.Context(), c))(t)
		out := make(map[string]string)
		for _, rule := range r.Rules {
			out[rule.Name] = rule.SHA256
		}
		return out
	}
	alone := run("limit 1/1m")["1/1m"]
	for _, other := range []string{"limit 3/3650d", "ban 5/3650d:3650d", "hot client:5/365d"} {
		if got := run("limit 1/1m", other)["1/1m"]; got != alone {
			t.Errorf("beside %s: other decisions than alone", other)
		}
	}
}
