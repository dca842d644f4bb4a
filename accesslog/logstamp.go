package accesslog

import "bytes"

// A stamp is a time with a year at the start of a line.
type stamp struct {
	sec, nsec int64
	local     bool // it names no zone
	letterT   bool // between the date and the clock
	tagged    bool // of a form that syslog may have
	end       int  // index after it, and after what divides it from the text
}

// readStamp reads a time of one of the forms of the logs of programs, which may be in
// brackets:
//
//	2018-04-17 06:25:06.25 +0200    also with '/', '.' or ':' in the date, and a 'T' or '-' after it
//	17-Apr-2018 06:25:06.25 +0200   also with '/', and ':' after the date
//	Tue Apr 17 06:25:06.25 2018     also without the day of the week; or the year before the clock
//	1523946306.25
func readStamp(line []byte) (s stamp, ok bool) {
	i := 0
	if len(line) > 0 && line[0] == '[' {
		i = 1
	}
	if len(line) < i+len("1523946306") {
		return s, false
	}
	rest := line[i:]
	var n int
	switch c := rest[0]; {
	case isDigit(c) && isDigit(rest[4]) && rest[8] == '-':
		n, ok = s.readCompact(rest)
	case isDigit(c) && isDigit(rest[4]) && isDigit(rest[8]):
		n, ok = s.readEpoch(rest)
	case isDigit(c) && isDigit(rest[3]):
		n, ok = s.readYearFirst(rest)
	case isDigit(c):
		n, ok = s.readDayFirst(rest)
	case isUpper(c):
		n, ok = s.readNames(rest)
	}
	if !ok {
		return s, false
	}
	s.end = i + n
	if i > 0 {
		if s.end == len(line) || line[s.end] != ']' {
			return s, false
		}
		s.end++
	}
	if s.end < len(line) && line[s.end] == ':' {
		s.end++
	}
	if s.end < len(line) && line[s.end] == ',' { // cells follow
		s.end++
	} else if s.end < len(line) && line[s.end] != ' ' && line[s.end] != '|' && i == 0 {
		return s, false
	}
	for s.end < len(line) && line[s.end] == ' ' {
		s.end++
	}
	return s, true
}

// readEpoch reads seconds since the epoch.
func (s *stamp) readEpoch(line []byte) (n int, ok bool) {
	for n < len(line) && (isDigit(line[n]) || line[n] == '.') {
		n++
	}
	digits, _ := leadingDigits(line)
	s.sec, s.nsec, ok = readDecimal(line[:n], 0)
	return n, ok && len(digits) == len("1523946306")
}

// readCompact reads yyyymmdd-hh:mm:ss.
func (s *stamp) readCompact(line []byte) (n int, ok bool) {
	const form = "yyyymmdd-hh:mm:ss"
	if len(line) < len(form) {
		return 0, false
	}
	year, ok1 := digitsValue(line[:4])
	month, ok2 := digitsValue(line[4:6])
	day, ok3 := digitsValue(line[6:8])
	return s.readClock(line, len("yyyymmdd-"), year, month, day, ok1 && ok2 && ok3)
}

func (s *stamp) readYearFirst(line []byte) (n int, ok bool) {
	const form = "yyyy-mm-dd hh:mm:ss"
	if len(line) < len(form) || line[4] != line[7] || bytes.IndexByte([]byte("-/.:"), line[4]) < 0 || bytes.IndexByte([]byte(" T-:"), line[10]) < 0 {
		return 0, false
	}
	s.letterT, s.tagged = line[10] == 'T', line[4] == '-'
	year, ok1 := digitsValue(line[:4])
	month, ok2 := digitsValue(line[5:7])
	day, ok3 := digitsValue(line[8:10])
	return s.readClock(line, len("yyyy-mm-dd "), year, month, day, ok1 && ok2 && ok3)
}

func (s *stamp) readDayFirst(line []byte) (n int, ok bool) {
	const form = "dd-Mon-yyyy hh:mm:ss"
	if len(line) < len(form) || line[2] != line[6] || line[2] != '-' && line[2] != '/' || line[11] != ' ' && line[11] != ':' {
		return 0, false
	}
	day, ok1 := digitsValue(line[:2])
	year, ok2 := digitsValue(line[7:11])
	return s.readClock(line, len("dd-Mon-yyyy "), year, monthNamed(line[3:]), day, ok1 && ok2)
}

