package accesslog

import (
	"bytes"
	"time"

	"github.com/lately-go/lately/internal/ring"
	"github.com/lately-go/lately/match"
)

// sysStamp is the time at the start of a syslog line, "Mon dd hh:mm:ss ".
type sysStamp struct {
	month, day int
	clock      int64 // second of the day
	end        int   // index after the stamp
}

// readSysStamp reads the stamp of a line. February has 29 days for it, as the
// year is not known.
func readSysStamp(line []byte) (s sysStamp, ok bool) {
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
	day, ok1 := digitsValue(line[i : i+digits])
	hour, ok2 := digitsValue(line[clock : clock+2])
	minute, ok3 := digitsValue(line[clock+3 : clock+5])
	second, ok4 := digitsValue(line[clock+6 : clock+8])
	var ok5 bool
	s.day = day
	s.clock, ok5 = clockSeconds(hour, minute, second)
	return s, ok1 && ok2 && ok3 && ok4 && ok5 && 0 < day && day <= beforeMonth[s.month+1]-beforeMonth[s.month] &&
		line[clock-1] == ' ' && line[clock+2] == ':' && line[clock+5] == ':' && line[clock+8] == ' '
}

// sysYears finds the years of a log whose times have none. Lines are dated relative
// to the one before: see [YearsAfter]. A line is dated when it begins with a stamp,
// whatever follows it.
type sysYears struct {
	year  int  // of the first dated line; 0: stand-in calendar
	dated bool // there was a dated line

	first, last int64 // dated lines, in seconds of the stand-in calendar
}

// time returns the time of the next dated line, false when it is on Feb 29 of
// a common year or outside the years 1 to 9999.
func (y *sysYears) time(s sysStamp) (time.Time, bool) {
	t := int64(beforeMonth[s.month]+s.day-1)*daySeconds + s.clock
	if !y.dated {
		y.dated, y.first, y.last = true, t, t
	}
	t += yearsAfter(y.last, t) * yearSeconds
	y.last = t
	if y.year == 0 {
		return utc(t, 0), true
	}
	return InYear(time.Unix(t, 0), y.year)
}

