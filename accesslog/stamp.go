package accesslog

import (
	"strings"
	"time"
)

// The forms of a time in a line. Each reader here reports whether the text has
// its form, and returns seconds and nanoseconds since the epoch.

// digitsValue returns the value of s, which must be of a few digits only.
func digitsValue(s []byte) (int, bool) {
	n := 0
	for _, c := range s {
		c -= '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return n, true
}

// clfLen is the length of dd/Mon/yyyy:hh:mm:ss +zzzz.
const clfLen = 26

// A clfClock reads times of the form dd/Mon/yyyy:hh:mm:ss +zzzz. Neighbours in
// a log are mostly of the same minute, so it keeps the last one.
type clfClock struct {
	minute [18]byte // dd/Mon/yyyy:hh:mm:
	zone   [6]byte  // " +zzzz"
	start  int64    // of that minute, in seconds since the epoch
}

// newCLFClock returns a clock that keeps the first minute of the epoch, which is right
// for that text.
func newCLFClock() clfClock {
	return clfClock{minute: [18]byte([]byte("01/Jan/1970:00:00:")), zone: [6]byte([]byte(" +0000"))}
}

// A clfResult is whether a text is a time of a clfClock.
type clfResult uint8

const (
	clfOther   clfResult = iota // not of the form
	clfInvalid                  // of the form, but no such month, day or time
	clfValid
)

// read reads the clfLen bytes at the start of s, which must be that long.
func (c *clfClock) read(s []byte) (int64, clfResult) {
	s = s[:clfLen]
	if [18]byte(s) != c.minute || [6]byte(s[20:]) != c.zone {
		return c.readWhole(s)
	}
	tens, ones := s[18]-'0', s[19]-'0'
	switch {
	case tens > 9 || ones > 9:
		return 0, clfOther
	case tens > 5:
		return c.readWhole(s)
	}
	return c.start + int64(tens)*10 + int64(ones), clfValid
}

// readWhole reads a time of another minute than the kept one, which it replaces.
func (c *clfClock) readWhole(s []byte) (int64, clfResult) {
	day, ok1 := digitsValue(s[0:2])
	year, ok2 := digitsValue(s[7:11])
	hour, ok3 := digitsValue(s[12:14])
	minute, ok4 := digitsValue(s[15:17])
	second, ok5 := digitsValue(s[18:20])
	zoneHour, ok6 := digitsValue(s[22:24])
	zoneMinute, ok7 := digitsValue(s[24:26])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7) ||
		s[2] != '/' || s[6] != '/' || s[11] != ':' || s[14] != ':' || s[17] != ':' || s[20] != ' ' ||
		(s[21] != '+' && s[21] != '-') || !isUpper(s[3]) || !isLower(s[4]) || !isLower(s[5]) {
		return 0, clfOther
	}
	month := monthNamed(s[3:])
	clock, onClock := clockSeconds(hour, minute, second)
	date, ok := dateSeconds(year, month, day)
	if !ok || !onClock {
		return 0, clfInvalid
	}
	// Any four digits are a zone, as in +9999.
	zone := int64(zoneHour*hourSeconds + zoneMinute*minuteSeconds)
	if s[21] == '+' {
		zone = -zone
	}
	t := date + clock + zone
	c.minute, c.zone, c.start = [18]byte(s), [6]byte(s[20:]), t-int64(second)
	return t, clfValid
}

func isUpper(c byte) bool { return c-'A' < 26 }
func isLower(c byte) bool { return c-'a' < 26 }
func isDigit(c byte) bool { return c-'0' < 10 }

