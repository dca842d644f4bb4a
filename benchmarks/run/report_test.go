package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two passes, the second on a machine half as fast: ratios are unmoved.
const windowsRaw = `command: go run ./run
passes: 2 of 100ms a row
cores: 2
cpu: A processor
BenchmarkAdd/subject=atomic-add 1 7 ns/op 0 wait-%
BenchmarkAdd/subject=lately.Counter 1 14 ns/op 0 wait-%
BenchmarkAdd/subject=lately.Counter-2 1 6 ns/op 40 wait-%
BenchmarkBytes/slots=10/subject=lately.Counter-2 1 306 B/window
BenchmarkLost/subject=lately.Counter-2 1 0 lost 0 lost-%
BenchmarkAdd/subject=atomic-add 1 14 ns/op 0 wait-%
BenchmarkAdd/subject=lately.Counter 1 28 ns/op 0 wait-%
`

const keyedRaw = `keys: 1000
cores: 2
BenchmarkTable/subject=hash,one-line/op=zipf 1 40 ns/op
BenchmarkTable/subject=lately.Table,10-slots/op=zipf 1 80 ns/op
BenchmarkTable/subject=lately.Table,10-slots/op=fill-2 1 68.5 B/key 0.02 objects/key
BenchmarkKeys/keys=10000/subject=hash,one-line/op=uniform 1 20 ns/op
BenchmarkKeys/keys=10000/subject=lately.Table,10-slots/op=uniform 1 50 ns/op
`

// The second pass ran on a machine half as fast; the peer is slower in both.
const limitsRaw = `keys: 1000000
cores: 2
BenchmarkTake/subject=hash,one-line/op=zipf 1 40 ns/op 0 refused-%
BenchmarkTake/subject=httprate.LimitCounter/op=zipf 1 200 ns/op 34 refused-%
BenchmarkTake/subject=ratelimit,sliding,1000-a-minute/op=zipf 1 100 ns/op 34 refused-%
BenchmarkTraffic/subject=ratelimit,sliding,1000-a-minute 1 120 ns/op 34 refused-%
BenchmarkTake/subject=ratelimit,gcra,1000-a-minute/op=zipf 1 80 ns/op 34 refused-%
BenchmarkTake/subject=ratelimit,gcra,1000-a-minute/op=fill-2 1 90 B/key
BenchmarkTake/subject=hash,one-line/op=zipf 1 80 ns/op 0 refused-%
BenchmarkTake/subject=httprate.LimitCounter/op=zipf 1 400 ns/op 34 refused-%
BenchmarkTake/subject=ratelimit,sliding,1000-a-minute/op=zipf 1 200 ns/op 34 refused-%
BenchmarkTake/subject=ratelimit,gcra,1000-a-minute/op=zipf 1 160 ns/op 34 refused-%
BenchmarkKeys/keys=10000/subject=hash,one-line/op=zipf 1 20 ns/op
BenchmarkKeys/keys=10000/subject=ratelimit,sliding,1000-a-minute/op=zipf 1 30 ns/op
BenchmarkOneKey/subject=ratelimit,sliding,1000-a-minute/op=allowed 1 50 ns/op
BenchmarkPaced/subject=ratelimit,sliding,1000-a-minute 1 60 ns/op
BenchmarkFull/subject=ratelimit,sliding,60-a-minute-2 1 500 B/key
BenchmarkFull/subject=ratelimit,gcra,60-a-minute-2 1 50 B/key
`

func write(t *testing.T, raw string, fill func(*report)) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "raw.txt")
	if err := os.WriteFile(name, []byte(raw), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := newReport(name)
	if err != nil {
		t.Fatal(err)
	}
	fill(r)
	return r.String()
}

func TestWindows(t *testing.T) {
	doc := write(t, windowsRaw, writeWindows)
	for _, want := range []string{
		"| **lately.Counter** | 21.0 | 2.00 | 6.00! | - | - | - | - | - | 306 / - | 0 | 0 |",
		"| atomic-add | 10.5 | - | - |",
		"with `go run ./run`: 2 of 100ms a row.",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("the report lacks %q:\n%s", want, doc)
		}
	}
}

func TestKeyed(t *testing.T) {
	doc := write(t, keyedRaw, writeKeyed)
	for _, want := range []string{
		"| **lately.Table,10-slots** | 80.0 | 2.00 | - | - | - | - | - | - | - | 68.5 | 0.02 | - | - |",
		"| **lately.Table,10-slots** | 50.0 (2.50) |",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("the report lacks %q:\n%s", want, doc)
		}
	}
}

func TestLimits(t *testing.T) {
	doc := write(t, limitsRaw, writeLimits)
	for _, want := range []string{
		"| **ratelimit,sliding,1000-a-minute** | 150 | 2.50 | - | - | - | - | - | - | 120 | 34.0 |",
		"refuses up to a 60th of the span longer than needed |",
		"| **ratelimit,gcra,1000-a-minute** | 120 | 2.00 |",
		"| sliding, times faster than httprate.LimitCounter: zipf, one core | >= 1.80 | 2.00 | met |",
		"| sliding over ratelimit,gcra,1000-a-minute, the cheapest of ours: 1000000 keys, zipf | <= 1.60 | 1.25 | met |",
		"| bytes a key, gcra | <= 64.0 | 90.0 | **missed** |",
		"| sliding, zipf: its ratio to the floor, over that with 10000 keys | <= 1.30 | 1.67 | **missed** |",
		"| **ratelimit,sliding,1000-a-minute** | 30.0 (1.50) | 150 (2.50) |",
		"| **ratelimit,sliding,1000-a-minute** | 50.0 | - | - | - | 60.0 |",
		"| **sliding** | - | 500 | - |",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("the report lacks %q:\n%s", want, doc)
		}
	}
	for _, bad := range []string{"NaN", "%!"} { // a goal without a figure, a verb without a value
		if strings.Contains(doc, bad) {
			t.Errorf("the report has %q:\n%s", bad, doc)
		}
	}
}

func TestDigits(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		want string
	}{{0, "0"}, {0.0002387, "2.4e-04"}, {0.35, "0.35"}, {7.05, "7.05"}, {42.56, "42.6"}, {1048640, "1048640"}} {
		if got := digits(tt.v); got != tt.want {
			t.Errorf("digits(%v) = %q, want %q", tt.v, got, tt.want)
		}
	}
}
