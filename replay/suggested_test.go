package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/replay"
)

// TestFits has ten clients: one makes 20 requests in a second, one 5 in ten seconds, and the others one each: 90 % of them
// never exceed 1 a second.
func TestFits(t *testing.T) {
	var log strings.Builder
	line := func(sec, client int) {
		fmt.Fprintf(&log, "192.0.2.%d - - [02/Mar/2026:10:00:%02d +0000] \"GET / HTTP/1.1\" 200 5\n", client, sec)
	}
	for range 20 {
		line(0, 1)
	}
	for i := range 5 {
		line(2*i, 2)
	}
	for client := 3; client <= 10; client++ {
		line(client, client)
	}
	r := must.Get(replay.Run(t.Context(), replay.Config{Files: []string{"-"}, Stdin: strings.NewReader(log.String())}))(t)
	want := []replay.SuggestedLimit{
		{"1s", 1, 20, 20, 20, [][2]int64{{1, 1}, {20, 0}}},
	}
	for _, span := range []string{"10s", "60s", "300s", "3600s"} {
		want = append(want, replay.SuggestedLimit{span, 5, 20, 20, 20, [][2]int64{{1, 2}, {5, 1}, {20, 0}}})
	}
	if fmt.Sprint(r.SuggestedLimits) != fmt.Sprint(want) {
		t.Errorf("fits %v, want %v", r.SuggestedLimits, want)
	}
	// A limit at the fit denies only whom it may: one client of ten at p90.
	w := must.Get(replay.ParseWhatIf(replay.Limit, fmt.Sprintf("%d/10s", r.SuggestedLimits[1].P90)))(t)
	r = must.Get(replay.Run(t.Context(), replay.Config{Files: []string{"-"}, Stdin: strings.NewReader(log.String()), WhatIfs: []replay.WhatIf{w}}))(t)
	if *r.Rules[0].KeysRefused != 1 {
		t.Errorf("%d clients refused at p90, want 1", *r.Rules[0].KeysRefused)
	}
}
