package accesslog

import "time"

// sysStamp is the time at the start of a syslog line, "Mon dd hh:mm:ss ".
type sysStamp struct {
	month, day int
	clock      int64 // second of the day
	end        int   // index behind the stamp
}

// readSysStamp reads the stamp of a line. February has 29 days for it, as the
// year is not known.
func readSysStamp(line []byte) (s sysStamp, ok bool) {
	if len(line) < len("Mon d hh:mm:ss ") {
		return s, false
	}
	s.month = monthNamed(line[0], line[1], line[2])
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
	day, ok1 := digitsValue(line[i : i+digits])
	hour, ok2 := digitsValue(line[clock : clock+2])
	minute, ok3 := digitsValue(line[clock+3 : clock+5])
	second, ok4 := digitsValue(line[clock+6 : clock+8])
	var ok5 bool
	s.day = day
	s.clock, ok5 = clockSeconds(hour, minute, second)
	const leapYear = 2000
	return s, ok1 && ok2 && ok3 && ok4 && ok5 && isDate(leapYear, s.month, day) &&
		line[clock-1] == ' ' && line[clock+2] == ':' && line[clock+5] == ':' && line[clock+8] == ' '
}

// sysYears counts the years of a log whose times have none. A line is dated
// when it begins with a stamp, whatever follows it; the year goes up by one
// where a dated line of December is followed by one of January.
type sysYears struct {
	year        int // of the first dated line; 0: stand-in calendar
	first, last int // months of dated lines
	steps       int // from December to January
}

// time returns the time of the next dated line, false when it is on Feb 29 of
// a common year or beyond year 9999.
func (y *sysYears) time(s sysStamp) (time.Time, bool) {
	if y.first == 0 {
		y.first = s.month
	}
	if y.last == 12 && s.month == 1 {
		y.steps++
	}
	y.last = s.month
	if y.year == 0 {
		day := y.steps*leapYearDays + beforeMonth[s.month] + s.day - 1
		return utc(int64(day)*daySeconds+s.clock, 0), true
	}
	year := y.year + y.steps
	if year > maxYear || !isDate(year, s.month, s.day) {
		return time.Time{}, false
	}
	return utc(daysSinceEpoch(year, s.month, s.day)*daySeconds+s.clock, 0), true
}

// InYear turns a time of the stand-in calendar into the real one, year being
// the year that index 0 stands for.
//
// In the stand-in calendar, which a yearless [Format] uses while [Options]
// names no Year, every year has 366 days, February always 29; year index 0
// begins at the Unix epoch; and the index is the number of steps from December
// to January that the [Parser] has seen. It orders the times of a log before
// the year of any of them is known.
//
// The result is false for February 29 when the year is a common one, and for a
// year outside 1 to 9999.
func InYear(t time.Time, year int) (time.Time, bool) {
	const yearSeconds = leapYearDays * daySeconds
	second := t.Unix()
	index := floorDiv(second, yearSeconds)
	second -= index * yearSeconds
	day := int(second / daySeconds)
	month := 1
	for beforeMonth[month+1] <= day {
		month++
	}
	day = day - beforeMonth[month] + 1
	if index < -maxYear || index > maxYear || !isDate(year+int(index), month, day) || year+int(index) > maxYear {
		return time.Time{}, false
	}
	days := daysSinceEpoch(year+int(index), month, day)
	return utc(days*daySeconds+second%daySeconds, int64(t.Nanosecond())), true
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
