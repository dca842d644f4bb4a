package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/replay"
)

// TestPrecision has logs of several precisions. Which one a log has depends on its
// times alone: not on cores, not on blocks, not on the order of files.
func TestPrecision(t *testing.T) {
	whole := strings.Repeat("1700000000,a\n", 60_000) // several blocks
	for _, c := range []struct {
		name, log string
		want      time.Duration
	}{
		{"seconds", "1700000000,a\n1700000001,a\n", time.Second},
		{"no event", "", time.Second},
		{"milliseconds that are 0", "1700000000.000,a\n", time.Second},
		{"tenths", "1700000000.100,a\n1700000000.5,a\n", 100 * time.Millisecond},
		{"milliseconds", "1700000000.100,a\n1700000000.123,a\n", time.Millisecond},
		{"microseconds", "1700000000.5,a\n1700000000.100001,a\n", time.Microsecond},
		{"nanoseconds", "1700000000.100000001,a\n", time.Nanosecond},
		{"less than a nanosecond is cut off", "1700000000.0000000019,a\n", time.Nanosecond},
		{"far years", "1700000000.5,a\n-62135596800.000000001,a\n253402300799.000001,a\n", 100 * time.Millisecond},
		{"one in the last block", whole + "1700000000.25,a\n", 10 * time.Millisecond},
		{"one in the first block", "1700000000.001,a\n" + whole, time.Millisecond},
		{"before 1970", "-0.75,a\n", 10 * time.Millisecond},
		{"a bad line", "1700000000.123\n1700000000,a\n", time.Second},
	} {
		path, other := writeFile(t, "log", []byte(c.log)), writeFile(t, "other", []byte("1700000000,b\n"))
		for _, cores := range []int{1, 3} {
			for _, files := range [][]string{{path, other}, {other, path}} {
				r := mustRun(t, replay.Config{Files: files, Format: smallFormat, Cores: cores})
				if got := r.LogResolutionSeconds; got != c.want.Seconds() || r.ResolutionSeconds != got {
					t.Errorf("%s: precision of the log %v, judged at %v; want %v", c.name, got, r.ResolutionSeconds, c.want.Seconds())
				}
			}
		}
		r := mustRun(t, replay.Config{Files: []string{path}, Format: smallFormat, Resolution: time.Minute})
		if r.LogResolutionSeconds != c.want.Seconds() || r.ResolutionSeconds != 60 {
			t.Errorf("%s, --resolution 1m: precision of the log %v, judged at %v", c.name, r.LogResolutionSeconds, r.ResolutionSeconds)
		}
	}
}

// TestPrecisionInTimes has times with fractions in the report.
func TestPrecisionInTimes(t *testing.T) {
	for fraction, want := range map[string]string{"": "", ".5": ".5", ".123": ".123", ".123456789": ".123456789"} {
		log := fmt.Sprintf("1700000000%s,a\n", fraction)
		r := mustRun(t, replay.Config{
			Files: []string{writeFile(t, "log", []byte(log))}, Format: smallFormat, WhatIfs: []replay.WhatIf{whatIf(t, replay.Hot, "client:1/1s")},
		})
		if got := r.First.String(); got != "1700000000"+want || r.Rules[0].FirstHot[0].T.String() != got {
			t.Errorf("first %s, hot at %s; want 1700000000%s", got, r.Rules[0].FirstHot[0].T, want)
		}
	}
}
