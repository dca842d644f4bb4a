package accesslog_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

func sshdLine(stamp string) []byte {
	return []byte(stamp + " gate sshd[1]: Failed password for root from 203.0.113.9 port 1 ssh2")
}

func TestSyslogStamp(t *testing.T) {
	for _, tt := range []struct {
		stamp string
		ok    bool
	}{
		{"May  8 00:02:30", true},
		{"May 8 00:02:30", true},
		{"May    08 00:02:30", true},
		{"May 18 23:59:59", true},
		{"May\t8 00:02:30", false},
		{"May8 00:02:30", false},
		{"May 008 00:02:30", false},
		{"May 0 00:02:30", false},
		{"May 31 00:02:30", true},
		{"Jun 31 00:02:30", false},
		{"Feb 29 00:02:30", true}, // of 2016
		{"Feb 30 00:02:30", false},
		{"may  8 00:02:30", false},
		{"Mai  8 00:02:30", false},
		{"May  8 24:02:30", false},
		{"May  8 00:60:30", false},
		{"May  8 00:02:60", false},
		{"May  8 0:02:30", false},
		{"May  8  00:02:30", false},
		{"May  8 00:02:3", false},
		{" May  8 00:02:30", false},
	} {
		for _, year := range []int{0, 2016} {
			p := newParser(t, "messages", accesslog.Options{Year: year})
			var ev match.Event
			if ok := p.Parse(sshdLine(tt.stamp), &ev); ok != tt.ok {
				t.Errorf("year %d, %q: parsed = %v, want %v", year, tt.stamp, ok, tt.ok)
			}
			if _, _, dated := p.Dated(); dated != tt.ok {
				t.Errorf("year %d, %q: dated %v, want %v", year, tt.stamp, dated, tt.ok)
			}
		}
	}
}

// The year goes up where January follows December, and nowhere else. Lines of
// December that come late, up to a day, are of the year before.
func TestSyslogYears(t *testing.T) {
	p := newParser(t, "messages", accesslog.Options{Year: 2019})
	for _, tt := range []struct{ stamp, want string }{
		{"Nov 30 10:00:00", "2019-11-30"},
		{"Jan  3 10:00:00", "2019-01-03"}, // not behind December
		{"Dec 31 23:59:59", "2019-12-31"},
		{"Jan  1 00:00:00", "2020-01-01"},
		{"Dec 30 23:59:59", "2020-12-30"}, // that year's
		{"Feb 29 00:00:00", "2020-02-29"},
		{"Dec 31 23:59:59", "2020-12-31"},
		{"Jan  1 00:00:00", "2021-01-01"},
		{"Feb 29 00:00:00", ""}, // dated, but no day of that year
		{"Jan 31 00:00:00", "2021-01-31"},
		{"Dec 31 23:00:00", "2021-12-31"},
		{"Jan  1 22:00:00", "2022-01-01"},
		{"Dec 31 22:00:01", "2021-12-31"}, // late
		{"Dec 31 22:00:01", "2021-12-31"}, // late
		{"Jan  1 22:00:01", "2022-01-01"},
		{"Dec 31 22:00:00", "2022-12-31"}, // a day before
		{"Jan  1 21:59:59", "2023-01-01"},
	} {
		var ev match.Event
		got := ""
		if p.Parse(sshdLine(tt.stamp), &ev) {
			got = ev.Time.Format(time.DateOnly)
		}
		if got != tt.want {
			t.Errorf("%s is %q, want %q", tt.stamp, got, tt.want)
		}
	}
	first, last, dated := p.Dated()
	first, _ = accesslog.InYear(first, 2019)
	last, _ = accesslog.InYear(last, 2019)
	if !dated || first.Format(time.DateTime) != "2019-11-30 10:00:00" || last.Format(time.DateTime) != "2023-01-01 21:59:59" {
		t.Errorf("dated %v, from %v to %v", dated, first, last)
	}
	p.Reset()
	if _, _, dated := p.Dated(); dated {
		t.Error("after Reset there is a dated line")
	}
	var ev match.Event
	if !p.Parse(sshdLine("Jan  1 00:00:00"), &ev) || ev.Time.Year() != 2019 {
		t.Errorf("after Reset the year is %d, want 2019", ev.Time.Year())
	}
}

// A line is dated when it has a time, event or not.
func TestDatedLinesAreAnyLines(t *testing.T) {
	p := newParser(t, "messages", accesslog.Options{})
	var ev match.Event
	for _, line := range []string{"Dec  1 00:00:00 gate kernel: eth0 up", "no date at all", "Jan  1 00:00:00 gate kernel: eth0 down"} {
		if p.Parse([]byte(line), &ev) {
			t.Fatalf("%q is an event", line)
		}
	}
	if first, last, ok := p.Dated(); !ok || last.Sub(first) != 31*24*time.Hour {
		t.Errorf("dated %v, from %v to %v, want a month", ok, first, last)
	}
}

func TestLastYear(t *testing.T) {
	p := newParser(t, "messages", accesslog.Options{Year: 9999})
	var ev match.Event
	if !p.Parse(sshdLine("Dec 31 23:59:59"), &ev) || ev.Time.Unix() != 253402300799 {
		t.Errorf("the last second is %v", ev.Time)
	}
	if p.Parse(sshdLine("Jan  1 00:00:00"), &ev) {
		t.Errorf("a line of the year 10000 is read, as %v", ev.Time)
	}
}

