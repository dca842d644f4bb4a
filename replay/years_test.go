package replay_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/replay"
)

// sshd is a failed login at a syslog time.
func sshd(stamp string) string {
	return stamp + " host sshd[1]: Failed password for root from 192.0.2.1 port 22 ssh2\n"
}

// noise is a line of sshd without a failed login.
func noise(stamp string) string {
	return stamp + " host sshd[1]: Connection closed by 192.0.2.1\n"
}

// TestSyslogYears checks the years of logs whose times have none.
func TestSyslogYears(t *testing.T) {
	const dec, jan, may = "Dec 31 23:59:59", "Jan  1 00:00:01", "May  8 00:00:00"
	for _, c := range []struct {
		name     string
		log      string
		year     int // 0: by the file's time, in 2024
		want     string
		bad      int64
		modified time.Time
	}{
		{"by the file", sshd(may), 0, "2024-05-08", 0, time.Time{}},
		{"given", sshd(may), 1999, "1999-05-08", 0, time.Time{}},
		{"a new year, by the file", sshd(dec) + sshd(jan), 0, "2023-12-31 2024-01-01", 0, time.Time{}},
		{"a new year, given", sshd(dec) + sshd(jan), 2020, "2020-12-31 2021-01-01", 0, time.Time{}},
		{"three new years", strings.Repeat(sshd(jan)+sshd("Dec 31 00:00:01"), 3) + sshd(jan), 0, "2021-01-01 2021-12-31 2022-01-01 2022-12-31 2023-01-01 2023-12-31 2024-01-01", 0, time.Time{}},
		{"a step back within the year", sshd(may) + sshd("Feb  1 00:00:00") + sshd(jan), 0, "2024-05-08 2024-02-01 2024-01-01", 0, time.Time{}},
		{"from November to January is none", sshd("Nov 30 00:00:00") + sshd(jan), 0, "2024-11-30 2024-01-01", 0, time.Time{}},
		{"a step between bad lines", noise(dec) + sshd(jan) + noise("Dec 20 00:00:00") + noise(jan) + sshd(may), 2020, "2021-01-01 2022-05-08", 3, time.Time{}},
		{"a late line of December", sshd(dec) + sshd(jan) + sshd("Dec 31 12:00:00") + sshd(jan) + sshd(may), 2020, "2020-12-31 2021-01-01 2020-12-31 2021-01-01 2021-05-08", 0, time.Time{}},
		{"a late line of December, by the file", sshd(jan) + sshd(dec) + sshd(jan) + sshd(may), 0, "2024-01-01 2023-12-31 2024-01-01 2024-05-08", 0, time.Time{}},
		{"a late line in a later block", sshd(jan) + strings.Repeat("undated\n", 150_000) + noise(dec) + sshd(dec) + sshd(may), 2021, "2021-01-01 2020-12-31 2020-05-08", 150_001, time.Time{}},
		{"a new year between blocks", sshd(dec) + strings.Repeat("undated\n", 150_000) + sshd(jan), 0, "2023-12-31 2024-01-01", 150_000, time.Time{}},
		{"a leap day", sshd("Feb 29 12:00:00"), 0, "2024-02-29", 0, time.Time{}},
		{"a leap day, given", sshd("Feb 29 12:00:00"), 2000, "2000-02-29", 0, time.Time{}},
		{"a leap day in a common year", sshd(may) + sshd("Feb 29 12:00:00") + sshd(may), 1900, "1900-05-08 1900-05-08", 1, time.Time{}},
		{"leap days of two years", sshd("Feb 29 12:00:00") + sshd(dec) + sshd(jan) + sshd("Feb 29 12:00:00"), 2020, "2020-02-29 2020-12-31 2021-01-01", 1, time.Time{}},
		{"copied in the year after", sshd("Nov 30 00:00:00") + sshd(dec), 0, "2023-11-30 2023-12-31", 0, time.Time{}},
		{"behind UTC at the new year", sshd("Dec 31 23:30:00"), 0, "2023-12-31", 0, time.Date(2024, 1, 1, 4, 30, 0, 0, time.UTC)},
		{"ahead of UTC at the new year", sshd(dec) + sshd(jan), 0, "2023-12-31 2024-01-01", 0, time.Date(2023, 12, 31, 10, 0, 1, 0, time.UTC)},
		{"a January, copied at the end of the year", sshd(dec) + sshd(jan), 0, "2022-12-31 2023-01-01", 0, time.Date(2023, 12, 31, 9, 59, 59, 0, time.UTC)},
		{"copied in the year after, with bad lines at the end", sshd(dec) + strings.Repeat("undated\n", 150_000) + noise(dec), 0, "2023-12-31", 150_001, time.Time{}},
		{"an upgrade to times with a year", sshd(dec) + sshd(jan) + sshd("2021-01-02T00:00:00+00:00"), 0, "2020-12-31 2021-01-01 2021-01-02", 0, time.Time{}},
		{"an upgrade in a later block", sshd(may) + strings.Repeat("undated\n", 150_000) + sshd("2021-05-09T00:00:00Z"), 0, "2021-05-08 2021-05-09", 150_000, time.Time{}},
		{"an upgrade, after which a leap day is bad", sshd("Feb 29 12:00:00") + sshd("2021-03-01T00:00:00Z"), 0, "2021-03-01", 1, time.Time{}},
		{"a line without a year after those with one", sshd("2024-05-30T00:00:00Z") + sshd("May 31 00:00:00"), 0, "2024-05-30 2024-05-31", 0, time.Time{}},
		{"the file's year in UTC", sshd(dec), 0, "2023-12-31", 0, time.Date(2024, 1, 1, 3, 0, 0, 0, time.FixedZone("", 4*3600))},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, "auth.log", []byte(c.log))
			if c.modified.IsZero() {
				c.modified = time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)
			}
			must.Do(t, os.Chtimes(path, c.modified, c.modified))
			checkYears(t, replay.Config{Files: []string{path}, Year: c.year, Format: "messages"}, c.want, c.bad)
		})
	}
}

