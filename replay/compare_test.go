package replay_test

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

// TestCompareMatchesSingleAlgorithms compares algorithms, whole and streamed, with the replay
// under each of them alone, and the most in any window with a count over its decisions.
func TestCompareMatchesSingleAlgorithms(t *testing.T) {
	rnd := randtest.New(t)
	log := generated(t, rnd, "clf", accesslogtest.Config{Lines: 3000, Duration: time.Hour})
	c := replay.Config{Format: "clf", Files: []string{writeFile(t, "log", log)}, WhatIfs: []replay.WhatIf{mustWhatIf(t, replay.Limit, "4/1m")}}
	alone := make(map[string]*replay.RuleReport)
	most := make(map[string]int64)
	for _, name := range limit.Algorithms() {
		c.Algorithm = must.Get(limit.AlgorithmNamed(name))(t)
		r, decisions := replayed(t, c)
		alone[name], most[name] = &r.Rules[0], mostAllowed(t, log, decisions)
	}
	if most["exact"] != 4 || most["fixed"] <= 4 || most["gcra"] <= 4 {
		t.Fatalf("all algorithms decide the same on this log: %v", most)
	}
	c.Compare, c.Algorithm = true, ratelimit.GCRA
	for _, lateness := range []time.Duration{0, time.Hour} {
		c.Lateness = lateness
		c.InPieces(100)
		r, _ := replayed(t, c)
		if len(r.Rules) != 1 || r.Rules[0].Algorithm != "gcra" || *r.Rules[0].Refused != *alone["gcra"].Refused {
			t.Errorf("the limit itself: %+v", r.Rules)
		}
		if len(r.Compared) != len(alone) {
			t.Errorf("%d algorithms, want %d", len(r.Compared), len(alone))
		}
		for _, got := range r.Compared {
			want := alone[got.Algorithm]
			if got.Allowed != *want.Allowed || got.Refused != *want.Refused || got.KeysRefused != *want.KeysRefused || got.MostInWindow != most[got.Algorithm] || got.Problem != "" {
				t.Errorf("lateness %v: %+v, want allowed %d, refused %d, keys refused %d, most %d", lateness, got, *want.Allowed, *want.Refused, *want.KeysRefused, most[got.Algorithm])
			}
			if got.BytesPerKey < 16 || got.BytesPerKey > 1<<20 {
				t.Errorf("%s takes %v bytes per key", got.Algorithm, got.BytesPerKey)
			}
		}
	}
}

// mostAllowed counts the most allowed events of a client in any minute, by the definition.
func mostAllowed(t testing.TB, log []byte, decisions string) (most int64) {
	t.Helper()
	type event struct {
		client string
		at     int64
	}
	var events []event
	for line := range bytes.Lines(log) {
		if m := clfPattern.FindStringSubmatch(string(line)); m != nil {
			at := must.Get(time.Parse("02/Jan/2006:15:04:05 -0700", m[2]))(t)
			events = append(events, event{m[1], at.Unix()})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	times := make(map[string][]int64)
	for i, e := range events {
		if decisions[i] == 'A' {
			times[e.client] = append(times[e.client], e.at)
		}
	}
	for _, own := range times {
		for i, at := range own {
			n := int64(0)
			for j := i; j >= 0 && own[j] > at-60; j-- {
				n++
			}
			most = max(most, n)
		}
	}
	return most
}

// TestCompareErrors has what cannot be compared, and an algorithm that cannot count a limit.
func TestCompareErrors(t *testing.T) {
	limit := mustWhatIf(t, replay.Limit, "5/90s")
	for _, c := range []replay.Config{
		{},
		{WhatIfs: []replay.WhatIf{limit, limit}},
		{WhatIfs: []replay.WhatIf{mustWhatIf(t, replay.Ban, "5/1m:1h")}},
		{WhatIfs: []replay.WhatIf{mustWhatIf(t, replay.Limit, "5/day")}, Algorithm: ratelimit.Calendar},
		{Rules: mustRules(t, streamRules)},
		{Rules: mustRules(t, streamRules), WhatIfs: []replay.WhatIf{limit}},
	} {
		c.Files, c.Compare = []string{"-"}, true
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), "--compare: must be given with one --limit") {
			t.Errorf("%+v: %v", c.WhatIfs, err)
		}
	}
	c := replay.Config{Files: []string{writeFile(t, "log", smallLog(9))}, Format: smallFormat, Compare: true, WhatIfs: []replay.WhatIf{limit}, CountRefused: true}
	r := mustRun(t, c)
	problems := make(map[string]bool)
	for _, a := range r.Compared {
		problems[a.Algorithm] = a.Problem != ""
		if (a.Allowed == 0) != (a.Problem != "") {
			t.Errorf("%+v", a)
		}
	}
	if !problems["calendar"] || !problems["in-flight"] || problems["sliding"] {
		t.Errorf("problems of %v", problems)
	}
}

// TestSort orders the busiest keys by what the test counts itself.
func TestSort(t *testing.T) {
	log := "0,many\n100,many\n200,many\n300,many\n0,burst\n1,burst\n2,burst\n0,twice\n1,twice\n"
	c := replay.Config{Files: []string{writeFile(t, "log", []byte(log))}, Format: smallFormat, WhatIfs: []replay.WhatIf{mustWhatIf(t, replay.Limit, "1/1s"), mustWhatIf(t, replay.Ban, "1/1m:1h")}}
	for sort, want := range map[replay.Sort]string{"": "many burst twice", replay.SortCount: "many burst twice", replay.SortPeak: "burst twice many", replay.SortRefused: "burst twice"} {
		c.Sort = sort
		var got []string
		for _, k := range mustRun(t, c).Top {
			got = append(got, k.Values()...)
			if refused := map[string]int64{"burst": 2, "twice": 1}[k.Values()[0]]; (k.Refused != nil) != (sort == replay.SortRefused) || k.Refused != nil && *k.Refused != refused {
				t.Errorf("%s: %+v", sort, k)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", sort, got, want)
		}
	}
	for want, c := range map[string]replay.Config{
		`--sort: "size": must be count, peak or refused`:               {Sort: "size"},
		"--sort refused: must be given with --rules, --limit or --ban": {Sort: replay.SortRefused},
	} {
		c.Files = []string{"-"}
		if err := c.Validate(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