func TestInYear(t *testing.T) {
	const yearSeconds = 366 * 24 * 3600
	leapDay := int64(31+28) * 24 * 3600
	for _, tt := range []struct {
		second int64
		year   int
		want   string
	}{
		{0, 2022, "2022-01-01T00:00:00.000000005Z"},
		{yearSeconds - 1, 2022, "2022-12-31T23:59:59.000000005Z"},
		{yearSeconds, 2022, "2023-01-01T00:00:00.000000005Z"},
		{-1, 2022, "2021-12-31T23:59:59.000000005Z"},
		{leapDay, 2016, "2016-02-29T00:00:00.000000005Z"},
		{leapDay, 2015, ""},
		{leapDay + yearSeconds, 2015, "2016-02-29T00:00:00.000000005Z"},
		{leapDay + 24*3600, 2015, "2015-03-01T00:00:00.000000005Z"},
		{0, 1, "0001-01-01T00:00:00.000000005Z"},
		{0, 0, ""},
		{-1, 1, ""},
		{yearSeconds - 1, 9999, "9999-12-31T23:59:59.000000005Z"},
		{yearSeconds, 9999, ""},
		{9_000 * yearSeconds, -8_000, "1000-01-01T00:00:00.000000005Z"},
		{1 << 61, 2022, ""},
		{-1 << 61, 2022, ""},
	} {
		at, ok := accesslog.InYear(time.Unix(tt.second, 5), tt.year)
		got := ""
		if ok {
			got = at.Format(time.RFC3339Nano)
		}
		if got != tt.want {
			t.Errorf("InYear(%d s, %d) = %q, want %q", tt.second, tt.year, got, tt.want)
		}
	}
}

// A log in chunks, each read by a parser without a year, gives the times of one parser with the year: this is how replay
// reads a file on all cores.
func TestChunksChain(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		year := 1 + rng.IntN(9999)
		lines := wanderingLog(rng)
		whole := newParser(t, "messages", accesslog.Options{Year: year})
		chunk := newParser(t, "messages", accesslog.Options{})
		offset := 0
		var previous time.Time // in the calendar of the whole
		for len(lines) > 0 {
			n := 1 + rng.IntN(len(lines))
			chunk.Reset()
			var got []time.Time
			for _, line := range lines[:n] {
				var ev match.Event
				if chunk.Parse(line, &ev) {
					got = append(got, ev.Time)
				}
			}
			first, last, ok := chunk.Dated()
			if ok && !previous.IsZero() {
				offset = accesslog.YearsAfter(previous, first)
			}
			checkChunk(t, whole, lines[:n], got, year+offset)
			if ok {
				previous = last.Add(time.Duration(offset) * 366 * 24 * time.Hour)
			}
			lines = lines[n:]
		}
	}
}

// wanderingLog is a log of several years; some of its lines have no time.
func wanderingLog(rng *rand.Rand) [][]byte {
	var lines [][]byte
	at := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rng.Int64N(int64(366 * 24 * time.Hour))))
	for range 1 + rng.IntN(60) {
		at = at.Add(time.Duration(rng.Int64N(int64(60*24*time.Hour))) - 5*24*time.Hour)
		if rng.IntN(3) == 0 { // around the new year, in disorder
			at = time.Date(at.Year(), 12, 31, 12, 0, 0, 0, time.UTC).Add(time.Duration(rng.Int64N(int64(24 * time.Hour))))
		}
		stamp := at.Format(time.Stamp)
		if rng.IntN(20) == 0 {
			stamp = "Feb 29 12:00:00"
		}
		line := sshdLine(stamp)
		switch rng.IntN(5) {
		case 0:
			line = line[:len(line)/2]
		case 1:
			line = line[1:]
		}
		lines = append(lines, line)
	}
	return lines
}

// checkChunk compares times that were parsed without a year, in order, with the
// times from the parser of the whole log.
func checkChunk(t *testing.T, whole *accesslog.Parser, lines [][]byte, got []time.Time, year int) {
	t.Helper()
	for _, line := range lines {
		var ev, bare match.Event
		ok := whole.Parse(line, &ev)
		if !newParser(t, "messages", accesslog.Options{}).Parse(line, &bare) {
			if ok {
				t.Fatalf("%q is an event with a year only", line)
			}
			continue
		}
		at, real := accesslog.InYear(got[0], year)
		got = got[1:]
		if real != ok || ok && !at.Equal(ev.Time) {
			t.Fatalf("%q in %d is %v, %v in a chunk, and %v, %v in the whole", line, year, at, real, ev.Time, ok)
		}
	}
}

func ExampleInYear() {
	f, _ := accesslog.ParseFormat("messages")
	p, _ := f.NewParser(accesslog.Options{}) // the year is still unknown
	var ev match.Event
	for _, line := range []string{
		"Dec 31 23:59:58 gate sshd[9]: Failed password for root from 203.0.113.9 port 4711 ssh2",
		"Jan  1 00:00:03 gate sshd[9]: Failed password for root from 203.0.113.9 port 4712 ssh2",
	} {
		if p.Parse([]byte(line), &ev) {
			at, ok := accesslog.InYear(ev.Time, 2025)
			fmt.Println(at, ok)
		}
	}
	// Output:
	// 2025-12-31 23:59:58 +0000 UTC true
	// 2026-01-01 00:00:03 +0000 UTC true
}