// readISO reads yyyy-mm-ddThh:mm:ss[.f]ZONE, ZONE being Z or +hh:mm. As RFC 3339
// permits, T may be t or a blank, and Z may be z.
func readISO(s []byte) (sec, nsec int64, ok bool) {
	if len(s) < len("yyyy-mm-ddThh:mm:ssZ") || s[4] != '-' || s[7] != '-' ||
		s[10] != 'T' && s[10] != 't' && s[10] != ' ' {
		return 0, 0, false
	}
	year, ok1 := digitsValue(s[0:4])
	month, ok2 := digitsValue(s[5:7])
	day, ok3 := digitsValue(s[8:10])
	clock, ok4 := readClock(s[11:])
	date, ok5 := dateSeconds(year, month, day)
	if !(ok1 && ok2 && ok3 && ok4 && ok5) {
		return 0, 0, false
	}
	nsec, s, ok = readFraction(s[19:])
	if !ok {
		return 0, 0, false
	}
	zone, ok := readISOZone(s)
	return date + clock - zone, nsec, ok
}

// readFraction reads the optional .digits at the start of s, cut to
// nanoseconds, and returns what follows them.
func readFraction(s []byte) (nsec int64, rest []byte, ok bool) {
	if len(s) == 0 || s[0] != '.' {
		return 0, s, true
	}
	i := 1
	unit := int64(100_000_000)
	for ; i < len(s) && isDigit(s[i]); i++ {
		nsec += int64(s[i]-'0') * unit
		unit /= 10
	}
	return nsec, s[i:], i > 1
}

// readISOZone returns the seconds that the zone is ahead of UTC.
func readISOZone(s []byte) (int64, bool) {
	if len(s) == 1 {
		return 0, s[0] == 'Z' || s[0] == 'z'
	}
	if len(s) != len("+hh:mm") || s[3] != ':' || (s[0] != '+' && s[0] != '-') {
		return 0, false
	}
	hour, ok1 := digitsValue(s[1:3])
	minute, ok2 := digitsValue(s[4:6])
	zone, ok3 := clockSeconds(hour, minute, 0)
	if s[0] == '-' {
		zone = -zone
	}
	return zone, ok1 && ok2 && ok3
}

// readLooseISO is readISO, also for a zone without a colon, +hhmm.
func readLooseISO(s []byte) (sec, nsec int64, ok bool) {
	var text [64]byte
	n := len(s)
	if n < len("+hhmm") || n >= len(text) || s[n-len("+hhmm")] != '+' && s[n-len("+hhmm")] != '-' {
		return readISO(s)
	}
	return readISO(append(append(append(text[:0], s[:n-2]...), ':'), s[n-2:]...))
}

// readMillis reads dd/Mon/yyyy:hh:mm:ss[.f] in UTC.
func (c *clfClock) readMillis(s []byte) (sec, nsec int64, ok bool) {
	const zone = " +0000"
	var text [clfLen]byte
	if len(s) < clfLen-len(zone) {
		return 0, 0, false
	}
	copy(text[copy(text[:], s[:clfLen-len(zone)]):], zone)
	sec, result := c.read(text[:])
	nsec, rest, ok := readFraction(s[clfLen-len(zone):])
	return sec, nsec, ok && len(rest) == 0 && result == clfValid
}

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

// clockSeconds returns the second of the day, false when it is not on the clock. A leap
// second, the 60th of the last minute of a day in UTC, is taken for the second after it. In
// some zones that minute is the last of a quarter of an hour.
func clockSeconds(hour, minute, second int) (int64, bool) {
	s := hour*hourSeconds + minute*minuteSeconds + second
	return int64(s), hour < 24 && minute < 60 && (second < 60 || second == 60 && minute%15 == 14)
}

// readClock reads the hh:mm:ss that s begins with, and returns the second of the day.
func readClock(s []byte) (seconds int64, ok bool) {
	hour, ok1 := digitsValue(s[0:2])
	minute, ok2 := digitsValue(s[3:5])
	second, ok3 := digitsValue(s[6:8])
	seconds, ok = clockSeconds(hour, minute, second)
	return seconds, ok && ok1 && ok2 && ok3 && s[2] == ':' && s[5] == ':'
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