// checkYears replays c and compares the number of events and of
// bad lines, the first and the last day, and how often days are far apart.
func checkYears(t *testing.T, c replay.Config, want string, bad int64) {
	t.Helper()
	days := strings.Fields(want)
	c.WhatIfs = nil
	r := mustRun(t, c)
	if r.Bad+r.Skipped != bad || r.Events != int64(len(days)) {
		t.Fatalf("%d events, %d bad; want %d, %d", r.Events, r.Bad+r.Skipped, len(days), bad)
	}
	first, last := days[0], days[0]
	for _, day := range days {
		first, last = min(first, day), max(last, day)
	}
	if got := r.First.UTC().Format(time.DateOnly) + " " + r.Last.UTC().Format(time.DateOnly); got != first+" "+last {
		t.Errorf("from and to %s, want %s %s", got, first, last)
	}
	jumps := 0
	for i := 1; i < len(days); i++ {
		a, _ := time.Parse(time.DateOnly, days[i-1])
		b, _ := time.Parse(time.DateOnly, days[i])
		if b.Sub(a).Abs() > 48*time.Hour {
			jumps++
		}
	}
	if len(r.Jumps) != jumps {
		t.Errorf("jumps %v, want %d", r.Jumps, jumps)
	}
	checkAssumedYear(t, c, r, days[0])
}

// TestYearsByClock reports that patterns have found times without a year.
func TestYearsByClock(t *testing.T) {
	patterns := filepath.Join(t.TempDir(), "ssh.regex")
	must.Do(t, os.WriteFile(patterns, []byte("match Failed password for root from <HOST>\n"), 0o600))
	for stamp, want := range map[string]bool{"May  8 00:00:00": true, "2018-05-08 00:00:00": false} {
		r := must.Get(replay.Run(t.Context(), replay.Config{Files: []string{"-"}, Stdin: strings.NewReader(sshd(stamp)), Format: "regex:" + patterns}))(t)
		var text strings.Builder
		must.Do(t, r.WriteText(&text, replay.TextStyle{}))
		if r.Events != 1 || r.ByClock != want || strings.Contains(text.String(), "some times have no year: each is read as the latest") != want {
			t.Errorf("%s: %v, want %v, and the text is\n%s", stamp, r.ByClock, want, text.String())
		}
	}
}

