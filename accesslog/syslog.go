package accesslog

import (
	"time"

	"github.com/lately-go/lately/internal/counting/ring"
)

// sysStamp is the time at the start of a syslog line, "Mon dd hh:mm:ss ".
type sysStamp struct {
	month, day int
	clock      int64 // second of the day
	end        int   // index after the stamp
}

// readSysStamp reads the stamp of a line, and the blank behind it.
func readSysStamp(line []byte) (s sysStamp, ok bool) { return readSysStampUntil(line, ' ') }

// readSysStampUntil reads the stamp of a line, and the byte behind it; 0 is any but a digit.
// February has 29 days for it, as the year is not known.
func readSysStampUntil(line []byte, until byte) (s sysStamp, ok bool) {
	if len(line) < len("Mon d hh:mm:ss ") {
		return s, false
	}
	s.month = monthNamed(line)
	if s.month == 0 || line[3] != ' ' {
		return s, false
	}
	i := 4
	for i < len(line) && line[i] == ' ' {
		i++
	}
	digits := 1
	if i+1 < len(line) && isDigit(line[i+1]) {
		digits = 2
	}
	clock := i + digits + 1
	s.end = clock + len("hh:mm:ss ")
	if s.end > len(line) {
		return s, false
	}
	var ok1, ok2 bool
	s.day, ok1 = digitsValue(line[i : i+digits])
	s.clock, ok2 = readClock(line[clock:])
	return s, ok1 && ok2 && s.isDay() && line[clock-1] == ' ' && (line[clock+8] == until || until == 0 && !isDigit(line[clock+8]))
}

// readMonthDay reads a stamp of numbers, "mm-dd hh:mm:ss.f ".
func readMonthDay(line []byte) (s sysStamp, ok bool) {
	end, _, ok := clockEnd(line, len("mm-dd "))
	if !ok || line[2] != '-' || line[5] != ' ' || end == len(line) || line[end] != ' ' {
		return s, false
	}
	var ok1, ok2, ok3 bool
	s.month, ok1 = digitsValue(line[:2])
	s.day, ok2 = digitsValue(line[3:5])
	s.clock, ok3 = readClock(line[len("mm-dd "):])
	s.end = end + 1
	return s, ok1 && ok2 && ok3 && s.isDay()
}

// isDay reports whether the month has the day, in a leap year.
func (s *sysStamp) isDay() bool {
	return 0 < s.month && s.month <= 12 && 0 < s.day && s.day <= beforeMonth[s.month+1]-beforeMonth[s.month]
}

// sysYears finds the years of a log whose times have none. Lines are dated relative
// to the one before: see [YearsAfter]. A line is dated when it begins with a stamp,
// whatever follows it.
type sysYears struct {
	year  int  // of the first dated line; 0: stand-in calendar
	dated bool // there was a dated line

	first, last int64 // dated lines, in seconds of the stand-in calendar

	minute sysMinute // of the last line that was read
}

// A sysMinute is the minute of the last line: neighbours are mostly of the same one.
type sysMinute struct {
	text  [len("Mon dd hh:mm:")]byte
	start int64 // in seconds of the stand-in calendar
	time  int64 // what time returns for start
}

// read returns the time in seconds of a line that begins with a letter, and the index after its
// stamp and the byte behind it. See readSysStampUntil and time.
func (y *sysYears) read(line []byte, until byte) (seconds int64, end int, ok bool) {
	const minute, stamp = len(y.minute.text), len("Mon dd hh:mm:ss ")
	if len(line) >= stamp && string(line[:minute]) == string(y.minute.text[:]) && line[stamp-1] == until {
		if tens, ones := line[minute]-'0', line[minute+1]-'0'; tens < 6 && ones < 10 {
			second := int64(tens)*10 + int64(ones)
			y.last = y.minute.start + second
			return y.minute.time + second, stamp, true
		}
	}
	s, ok := readSysStampUntil(line, until)
	if !ok {
		return 0, 0, false
	}
	seconds, ok = y.time(s)
	y.minute = sysMinute{}
	if ok && s.end == stamp {
		second, _ := digitsValue(line[minute : minute+2]) // up to 60, which the clock of s has not
		y.minute = sysMinute{start: y.last - int64(second), time: seconds - int64(second)}
		copy(y.minute.text[:], line)
	}
	return seconds, s.end, ok
}

// time returns the time of the next dated line in seconds, false when it is on Feb 29 of
// a common year or outside the years 1 to 9999.
func (y *sysYears) time(s sysStamp) (seconds int64, ok bool) {
	t := int64(beforeMonth[s.month]+s.day-1)*daySeconds + s.clock
	if !y.dated {
		y.dated, y.first, y.last = true, t, t
	}
	t += yearsAfter(y.last, t) * yearSeconds
	y.last = t
	if y.year == 0 {
		return t, true
	}
	dated, ok := InYear(time.Unix(t, 0), y.year)
	return dated.Unix(), ok
}

// yearSeconds is the length of every year of the stand-in calendar.
const yearSeconds = LeapYearDays * daySeconds

// tolerance is how much earlier than the line before it a line of December may be
// and still be taken for a late one: less than that.
const tolerance = daySeconds

// yearsAfter returns in which year of the stand-in calendar the time t, of year 0,
// is when it is that of the next dated line after one at last.
func yearsAfter(last, t int64) int64 {
	const january, december = 1, 12
	year := ring.FloorDiv(last, yearSeconds)
	before, month := standInMonth(last-year*yearSeconds), standInMonth(t)
	switch {
	case before == december && month == january:
		return year + 1
	case before == january && month == december && t+(year-1)*yearSeconds > last-tolerance:
		return year - 1 // a late line of the year before
	}
	return year
}

// standInMonth returns the month of a second of a year of the stand-in calendar.
func standInMonth(second int64) int {
	day, month := int(second/daySeconds), 1
	for beforeMonth[month+1] <= day {
		month++
	}
	return month
}

// YearsAfter returns the year in the stand-in calendar (see [InYear]) of a dated
// line at first that follows a line at last. It is the year of last; one more from
// December to January; and one less if last is in January and first is in December,
// late by less than a day. The year of first does not matter.
//
// It is for parallel readers of a yearless log: the result is the number of years
// to add to the times of a chunk that begins with the line at first. See
// [Parser.Dated].
func YearsAfter(last, first time.Time) int {
	inYear := first.Unix() - ring.FloorDiv(first.Unix(), yearSeconds)*yearSeconds
	return int(yearsAfter(last.Unix(), inYear))
}

// InYear converts a time in the stand-in calendar to the real calendar; year is
// the real year of index 0.
//
// A yearless [Format] uses the stand-in calendar if [Options] has no Year.
// Every year has 366 days, February always 29. Year index 0, the year of the
// first dated line, begins at the Unix epoch, and the index increases where a
// December line is followed by a January line. So the times of a log are
// ordered before any year is known.
//
// It returns false for February 29 in a common year, and for a year outside 1
// to 9999.
func InYear(t time.Time, year int) (time.Time, bool) {
	second := t.Unix()
	index := ring.FloorDiv(second, yearSeconds)
	second -= index * yearSeconds
	month := standInMonth(second)
	day := int(second/daySeconds) - beforeMonth[month] + 1
	date, ok := dateSeconds(year+int(index), month, day)
	if index < -maxYear || index > maxYear || !ok {
		return time.Time{}, false
	}
	return utc(date+second%daySeconds, int64(t.Nanosecond())), true
}
