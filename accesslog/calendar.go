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

func isLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// isDate reports whether the day is in the calendar. A year of 0 is not.
func isDate(year, month, day int) bool {
	if year < minYear || month < 1 || month > 12 || day < 1 {
		return false
	}
	length := beforeMonth[month+1] - beforeMonth[month]
	if month == 2 && !isLeap(year) {
		length = 28
	}
	return day <= length
}

// daysSinceEpoch returns the days from 1970-01-01 to the date. It counts years
// from March, so that a leap day is the last of its year, as H. Hinnant's
// "chrono-Compatible Low-Level Date Algorithms" does. The year must be >= 1.
func daysSinceEpoch(year, month, day int) int64 {
	if month < 3 {
		year, month = year-1, month+12
	}
	leaps := year/4 - year/100 + year/400
	inYear := (153*(month-3)+2)/5 + day - 1
	const marchYear0 = 719468 // days from 0000-03-01 to 1970-01-01
	return int64(365*year + leaps + inYear - marchYear0)
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
