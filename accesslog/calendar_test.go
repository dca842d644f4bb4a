package accesslog

import (
	"testing"
	"time"
)

// TestDateSecondsCountsEveryDay counts the days of all years that are read one by one.
func TestDateSecondsCountsEveryDay(t *testing.T) {
	want := int64(minSeconds)
	for year := minYear - 1; year <= maxYear+1; year++ {
		for month := 0; month <= 13; month++ {
			for day := -1; day <= 33; day++ {
				got, ok := dateSeconds(year, month, day)
				if !ok {
					continue
				}
				if got != want {
					t.Fatalf("%d-%d-%d begins at %d, want %d", year, month, day, got, want)
				}
				want += daySeconds
			}
		}
	}
	if want != int64(maxSeconds)+1 {
		t.Errorf("the days end at %d, want %d", want, int64(maxSeconds)+1)
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
