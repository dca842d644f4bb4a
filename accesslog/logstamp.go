package accesslog

import "bytes"

// A stamp is a time with a year at the start of a line.
type stamp struct {
	sec, nsec int64
	local     bool // it names no zone
	letterT   bool // between the date and the clock
	tagged    bool // of a form that syslog may have
	end       int  // index after it, and after what divides it from the text
	order     dateOrder
}

// A dateOrder is how dates of three numbers that end in the year are read.
type dateOrder uint8

const (
	noOrder  dateOrder = iota // they are no dates
	anyOrder                  // by what divides them
	dayFirst
	monthFirst
)

// readStamp reads a time of one of the forms of the logs of programs, which may be in
// brackets:
//
//	2018-04-17 06:25:06.25 +0200    also with '/', '.' or ':' in the date, and 'T', '-' or " - " after it
//	17-Apr-2018 06:25:06.25 +0200   also with '/' or blanks, and ':' after the date
//	Tue Apr 17 06:25:06.25 2018     also without the day of the week; or the year before the clock
//	Apr-17-18 06:25:06
//	180417 06:25:06                 the hour may be one digit behind a blank
//	1523946306.25
//	@400000005ad5934c0ee6b280       TAI64N
func readStamp(line []byte) (s stamp, ok bool) {
	i := 0
	if len(line) > 0 && line[0] == '[' {
		i = 1
	}
	if len(line) < i+len("1523946306") {
		return s, false
	}
	n, ok := s.read(line[i:])
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

// read reads the time that rest, of ten bytes or more, begins with, and returns its length.
func (s *stamp) read(rest []byte) (n int, ok bool) {
	switch c := rest[0]; {
	case isDigit(c) && isDigit(rest[2]) && isDigit(rest[4]):
		switch {
		case rest[6] == ' ':
			return s.readShort(rest)
		case rest[8] == '-':
			return s.readCompact(rest)
		}
		return s.readEpoch(rest)
	case isDigit(c) && isDigit(rest[2]) && isDigit(rest[3]):
		return s.readYearFirst(rest)
	case isDigit(c):
		return s.readDayFirst(rest)
	case isUpper(c):
		return s.readNames(rest)
	case c == '@':
		return s.readTAI(rest)
	}
	return 0, false
}

// readShort reads yymmdd hh:mm:ss.
func (s *stamp) readShort(line []byte) (n int, ok bool) {
	const form = "yymmdd hh:mm:ss"
	date, ok := digitsValue(line[:6])
	if len(line) < len(form) {
		return 0, false
	}
	return s.readClock(line, len("yymmdd "), 2000+date/10000, date/100%100, date%100, ok)
}

// readTAI reads "@" and the 24 hexadecimal digits of TAI64N.
func (s *stamp) readTAI(line []byte) (n int, ok bool) {
	const form = "@400000005ad5934c0ee6b280"
	if len(line) < len(form) {
		return 0, false
	}
	s.sec, s.nsec, ok = readTAI(string(line[1:len(form)]))
	return len(form), ok
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
	i := len("yyyy-mm-dd ")
	if bytes.HasPrefix(line[i-1:], []byte(" - ")) && len(line) >= len(form)+2 {
		i += 2
	}
	return s.readClock(line, i, year, month, day, ok1 && ok2 && ok3)
}

// readDayFirst reads dd-Mon-yyyy hh:mm:ss, and dates of numbers. The name of the month may be a
// longer one that begins with the English one, as in some languages.
func (s *stamp) readDayFirst(line []byte) (n int, ok bool) {
	digits, rest := leadingDigits(line)
	if len(digits) > 2 || len(rest) < len("/Mon/yyyy hh:mm:ss") {
		return 0, false
	}
	sep := rest[0]
	if sep != '-' && sep != '/' && sep != ' ' && sep != '.' {
		return 0, false
	}
	if isDigit(rest[1]) {
		return s.readNumbers(line, sep)
	}
	name := bytes.IndexByte(rest[1:min(len(rest), len("-September-"))], sep)
	i := len(digits) + 1 + name + len("-yyyy")
	if name < len("Mon") || len(line) < i+len(" hh:mm:ss") || line[i] != ' ' && line[i] != ':' {
		return 0, false
	}
	month := monthNamed([]byte{rest[1] &^ 0x20, rest[2] | 0x20, rest[3] | 0x20})
	day, ok1 := digitsValue(digits)
	year, ok2 := digitsValue(line[i-4 : i])
	return s.readClock(line, i+1, year, month, day, ok1 && ok2)
}

// readNumbers reads dd-mm-yyyy hh:mm:ss and mm/dd/yyyy hh:mm:ss, also with a year of two digits, or
// with hh:mm:ss PM behind a comma. Without a known order, the month comes first if '/' divides the
// numbers, or if the clock follows something other than a blank: programs that write so are American.
func (s *stamp) readNumbers(line []byte, sep byte) (n int, ok bool) {
	var numbers [3]int
	rest := line
	for i := range numbers {
		digits, after := leadingDigits(rest)
		if len(digits) != 2 && (i < 2 || len(digits) != 4) || i < 2 && (len(after) == 0 || after[0] != sep) {
			return 0, false
		}
		numbers[i], _ = digitsValue(digits)
		rest = after[min(1, 2-i):]
	}
	month, day, year := numbers[0], numbers[1], numbers[2]
	if year < 100 {
		year += 2000
	}
	if s.order == noOrder || sep == ' ' || len(rest) < len(", h:mm:ss") {
		return 0, false
	}
	i, twelve := len(line)-len(rest)+1, false
	switch c := rest[0]; {
	case bytes.HasPrefix(rest, []byte(", ")):
		twelve = true
		i++
		if rest[3] == ':' { // a blank and one digit
			i--
		}
		fallthrough
	case c == ' ' && !bytes.HasPrefix(rest, []byte(" - ")):
		if s.order == dayFirst || s.order == anyOrder && sep != '/' {
			day, month = month, day
		}
	case c == ' ':
		i += 2
	case c != ':' && c != '@' && (c != '-' || sep != '/'):
		return 0, false
	}
	n, ok = s.readClock(line, i, year, month, day, true)
	if half := line[min(n, len(line)):]; ok && twelve && len(half) >= len(" PM") && half[2] == 'M' {
		hour, _ := digitsValue(bytes.TrimLeft(line[i:i+2], " "))
		if s.sec -= int64(hour/12) * 12 * hourSeconds; half[1] == 'P' {
			s.sec += 12 * hourSeconds
		}
		n += len(" PM")
	}
	return n, ok
}

func (s *stamp) readNames(line []byte) (n int, ok bool) {
	const form, weekday = "Apr 17 06:25:06 2018", "Tue "
	from := 0
	if len(line) > len(weekday) && line[3] == ' ' && monthNamed(line) == 0 {
		from, line = len(weekday), line[len(weekday):]
	}
	if len(line) >= len("Apr-17-18 06:25:06") && line[3] == '-' {
		return s.readMonthFirst(line)
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
	clock, zone := end, nameEnd(line[end+1:])
	if isUpper(line[end+1]) && len(line) >= end+1+zone+len(" 2018") { // as date writes it
		end += 1 + zone
	}
	year, ok := digitsValue(line[end+1 : end+5])
	_, ok2 := s.readClock(line[:clock], i, year, month, day, ok)
	s.nsec = nsec
	if hours, known := zoneHours[string(line[min(clock+1, end):end])]; known {
		s.sec, s.local = s.sec-hours*hourSeconds, false
	}
	return from + end + len(" 2018"), ok && ok2
}

// readMonthFirst reads Mon-dd-yy hh:mm:ss.
func (s *stamp) readMonthFirst(line []byte) (n int, ok bool) {
	day, ok1 := digitsValue(line[4:6])
	year, ok2 := digitsValue(line[7:9])
	return s.readClock(line, len("Mon-dd-yy "), 2000+year, monthNamed(line), day, ok1 && ok2 && line[6] == '-' && line[9] == ' ')
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
