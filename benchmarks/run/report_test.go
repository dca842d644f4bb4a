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