// syslog reads a line of syslog. One that is about something else is skipped, and one
// without a time is bad.
func (p *Parser) syslog(line []byte, ev *match.Event) bool {
	stamp, ok := readSysStamp(line)
	if !ok {
		return false
	}
	t, ok := p.years.time(stamp)
	if !ok {
		return false
	}
	ok, other := p.kind.read(line, ev)
	p.skipped = other && stamp.end < len(line)
	if ok {
		if p.years.year != 0 {
			t = utc(p.zone.seconds(t.Unix()), 0)
		}
		ev.Time = t
	}
	return ok
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

// YearsAfter returns the year, of the stand-in calendar of [InYear], of a dated line
// at first that follows one at last. It is the year of last; one more if that is in
// December and first in January; and one less if last is in January and first a line
// of December that came late, by less than a day. The year of first does not matter.
//
// It is for readers of a yearless log in parallel: it is how many years are to be
// added to the times of a chunk that begins with the line at first. See
// [Parser.Dated].
func YearsAfter(last, first time.Time) int {
	inYear := first.Unix() - ring.FloorDiv(first.Unix(), yearSeconds)*yearSeconds
	return int(yearsAfter(last.Unix(), inYear))
}

// InYear turns a time of the stand-in calendar into the real one, year being
// the year that index 0 stands for.
//
// In the stand-in calendar, which a yearless [Format] uses while [Options]
// names no Year, every year has 366 days, February always 29; year index 0
// begins at the Unix epoch and is that of the first dated line; and the index goes
// up where a line of December is followed by one of January. It orders the times of
// a log before the year of any of them is known.
//
// The result is false for February 29 when the year is a common one, and for a
// year outside 1 to 9999.
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

// readSSHD reads the failed logins of OpenSSH's server from a syslog line:
//
//	Mon dd hh:mm:ss ... sshd[n]: Failed password for USER from CLIENT port n ssh2
//	Mon dd hh:mm:ss ... sshd[n]: error: PAM: Authentication failure for USER from CLIENT
//
// The method may be none instead of password, ssh2 may be missing, and the user
// may be preceded by "invalid user" or "illegal user". The client chooses USER, so
// CLIENT is read from the end of the line, which the client cannot write.
func readSSHD(line []byte, ev *match.Event) (ok, other bool) {
	message, _ := sshdMessage(line)
	return readFailedLogin(message, ev)
}

// readFailedLogin sets the fields of ev to those of a failed login. If a message of sshd
// is about something else, other is true.
func readFailedLogin(message []byte, ev *match.Event) (ok, other bool) {
	login, hasPort, ok := cutFailure(message)
	if !ok {
		return false, true
	}
	if hasPort {
		if login, ok = cutPort(login); !ok {
			return false, false
		}
	}
	start := len(login)
	for start > 0 && !isBlank[login[start-1]] {
		start--
	}
	user, ok := bytes.CutSuffix(login[:start], []byte(" from "))
	if !ok || start == len(login) {
		return false, false
	}
	user = bytes.TrimPrefix(user, []byte("invalid user "))
	ev.Set(match.Client, login[start:])
	ev.Set(match.User, bytes.TrimPrefix(user, []byte("illegal user ")))
	return true, false
}

// sshdMessage returns what follows the first ` sshd[n]: ` of a line, or ` sshd-session[n]: `,
// as OpenSSH 9.8 and later write.
func sshdMessage(line []byte) (message []byte, ok bool) {
	for {
		if _, line, ok = bytes.Cut(line, []byte(" sshd")); !ok {
			return nil, false
		}
		line = bytes.TrimPrefix(line, []byte("-session"))
		if len(line) == 0 || line[0] != '[' {
			continue
		}
		line = line[1:]
		digits, rest := leadingDigits(line)
		if message, ok = bytes.CutPrefix(rest, []byte("]: ")); ok && len(digits) > 0 {
			return message, true
		}
	}
}

// isSSHD reports whether sshd wrote a line of syslog.
func isSSHD(line []byte) bool {
	_, ok := sshdMessage(line)
	return ok
}

// cutFailure cuts the words off a message that a failed login begins with, and says
// whether such a message ends with the port of the client.
func cutFailure(message []byte) (login []byte, hasPort, ok bool) {
	for _, words := range []string{"Failed password for ", "Failed none for "} {
		if login, ok = bytes.CutPrefix(message, []byte(words)); ok {
			return login, true, true
		}
	}
	login, ok = bytes.CutPrefix(message, []byte("error: PAM: Authentication failure for "))
	return login, false, ok
}

// cutPort cuts " port n" or " port n ssh2" off the end of s.
func cutPort(s []byte) (before []byte, ok bool) {
	s = bytes.TrimSuffix(s, []byte(" ssh2"))
	end := len(s)
	for end > 0 && isDigit(s[end-1]) {
		end--
	}
	before, ok = bytes.CutSuffix(s[:end], []byte(" port "))
	return before, ok && end < len(s)
}

const ufwBlock = "[UFW BLOCK]"

// isUFW reports whether a line of syslog is about a packet that was dropped.
func isUFW(line []byte) bool { return bytes.Contains(line, []byte(ufwBlock)) }

// readBlocked reads the packets that Ubuntu's firewall has dropped, from the kernel's
// syslog lines:
//
//	Mon dd hh:mm:ss ... [UFW BLOCK] ... SRC=CLIENT ... PROTO=TCP SPT=n DPT=OBJECT ...
//
// Client is the source address, Object the destination port, and the protocol and the
// source port are the fields "proto" and "spt". If the line is about a packet without a
// port, such as one of ICMP, or about something else, other is true.
func readBlocked(message []byte, ev *match.Event) (ok, other bool) {
	_, words, ok := bytes.Cut(message, []byte(ufwBlock))
	if !ok {
		return false, true
	}
	var client, protocol, source []byte
	for {
		end := bytes.IndexByte(words, ' ')
		if end < 0 { // the last word may be cut off, and none of those below is last
			return false, client != nil && !bytes.HasPrefix(words, []byte("DPT="))
		}
		word := words[:end]
		words = words[end+1:]
		switch {
		case len(word) < len("SRC="):
		case string(word[:4]) == "SRC=":
			client = word[4:]
		case string(word[:4]) == "SPT=":
			source = word[4:]
		case bytes.HasPrefix(word, []byte("PROTO=")):
			protocol = word[6:]
		case string(word[:4]) == "DPT=":
			port := word[4:]
			if digits, _ := leadingDigits(port); len(client) == 0 || len(digits) == 0 || len(digits) < len(port) {
				return false, false
			}
			ev.Set(match.Client, client)
			ev.Set(match.Object, port)
			if protocol != nil {
				ev.SetNamed("proto", protocol)
			}
			if source != nil {
				ev.SetNamed("spt", source)
			}
			return true, false
		}
	}
}
