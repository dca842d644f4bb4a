package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata" // the zones, wherever the test runs

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

var zoneNames = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns",
	"Pacific/Apia", "America/Sao_Paulo", "Africa/Monrovia", "Asia/Beirut", "Australia/Adelaide",
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z := must.Get(time.LoadLocation(name))(t)
	return z
}

func zones(t testing.TB) []*time.Location {
	t.Helper()
	var zs []*time.Location
	for _, name := range zoneNames {
		zs = append(zs, zone(t, name))
	}
	return zs
}

// TestPeriods has the bounds of periods with unusual lengths.
func TestPeriods(t *testing.T) {
	const layout = "2006-01-02 15:04:05 -0700"
	for _, c := range []struct {
		zone       string
		period     limit.Period
		at         string
		start, end string
		length     time.Duration
	}{
		{"UTC", limit.Second, "2024-05-05 10:20:30 +0000", "2024-05-05 10:20:30 +0000", "2024-05-05 10:20:31 +0000", time.Second},
		{"UTC", limit.Minute, "2024-05-05 10:20:30 +0000", "2024-05-05 10:20:00 +0000", "2024-05-05 10:21:00 +0000", time.Minute},
		{"UTC", limit.Hour, "1969-12-31 23:59:59 +0000", "1969-12-31 23:00:00 +0000", "1970-01-01 00:00:00 +0000", time.Hour},
		{"UTC", limit.Day, "1969-12-31 23:59:59 +0000", "1969-12-31 00:00:00 +0000", "1970-01-01 00:00:00 +0000", 24 * time.Hour},
		// Months and leap years.
		{"UTC", limit.Month, "2024-02-29 12:00:00 +0000", "2024-02-01 00:00:00 +0000", "2024-03-01 00:00:00 +0000", 29 * 24 * time.Hour},
		{"UTC", limit.Month, "2023-02-28 12:00:00 +0000", "2023-02-01 00:00:00 +0000", "2023-03-01 00:00:00 +0000", 28 * 24 * time.Hour},
		{"UTC", limit.Month, "2100-02-28 12:00:00 +0000", "2100-02-01 00:00:00 +0000", "2100-03-01 00:00:00 +0000", 28 * 24 * time.Hour},
		{"UTC", limit.Month, "2023-12-31 23:59:59 +0000", "2023-12-01 00:00:00 +0000", "2024-01-01 00:00:00 +0000", 31 * 24 * time.Hour},
		{"Europe/Berlin", limit.Month, "2024-03-31 12:00:00 +0200", "2024-03-01 00:00:00 +0100", "2024-04-01 00:00:00 +0200", 31*24*time.Hour - time.Hour},
		// Weeks begin on Monday, also over a year's end.
		{"UTC", limit.Week, "2024-05-05 23:59:59 +0000", "2024-04-29 00:00:00 +0000", "2024-05-06 00:00:00 +0000", 7 * 24 * time.Hour},
		{"UTC", limit.Week, "2024-05-06 00:00:00 +0000", "2024-05-06 00:00:00 +0000", "2024-05-13 00:00:00 +0000", 7 * 24 * time.Hour},
		{"UTC", limit.Week, "2025-01-01 00:00:00 +0000", "2024-12-30 00:00:00 +0000", "2025-01-06 00:00:00 +0000", 7 * 24 * time.Hour},
		{"Europe/Berlin", limit.Week, "2024-10-27 23:00:00 +0100", "2024-10-21 00:00:00 +0200", "2024-10-28 00:00:00 +0100", 7*24*time.Hour + time.Hour},
		// Days of 23 and 25 hours; the hour that comes twice is two.
		{"Europe/Berlin", limit.Day, "2024-03-31 12:00:00 +0200", "2024-03-31 00:00:00 +0100", "2024-04-01 00:00:00 +0200", 23 * time.Hour},
		{"Europe/Berlin", limit.Day, "2024-10-27 00:30:00 +0200", "2024-10-27 00:00:00 +0200", "2024-10-28 00:00:00 +0100", 25 * time.Hour},
		{"Europe/Berlin", limit.Hour, "2024-10-27 02:30:00 +0200", "2024-10-27 02:00:00 +0200", "2024-10-27 02:00:00 +0100", time.Hour},
		{"Europe/Berlin", limit.Hour, "2024-10-27 02:30:00 +0100", "2024-10-27 02:00:00 +0100", "2024-10-27 03:00:00 +0100", time.Hour},
		{"Europe/Berlin", limit.Hour, "2024-03-31 03:30:00 +0200", "2024-03-31 03:00:00 +0200", "2024-03-31 04:00:00 +0200", time.Hour},
		// Offsets with a part of an hour, and clocks that change by half an hour.
		{"Asia/Kathmandu", limit.Hour, "2024-05-05 10:20:30 +0545", "2024-05-05 10:00:00 +0545", "2024-05-05 11:00:00 +0545", time.Hour},
		{"Asia/Kolkata", limit.Day, "2024-05-05 00:20:30 +0530", "2024-05-05 00:00:00 +0530", "2024-05-06 00:00:00 +0530", 24 * time.Hour},
		{"Australia/Lord_Howe", limit.Hour, "2024-04-07 01:45:00 +1030", "2024-04-07 01:30:00 +1030", "2024-04-07 02:00:00 +1030", 30 * time.Minute},
		{"Australia/Lord_Howe", limit.Day, "2024-10-06 12:00:00 +1100", "2024-10-06 00:00:00 +1030", "2024-10-07 00:00:00 +1100", 23*time.Hour + 30*time.Minute},
		// The turn of a leap year to come, where time.ZoneBounds is wrong.
		{"America/New_York", limit.Hour, "2040-12-31 19:30:00 -0500", "2040-12-31 19:00:00 -0500", "2040-12-31 20:00:00 -0500", time.Hour},
		{"Australia/Adelaide", limit.Hour, "2050-01-01 10:40:00 +1030", "2050-01-01 10:00:00 +1030", "2050-01-01 11:00:00 +1030", time.Hour},
		// No midnight: clocks go from 00:00 to 01:00.
		{"America/Sao_Paulo", limit.Day, "2018-11-04 12:00:00 -0200", "2018-11-04 01:00:00 -0200", "2018-11-05 00:00:00 -0200", 23 * time.Hour},
		{"Asia/Beirut", limit.Day, "2022-03-26 23:59:59 +0200", "2022-03-26 00:00:00 +0200", "2022-03-27 01:00:00 +0300", 24 * time.Hour},
		// Two midnights: clocks go from 24:00 to 23:00, and from 00:01 to 23:01.
		{"America/Sao_Paulo", limit.Day, "2018-02-17 23:30:00 -0300", "2018-02-17 00:00:00 -0200", "2018-02-18 00:00:00 -0300", 25 * time.Hour},
		{"America/St_Johns", limit.Day, "2006-10-28 23:30:00 -0230", "2006-10-28 00:00:00 -0230", "2006-10-29 00:00:00 -0230", 24 * time.Hour},
		{"America/St_Johns", limit.Day, "2006-10-29 00:00:30 -0230", "2006-10-29 00:00:00 -0230", "2006-10-30 00:00:00 -0330", 25 * time.Hour},
		{"America/St_Johns", limit.Day, "2006-10-28 23:30:00 -0330", "2006-10-29 00:00:00 -0230", "2006-10-30 00:00:00 -0330", 25 * time.Hour},
		// A day that was left out: Apia had no 30th.
		{"Pacific/Apia", limit.Day, "2011-12-29 12:00:00 -1000", "2011-12-29 00:00:00 -1000", "2011-12-31 00:00:00 +1400", 24 * time.Hour},
	} {
		z := zone(t, c.zone)
		at := must.Get(time.Parse(layout, c.at))(t)
		start, end := c.period.Bounds(at.UnixNano(), z)
		from, to := time.Unix(0, start).In(z), time.Unix(0, end).In(z)
		if from.Format(layout) != c.start || to.Format(layout) != c.end || to.Sub(from) != c.length {
			t.Errorf("the %v of %s in %s is %s to %s, %v; want %s to %s, %v", c.period, c.at, c.zone, from.Format(layout), to.Format(layout), to.Sub(from), c.start, c.end, c.length)
		}
	}
}

