package accesslog

import (
	"strings"
	"time"
)

// Sizes in seconds, and of the years that are read.
const (
	minuteSeconds = 60
	hourSeconds   = 60 * minuteSeconds
	daySeconds    = 24 * hourSeconds

	minYear = 1
	maxYear = 9999

	minSeconds = -62135596800 // 0001-01-01T00:00:00Z
	maxSeconds = 253402300799 // 9999-12-31T23:59:59Z
)

// LeapYearDays is the length in days of every year of the stand-in calendar of
// [InYear].
const LeapYearDays = 366

// beforeMonth[m] is the number of days before month m of a leap year;
// beforeMonth[13] is the length of the year.
var beforeMonth = [14]int{0, 0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, LeapYearDays}

// dateSeconds returns the time at which a date begins, in seconds since the epoch. ok is
// false if it is not in the calendar or not of the years that are read.
func dateSeconds(year, month, day int) (seconds int64, ok bool) {
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	y, m, d := t.Date()
	return t.Unix(), minYear <= y && y <= maxYear && int(m) == month && d == day
}

// clockSeconds returns the second of the day, false when it is not on the clock.
func clockSeconds(hour, minute, second int) (int64, bool) {
	s := hour*hourSeconds + minute*minuteSeconds + second
	return int64(s), hour < 24 && minute < 60 && second < 60
}

// monthNamed returns the month that a text of at least three bytes begins with, by its
// English three-letter name; 0 for others.
func monthNamed(s []byte) int {
	at := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", string(s[:3]))
	if at%3 != 0 { // -1 is none
		return 0
	}
	return at/3 + 1
}

func utc(seconds, nanos int64) time.Time { return time.Unix(seconds, nanos).UTC() }
