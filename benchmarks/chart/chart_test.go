package main

import (
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const raw = `goos: linux
cpu: A <fast> processor
cores: 2
keys: 1000
BenchmarkAdd/subject=lately.Counter 1 11 ns/op
BenchmarkAdd/subject=slow 1 44 ns/op
BenchmarkAdd/subject=noop 1 1 ns/op
BenchmarkAddByEight/subject=lately.Counter-2 1 5 ns/op
BenchmarkLost/subject=slow-2 1 250 lost 25 lost-%
BenchmarkLost/subject=lately.Counter-2 1 0 lost 0 lost-%
BenchmarkGoroutines/goroutines=1/subject=lately.Counter-2 1 11 ns/op
BenchmarkGoroutines/goroutines=2/subject=lately.Counter-2 1 5 ns/op
BenchmarkGoroutines/goroutines=2/subject=slow-2 1 90 ns/op
`

func TestDraw(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "windows.txt"), []byte(raw), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := draw(dir); err != nil {
		t.Fatal(err)
	}
	svgs, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil || len(svgs) != 3 {
		t.Fatalf("drawn: %v, %v", svgs, err)
	}
	for _, name := range svgs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, name, string(text))
	}
	add, err := os.ReadFile(filepath.Join(dir, "add-1.svg"))
	if err != nil {
		t.Fatal(err)
	}
	ours, slow := strings.Index(string(add), ">lately.Counter<"), strings.Index(string(add), ">slow<")
	if ours < 0 || slow < ours {
		t.Errorf("lately.Counter at %d, slow at %d: the faster one must come first", ours, slow)
	}
	for _, want := range []string{"44 ns, loses 25 %", "A &lt;fast&gt; processor"} {
		if !strings.Contains(string(add), want) {
			t.Errorf("add-1.svg lacks %q", want)
		}
	}
	if strings.Contains(string(add), "noop") {
		t.Error("add-1.svg shows a floor beside the windows")
	}
}

// The chart of limits has one row for each algorithm, and for sliding both forms.
func TestDrawLimits(t *testing.T) {
	dir := t.TempDir()
	const raw = "keys: 1000\n" +
		"BenchmarkTake/subject=hash,one-line/op=zipf 1 40 ns/op\n" +
		"BenchmarkTake/subject=httprate.LimitCounter/op=zipf 1 200 ns/op\n" +
		"BenchmarkTake/subject=ratelimit,sliding,60-a-minute/op=zipf 1 90 ns/op\n" +
		"BenchmarkTake/subject=ratelimit,sliding,1000-a-minute/op=zipf 1 100 ns/op\n" +
		"BenchmarkTake/subject=ratelimit,exact,60-a-minute/op=zipf 1 110 ns/op\n" +
		"BenchmarkTake/subject=map,mutex/op=zipf-2 1 170 ns/op\n" +
		"BenchmarkTake/subject=httprate.LimitCounter/op=zipf-2 1 200 ns/op\n" +
		"BenchmarkTake/subject=ratelimit,sliding,1000-a-minute/op=zipf-2 1 60 ns/op\n"
	if err := os.WriteFile(filepath.Join(dir, "limits.txt"), []byte(raw), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := draw(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "limits-1.svg"))
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, "limits-1.svg", string(text))
	for _, want := range []string{">hash,one-line<", ">httprate.LimitCounter<", ">ratelimit,sliding,60-a-minute<", ">ratelimit,sliding,1000-a-minute<"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("limits-1.svg lacks %q", want)
		}
	}
	if strings.Contains(string(text), "exact,60") {
		t.Error("limits-1.svg has a second row of exact")
	}
	peers, err := os.ReadFile(filepath.Join(dir, "limits-peers.svg"))
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, "limits-peers.svg", string(peers))
	for text, want := range map[string]bool{">lately<": true, ">httprate.LimitCounter<": true, "hash": false, "exact": false, "map,mutex": false} {
		if strings.Contains(string(peers), text) != want {
			t.Errorf("limits-peers.svg has %q: %v, want %v", text, !want, want)
		}
	}
}

func wellFormed(t *testing.T, name, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	var err error
	for err == nil {
		_, err = d.Token()
	}
	if err != io.EOF {
		t.Errorf("%s: %v", name, err)
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("%s has a coordinate other than a number", name)
	}
}

func TestLimitsHoldAllValues(t *testing.T) {
	for _, v := range [][]float64{{1, 1}, {3, 700}, {20, 20}, {0.5, math.NaN(), 1000}, {99, 101}} {
		lo, hi := limits([]line{{values: v}})
		for _, x := range v {
			if x < lo || x > hi || lo >= hi {
				t.Errorf("%v: scale from %v to %v", v, lo, hi)
			}
		}
	}
}

func TestSpread(t *testing.T) {
	got := spread([]label{{"b", 101}, {"a", 100}, {"c", 200}}, 16)
	if got[0].text != "a" || got[1].y != 116 || got[2].y != 200 {
		t.Errorf("spread: %v", got)
	}
}