// TestPeriodsTileTime checks, around every change of the clocks and at random: the period of t contains t, its ends have
// the same bounds as t, the next one begins where it ends, and the wall clock distinguishes them.
func TestPeriodsTileTime(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 40
	if longTests() {
		rounds = 2000
	}
	for _, z := range zones(t) {
		for p := limit.Second; p <= limit.Month; p++ {
			for range rounds {
				checkPeriod(t, rnd, p, z)
			}
		}
	}
}

func checkPeriod(t *testing.T, rnd *rand.Rand, p limit.Period, z *time.Location) {
	t.Helper()
	now := time.Unix(rnd.Int64N(5e9)-1.5e9, rnd.Int64N(1e9))
	if _, change := now.In(z).ZoneBounds(); rnd.IntN(2) == 0 && !change.IsZero() {
		now = change.Add(time.Duration(rnd.Int64N(int64(50*time.Hour))) - 25*time.Hour)
	}
	at := now.UnixNano()
	start, end := p.Bounds(at, z)
	if at < start || at >= end {
		t.Fatalf("the %v of %v in %v is %d to %d", p, now.In(z), z, start, end)
	}
	for _, other := range []int64{start, end - 1} {
		if s, e := p.Bounds(other, z); s != start || e != end {
			t.Errorf("the %v of %v in %v has other bounds than the one of %v", p, now.In(z), z, time.Unix(0, other).In(z))
		}
	}
	if s, _ := p.Bounds(end, z); s != end {
		t.Errorf("the %v after that of %v in %v begins at %d, not at its end %d", p, now.In(z), z, s, end)
	}
	if _, e := p.Bounds(start-1, z); e != start {
		t.Errorf("the %v before that of %v in %v ends at %d, not at its start %d", p, now.In(z), z, e, start)
	}
	if windowtest.Shown(p, start, z) == windowtest.Shown(p, start-1, z) {
		t.Errorf("the %v of %v in %v begins although the clock shows %s as before", p, now.In(z), z, windowtest.Shown(p, start, z))
	}
}

// TestCalendarInZone takes two a day in Berlin, over both changes of the clocks.
func TestCalendarInZone(t *testing.T) {
	z := zone(t, "Europe/Berlin")
	s := newSubject(t, limit.Config{Algorithm: limit.Calendar, N: 2, Period: limit.Day, Zone: z})
	allowed := map[string]int{}
	for now := time.Date(2024, 3, 1, 0, 0, 0, 0, z); now.Year() == 2024; now = now.Add(17 * time.Minute) {
		if s.take(now.UnixNano(), 1) {
			allowed[now.Format(time.DateOnly)]++
			continue
		}
		back := now.Add(time.Duration(s.wait(now.UnixNano(), 1)))
		if h, m, sec := back.In(z).Clock(); h != 0 || m != 0 || sec != 0 || back.Sub(now) > 25*time.Hour {
			t.Fatalf("at %v, the wait is until %v", now, back)
		}
	}
	if len(allowed) != 306 {
		t.Errorf("%d days, want 306", len(allowed))
	}
	for day, n := range allowed {
		if n != 2 {
			t.Errorf("%d allowed on %s", n, day)
		}
	}
}