func (s *stamp) readNames(line []byte) (n int, ok bool) {
	const form, weekday = "Apr 17 06:25:06 2018", "Tue "
	from := 0
	if len(line) > len(weekday) && line[3] == ' ' && monthNamed(line) == 0 {
		from, line = len(weekday), line[len(weekday):]
	}
	if len(line) < len(form)-1 || line[3] != ' ' {
		return 0, false
	}
	month := monthNamed(line)
	i := 4
	if line[i] == ' ' {
		i++
	}
	digits, rest := leadingDigits(line[i:])
	day, ok := digitsValue(digits)
	i += len(digits) + 1
	if !ok || len(digits) == 0 || len(digits) > 2 || len(rest) < len(" 2018 06:25:06") || rest[0] != ' ' {
		return 0, false
	}
	if year, isYear := digitsValue(rest[1:5]); isYear && rest[5] == ' ' {
		s.tagged = from == 0
		n, ok = s.readClock(line, i+len("2018 "), year, month, day, true)
		return from + n, ok
	}
	end, nsec, ok := clockEnd(line, i)
	if !ok || len(line) < end+len(" 2018") || line[end] != ' ' {
		return 0, false
	}
	year, ok := digitsValue(line[end+1 : end+5])
	_, ok2 := s.readClock(line[:end], i, year, month, day, ok)
	s.nsec = nsec
	return from + end + len(" 2018"), ok && ok2
}

// clockEnd returns the index after hh:mm:ss[.f] at i.
func clockEnd(line []byte, i int) (end int, nsec int64, ok bool) {
	end = i + len("hh:mm:ss")
	if len(line) < end || line[i+2] != ':' || line[i+5] != ':' {
		return 0, 0, false
	}
	if end+1 < len(line) && (line[end] == '.' || line[end] == ',') && isDigit(line[end+1]) {
		unit := int64(100_000_000)
		for end++; end < len(line) && isDigit(line[end]); end++ {
			nsec += int64(line[end]-'0') * unit
			unit /= 10
		}
	}
	return end, nsec, true
}

// readClock reads hh:mm:ss[.f][ZONE] at i, of a date, and returns the index after it.
func (s *stamp) readClock(line []byte, i, year, month, day int, ok bool) (int, bool) {
	end, nsec, ok2 := clockEnd(line, i)
	if !ok || !ok2 || month < 1 || month > 12 {
		return 0, false
	}
	hour, ok1 := digitsValue(bytes.TrimLeft(line[i:i+2], " "))
	minute, ok2 := digitsValue(line[i+3 : i+5])
	second, ok3 := digitsValue(line[i+6 : i+8])
	clock, ok4 := clockSeconds(hour, minute, second)
	date, ok5 := dateSeconds(year, month, day)
	zone, n, named := readZone(line[end:])
	s.sec, s.nsec, s.local = date+clock-zone, nsec, !named
	return end + n, ok1 && ok2 && ok3 && ok4 && ok5
}

// readZone reads a zone, which may follow a blank: Z, UTC, GMT, +0200 or +02:00. It returns
// the seconds that it is ahead of UTC, and its length; named is false if there is none.
func readZone(s []byte) (ahead int64, n int, named bool) {
	zone := bytes.TrimPrefix(s, []byte(" "))
	blank := len(s) - len(zone)
	switch {
	case len(zone) > 0 && zone[0] == 'Z' && blank == 0:
		return 0, 1, true
	case bytes.HasPrefix(zone, []byte("UTC")), bytes.HasPrefix(zone, []byte("GMT")):
		return 0, blank + 3, true
	case len(zone) < len("+0200") || zone[0] != '+' && zone[0] != '-' || !isDigit(zone[1]) || !isDigit(zone[2]):
		return 0, 0, false
	}
	minutes := zone[3:]
	n = blank + len("+0200")
	if minutes[0] == ':' {
		minutes = minutes[1:]
		n++
	}
	if len(minutes) < 2 || !isDigit(minutes[0]) || !isDigit(minutes[1]) {
		return 0, 0, false
	}
	hour, _ := digitsValue(zone[1:3])
	minute, _ := digitsValue(minutes[:2])
	ahead = int64(hour*hourSeconds + minute*minuteSeconds)
	if zone[0] == '-' {
		ahead = -ahead
	}
	return ahead, n, true
}
