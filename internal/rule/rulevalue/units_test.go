package rulevalue

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
)

func TestParseDuration(t *testing.T) {
	good := map[string]time.Duration{
		"1ms": time.Millisecond, "500ms": 500 * time.Millisecond, "60s": time.Minute, "1m": time.Minute,
		"1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, ".5s": 500 * time.Millisecond, "1d": 24 * time.Hour,
		"7d": 7 * 24 * time.Hour, "1w": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour,
		"1000us": time.Millisecond, "1000000ns": time.Millisecond, "3650d": limit.MaxSpan, "01s": time.Second,
	}
	for s, want := range good {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	bad := map[string]string{
		"60": "no unit: did you mean 60s?",
		"0":  "no unit: did you mean 0s?",
	}
	for _, s := range []string{
		"", "0s", "1us", "1.5ms", "3651d", "9999999999999999999999h", "106751d106751d",
		"106751d106751d3d", "213504d551616ns", // 64 bits wrap around to a day
		"s", "-1s", "+1s", "1 s", "1y", "1M", "1.2.3s", ".s", "1s ", "1m30", "1m0", "minute", "1µ", "1e3s",
	} {
		bad[s] = errDuration.Error()
	}
	for s, want := range bad {
		got, err := ParseDuration(s)
		if err == nil || err.Error() != "duration: "+strconv.Quote(s)+": "+want || got != 0 {
			t.Errorf("ParseDuration(%q) = %v, %v; want %s", s, got, err, want)
		}
	}
}

// A server reads durations from questions, which are not to allocate.
func TestParseDurationDoesNotAllocate(t *testing.T) {
	for _, s := range []string{"500ms", "1m", "1h30m", "7d", "1w"} {
		if n := testing.AllocsPerRun(100, func() { ParseDuration(s) }); n != 0 {
			t.Errorf("ParseDuration(%q) allocates %v times", s, n)
		}
	}
	// The control: a fraction of days is not parsed in place.
	if n := testing.AllocsPerRun(100, func() { ParseDuration("1.5d") }); n == 0 {
		t.Error("this test cannot see allocations")
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{"1": 1, "268435456": 256 << 20, "256MiB": 256 << 20, "2GiB": 2 << 30, "1KiB": 1 << 10, "4194304TiB": 1 << 62} {
		if n, err := ParseBytes(s); n != want || err != nil {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "+1", "1MB", "1 MiB", "MiB", "1.5GiB", "4194305TiB", "99999999999999999999", "1KiBMiB"} {
		if n, err := ParseBytes(s); err == nil {
			t.Errorf("ParseBytes(%q) = %d", s, n)
		}
	}
}

// TestDurationRoundTrip checks that what FormatDuration writes is read as the
// same, and that the constant in messages is MaxSpan.
func TestDurationRoundTrip(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		// Round numbers of each unit as well as odd ones.
		unit := []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour, Day}[rng.IntN(5)]
		d := time.Duration(1+rng.Int64N(int64(limit.MaxSpan/unit))) * unit
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != d {
			t.Fatalf("seed %d: %v is written %q and read as %v, %v", seed, d, FormatDuration(d), got, err)
		}
	}
	if longest := FormatDuration(limit.MaxSpan); !strings.Contains(errDuration.Error(), " "+longest+",") {
		t.Errorf("the message %q does not name the longest span, %s", errDuration, longest)
	}
}

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "1m": time.Minute, "1m30s": 90 * time.Second, "24h": Day, "25h": 25 * time.Hour, "2d": 2 * Day, "7d": week,
		"50h": 50 * time.Hour, "1s1ms": 1001 * time.Millisecond, "-1s": -time.Second,
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%v) = %q; want %q", d, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for s, want := range map[string]string{
		"short":                    "short",
		strings.Repeat("x", 80):    strings.Repeat("x", 80),
		strings.Repeat("x", 81):    strings.Repeat("x", 80) + "…",
		strings.Repeat("€", 30):    strings.Repeat("€", 26) + "…",
		strings.Repeat("\x80", 99): "…",
	} {
		if got := Clip(s); got != want {
			t.Errorf("clip(%q) = %q; want %q", s, got, want)
		}
	}
}