// checkAssumedYear compares the report with the assumed year, by default the year of
// the first day, in the JSON and in the text.
func checkAssumedYear(t *testing.T, c replay.Config, r *replay.Report, first string) {
	t.Helper()
	var text strings.Builder
	must.Do(t, r.WriteText(&text, replay.TextStyle{}))
	if !r.Zoneless || !strings.Contains(text.String(), "the times name no zone: they are read as UTC\n") {
		t.Errorf("zoneless is %v, and the text is\n%s", r.Zoneless, text.String())
	}
	s, err := replay.Suggest(t.Context(), replay.SuggestConfig{Config: c})
	if err != nil || !s.Zoneless || !strings.Contains(s.Rules, "# Note that the times name no zone: they are read as UTC.\n") {
		t.Errorf("the suggestion does not mention the missing zone: %v", err)
	}
	want := fmt.Sprintf("the assumed year of its first line is %s;", first[:4])
	switch {
	case c.Year != 0:
		if len(r.AssumedYears) != 0 || strings.Contains(text.String(), "assumed year") {
			t.Errorf("with a year given, %v is assumed", r.AssumedYears)
		}
	case len(r.AssumedYears) != 1 || fmt.Sprint(r.AssumedYears[0].Year) != first[:4] || !strings.Contains(text.String(), want) || !strings.Contains(s.Rules, want):
		t.Errorf("assumed years %v, want %s; the text and the suggestion have to have %q:\n%s%s", r.AssumedYears, first[:4], want, text.String(), s.Rules)
	}
}

// TestSyslogYearsAcrossBlocks has several new years in a log of many blocks, wherever the blocks end, and another file
// after it, which has its own years.
func TestSyslogYearsAcrossBlocks(t *testing.T) {
	rnd := randtest.New(t)
	var log bytes.Buffer
	at := time.Date(2018, 1, 15, 0, 0, 0, 0, time.UTC)
	step := 6 * time.Hour
	n, quiet := int64(0), false
	for at.Year() < 2025 {
		stamp := at.Format("Jan _2 15:04:05")
		line := noise(stamp)
		if quiet = !quiet && rnd.IntN(3) == 0; !quiet { // never two in a row, so that no gap is a day
			line = sshd(stamp)
			n++
		}
		if rnd.IntN(2) == 0 {
			line = "an undated line " + strings.Repeat("x", rnd.IntN(900)) + "\n" + line
		}
		log.WriteString(line)
		at = at.Add(time.Duration(rnd.Int64N(int64(step))))
	}
	last := at.Add(-step)
	if log.Len() < 4*blockSize {
		t.Fatalf("the log has %d bytes, not enough for several blocks", log.Len())
	}
	path := writeFile(t, "auth.log", log.Bytes())
	modified := time.Date(2024, 12, 31, 23, 59, 59, 0, time.UTC)
	must.Do(t, os.Chtimes(path, modified, modified))
	for _, year := range []int{0, 2018} {
		for _, cores := range []int{1, 4} {
			r := mustRun(t, replay.Config{Files: []string{path, path}, Year: year, Format: "messages", Cores: cores})
			if r.Events != 2*n || r.First.UTC().Year() != 2018 || r.Last.UTC().Year() != 2024 || r.Last.Before(last.Add(-step)) {
				t.Errorf("year %d, %d cores: %d events from %v to %v; want %d from 2018 to %v", year, cores, r.Events, r.First, r.Last, 2*n, last)
			}
			// One jump: from the end of the file to its beginning.
			if len(r.Jumps) != 1 {
				t.Errorf("year %d, %d cores: jumps %v", year, cores, r.Jumps)
			}
		}
	}
}

// TestSyslogYearOfStdin has a log without a file: now is when it ends.
func TestSyslogYearOfStdin(t *testing.T) {
	before := time.Now().UTC().Year()
	r := mustRun(t, replay.Config{Files: []string{"-"}, Stdin: strings.NewReader(sshd("Dec 31 23:59:59") + sshd("Jan  1 00:00:01"))})
	if after := time.Now().UTC().Add(14 * time.Hour).Year(); r.Last.UTC().Year() < before || r.Last.UTC().Year() > after {
		t.Errorf("the last event is in %v, want %d", r.Last.UTC(), after)
	}
	if got := fmt.Sprintf("%d %s", r.Last.UTC().Year()-r.First.UTC().Year(), r.Format); got != "1 messages" {
		t.Errorf("years and format: %s", got)
	}
}
