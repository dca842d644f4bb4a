package accesslog

import (
	"testing"
	"time"
)

// Every day of every year that is read, counted one by one.
func TestDaysSinceEpochCountsEveryDay(t *testing.T) {
	days := int64(minSeconds / daySeconds)
	for year := minYear; year <= maxYear; year++ {
		for month := 1; month <= 12; month++ {
			for day := 1; day <= 32; day++ {
				if !isDate(year, month, day) {
					continue
				}
				if got := daysSinceEpoch(year, month, day); got != days {
					t.Fatalf("%d-%d-%d is day %d, want %d", year, month, day, got, days)
				}
				days++
			}
		}
	}
	if want := int64(maxSeconds/daySeconds) + 1; days != want {
		t.Errorf("the days end at %d, want %d", days, want)
	}
}

func TestIsDateAgreesWithPackageTime(t *testing.T) {
	for _, year := range []int{-1, 0, 1, 4, 100, 400, 1900, 1999, 2000, 2016, 2023, 2100, 9999} {
		for month := -1; month <= 14; month++ {
			for day := -1; day <= 33; day++ {
				d := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
				want := year > 0 && d.Year() == year && int(d.Month()) == month && d.Day() == day
				if got := isDate(year, month, day); got != want {
					t.Errorf("isDate(%d, %d, %d) = %v, want %v", year, month, day, got, want)
				}
			}
		}
	}
}

func TestMonthNamed(t *testing.T) {
	for m := time.January; m <= time.December; m++ {
		name := m.String()
		if got := monthNamed([]byte(name)); got != int(m) {
			t.Errorf("monthNamed(%s) = %d, want %d", name[:3], got, m)
		}
	}
	for _, name := range []string{"jan", "JAN", "Jax", "\x00\x00\x00", "Mai", "anF"} {
		if got := monthNamed([]byte(name)); got != 0 {
			t.Errorf("monthNamed(%q) = %d, want none", name, got)
		}
	}
}
